"""`kbd init`: find agents and knowledge, show what kbd would do, and write a configuration when told to."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import unified_diff
from functools import cached_property
from glob import escape
from pathlib import Path

import click

from kbd.cli.output import ago, counted, emit, safe, short, sized
from kbd.cli.session import Session
from kbd.config import Config, data_dir, parse_config, usual_config, write_templates
from kbd.config.builtin import LESSONS
from kbd.config.policies import decay_policy
from kbd.config.render import NewBase, NewSource, render_config
from kbd.core.entries import parse
from kbd.core.model import Entry
from kbd.errors import KbdError, UsageError
from kbd.service.agents import Root, by_agent, find_agents
from kbd.service.candidates import Candidate, find_candidates
from kbd.service.dating import DateProposal, count, propose_dates, write_dates
from kbd.service.outlook import Day, outlook, subjects
from kbd.sources.registry import formats
from kbd.store.gitstate import in_git
from kbd.store.knowledge_paths import git_root
from kbd.store.locks import Locks
from kbd.store.unitfiles import read_unit, write_unit

FORECAST_DAYS = 365
DAYS_SHOWN = 4
DIFF_LINES = 40


@dataclass(frozen=True)
class Findings:
    """What was found on this machine, and what would come of it."""

    session: Session
    folder: str
    root: str | None
    roots: tuple[Root, ...]
    candidates: tuple[Candidate, ...]

    @cached_property
    def dates(self) -> list[DateProposal]:
        """The files with what git knows of their undated entries."""
        return [propose_dates(one.path, one.data, parse, self.session.today) for one in self.candidates]

    @property
    def agents(self) -> dict[str, list[Root]]:
        """Agents that have left transcripts."""
        return {agent: roots for agent, roots in by_agent(self.roots).items() if any(root.files for root in roots)}

    @cached_property
    def config_path(self) -> Path:
        """Where the configuration belongs."""
        return (self.session.config_path or usual_config()).absolute()

    @cached_property
    def config_text(self) -> str:
        """The configuration that would be written."""
        return render_config([self._base()], self._sources())

    @cached_property
    def config(self) -> Config:
        """What that text means; raises UsageError."""
        known, session = formats(), self.session
        data = self.config_text.encode("utf-8", "surrogateescape")
        return parse_config(
            data,
            self.config_path,
            roots_of=lambda agent: known[agent].default_roots(session.env, session.home) if agent in known else (),
        )

    def _base(self) -> NewBase:
        if not self.candidates:
            return NewBase("lessons", (self.short(str(data_dir() / "knowledge")) + "/*.md",))
        name = os.path.basename(self.folder) or "lessons"
        # The relations file goes beside the first pattern: that is a folder made for knowledge, if there is one.
        homely_first = sorted(self.candidates, key=lambda one: not one.in_place)
        return NewBase(name, tuple(dict.fromkeys(map(self._pattern, homely_first))), self.short(self.root or ""))

    def _pattern(self, candidate: Candidate) -> str:
        folder, name = os.path.split(candidate.path)
        return f"{self.short(escape(folder))}/*.md" if candidate.in_place else self.short(escape(candidate.path))

    def _sources(self) -> list[NewSource]:
        found = [
            NewSource(agent=agent, remark=", ".join(self.short(root.path) for root in roots))
            for agent, roots in self.agents.items()
        ]
        return found or [NewSource(path=self.short(str(data_dir() / "logs")), remark="whatever agents write in here")]

    def short(self, path: str) -> str:
        """Return a path with `~` for the home."""
        return short(path, self.session.home)


@click.command("init")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--no-dates", is_flag=True, help="Leave undated entries undated.")
@click.option("--dry-run", is_flag=True, help="Only show.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there.")
@click.pass_obj
def init(session: Session, yes: bool, no_dates: bool, dry_run: bool, force: bool) -> int:
    """Find agents and knowledge, show what kbd would watch and write, then write a configuration."""
    found = _find(session)
    old = read_unit(str(found.config_path))
    _require_sound(found)
    _show(found, old, with_dates=not no_dates)
    if dry_run:
        return 0
    if old is not None and old != found.config_text.encode() and not force:
        raise UsageError("is there already", where=str(found.config_path), hint="--force replaces it")
    datable = [] if no_dates else [one for one in found.dates if one.days]
    if not yes and not sys.stdin.isatty():
        raise UsageError("nobody can be asked here, so nothing was written", hint="--yes writes what was shown")
    wants_config = yes or click.confirm(f"\nWrite {found.short(str(found.config_path))}?")
    wants_dates = bool(datable) and (yes or click.confirm(f"Write the dates into {counted(len(datable), 'file')}?"))
    if wants_config:
        _write_config(found)
    done = not wants_dates or _write_dates(found, datable)
    if wants_config:
        emit("\nNext: `kbd run --once` reads what agents wrote so far; `kbd service install` keeps kbd running.")
    return 0 if done else 1


def _find(session: Session) -> Findings:
    here = os.getcwd()
    root = git_root(here)
    roots = find_agents(formats(), session.env, session.home)
    own = [str(session.state_path), *(one.path for one in roots)]
    candidates, problems = find_candidates(root or here, own)
    for problem in problems:
        emit(f"{safe(problem.where)}: {safe(problem.what)}; {problem.hint}")
    return Findings(session, root or here, root, tuple(roots), tuple(candidates))


def _require_sound(found: Findings) -> None:
    """Refuse what could not be loaded, such as transcripts inside the knowledge, and show it; raises UsageError."""
    try:
        _ = found.config
    except UsageError:
        for line in found.config_text.splitlines():
            emit(safe(line))
        raise


def _show(found: Findings, old: bytes | None, *, with_dates: bool) -> None:
    sections = [
        ("Agents", _agent_lines(found)),
        (f"Knowledge in {found.short(found.folder)}", _knowledge_lines(found)),
        ("kbd would write", _writing_lines(found)),
        ("Entries without a date", _undated_lines(found) if with_dates else ()),
        ("If nobody cites anything", _forecast_lines(found, with_dates=with_dates)),
        (f"Configuration {found.short(str(found.config_path))}", _config_lines(found, old)),
    ]
    first = True
    for title, lines in sections:
        shown = list(lines)
        if shown:
            emit(("" if first else "\n") + click.style(safe(title), bold=True))
            first = False
        for line in shown:
            emit(f"  {safe(line)}".rstrip())


def _agent_lines(found: Findings) -> Iterator[str]:
    now = found.session.real_now()
    for agent, roots in by_agent(found.roots).items():
        for root in roots:
            yield f"{agent:<12}  {found.short(root.path)}"
            age = f", newest {ago((now - root.newest).total_seconds())} ago" if root.newest else ""
            yield (
                f"{'':12}  {counted(root.files, 'transcript')}, {sized(root.size)}{age}"
                if root.files
                else (f"{'':12}  no transcripts" + ("" if agent in found.agents else ": left out"))
            )
    if not found.agents:
        yield f"none found; whatever agents write into {found.short(str(data_dir() / 'logs'))} is read"


def _knowledge_lines(found: Findings) -> Iterator[str]:
    for candidate in found.candidates:
        yield f"{os.path.relpath(candidate.path, found.folder)}: {_entries(len(candidate.entries))}"
    if not found.candidates:
        yield f"none found; {found.short(str(data_dir() / LESSONS))} would be made from a template"


def _writing_lines(found: Findings) -> Iterator[str]:
    yield "a counter under each entry that is cited: <!-- ref:1 | last:2026-06-11 | decay:active -->"
    yield "a mark before entries that fade, and in time their move to NAME-archive.md beside the file"
    yield f"which files a lesson applies to: {found.short(found.config.bases[0].relations)}"
    yield f"evidence, backups, locks: {found.short(str(found.session.state_path))}"
    if any(in_git(one.path) for one in found.candidates):
        yield "the knowledge lies in git: counters are written every 15 minutes at most, nothing is committed"


def _undated_lines(found: Findings) -> Iterator[str]:
    undated, known = count(found.dates)
    if not undated:
        return
    total = sum(len(one.entries) for one in found.candidates)
    yield f"{undated} of {_entries(total)}: without a date they count as infinitely old and fade first"
    for proposal in found.dates:
        if proposal.why_not:
            yield f"{os.path.relpath(proposal.path, found.folder)}: {proposal.why_not}"
    if not known:
        yield "git knows the age of none"
        return
    yield f"git knows the day on which {known} of them {'was' if known == 1 else 'were'} written; kbd would add:"
    diff = [line for one in found.dates for line in one.diff(os.path.relpath(one.path, found.folder))]
    yield from (f"  {line}" for line in diff[:DIFF_LINES])
    if len(diff) > DIFF_LINES:
        yield f"  … {len(diff) - DIFF_LINES} more lines"


def _forecast_lines(found: Findings, *, with_dates: bool) -> Iterator[str]:
    if not found.candidates:
        return
    known = with_dates and count(found.dates)[1]
    if known:
        yield "with the dates:"
        yield from (f"  {line}" for line in _days(found, with_dates=True))
        yield "without:"
    yield from (f"  {line}" if known else line for line in _days(found, with_dates=False))
    yield "What agents cited so far is not known yet: such entries live longer. The first pass waits a day."


def _days(found: Findings, *, with_dates: bool) -> list[str]:
    entries: list[Entry] = []
    days: dict[int, date] = {}
    for candidate, dates in zip(found.candidates, found.dates, strict=True):
        for entry in candidate.entries:
            if with_dates and entry.line in dates.days:
                days[len(entries)] = dates.days[entry.line]
            entries.append(entry)
    policy = decay_policy(found.config, found.config.bases[0])
    changes = outlook(subjects(entries, days), policy, found.session.today, FORECAST_DAYS)
    return _day_lines(changes, found.session.today) or ["nothing fades within a year"]


def _day_lines(changes: Sequence[Day], today: date) -> list[str]:
    """Return the first change, the standings after a week, a month and a quarter, and the last change of the year."""
    ends = [today + timedelta(days=ahead) for ahead in (1, 7, 30, 90, FORECAST_DAYS)]
    shown = list(changes[:1])
    for end in ends:
        last = next((day for day in reversed(changes) if day.on <= end), None)
        if last is not None and last not in shown:
            shown.append(last)
    return [f"{day.on}  {day.active} active, {day.dormant} dormant, {day.archived} archived" for day in shown]


def _config_lines(found: Findings, old: bytes | None) -> list[str]:
    new = found.config_text.splitlines()
    if old is None:
        return new
    before = old.decode("utf-8", "replace").splitlines()
    return list(unified_diff(before, new, "now", "new", lineterm="", n=1)) or ["is there already, just so"]


def _write_config(found: Findings) -> None:
    path = str(found.config_path)
    written = write_unit(path, found.config_text.encode("utf-8", "surrogateescape"))
    emit(f"{'wrote' if written else 'kept'} {safe(found.short(path))}")
    if not found.candidates or not found.agents:
        for made in write_templates(data_dir(), found.session.today):
            emit(f"made {safe(found.short(str(made)))}")


def _write_dates(found: Findings, proposals: Sequence[DateProposal]) -> bool:
    """Date the files one by one; what cannot be written now is told, and the others go on."""
    done = True
    locks = Locks(found.session.state_dir)
    for proposal in proposals:
        name = os.path.relpath(proposal.path, found.folder)
        try:
            remark = write_dates(proposal, locks, time.time())
        except (KbdError, FileNotFoundError) as error:
            remark = str(error)
        done = done and not remark
        emit(safe(f"{name}: {remark}" if remark else f"{name}: {counted(len(proposal.days), 'date')} written"))
    return done


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"
