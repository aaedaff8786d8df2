"""The screen of `kbd init`: what was found, what kbd would write, and what would fade when."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from difflib import unified_diff

import click

from kbd.cli.findings import Findings
from kbd.cli.output import ago, counted, emit, safe, sized, terminal_width, wrapped
from kbd.config import data_dir
from kbd.config.builtin import LESSONS
from kbd.config.policies import decay_policy
from kbd.core.model import Entry
from kbd.service.agents import by_agent
from kbd.service.dating import count
from kbd.service.outlook import Day, outlook, subjects
from kbd.store.gitstate import in_git
from kbd.store.knowledge_paths import git_root

FORECAST_DAYS = 365
DIFF_LINES = 40


def show(found: Findings, old: bytes | None, *, with_dates: bool) -> None:
    """Print it; `old` is the configuration that stands there now."""
    sections = [
        ("Agents", _agent_lines(found)),
        (f"Knowledge in {found.short(found.folder)}", _knowledge_lines(found)),
        ("kbd would write", _writing_lines(found)),
        ("To merge counters in git (optional)", _git_lines(found)),
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
            emit(_styled(line).rstrip())


def _styled(line: str) -> str:
    """Wrap what is said; what is quoted (indented, or a configuration) stays as it is, additions coloured."""
    text = safe(line)
    colour = {"+": "green", "-": "red"}.get(text.strip()[:1])
    if text.startswith("    ") and colour:
        return f"  {click.style(text, fg=colour)}"
    return f"  {text}" if text.startswith("  ") else wrapped(text, terminal_width(), 2)


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
    yield "under each cited entry: <!-- ref:1 | last:2026-06-11 | decay:active -->"
    yield "a mark before entries that fade, and in time their move to NAME-archive.md beside the file"
    yield f"which files a lesson applies to: {found.short(found.config.bases[0].relations)}"
    yield f"evidence, backups, locks: {found.short(str(found.session.state_path))}"
    if any(in_git(one.path) for one in found.candidates):
        yield "the knowledge lies in git: written every 15 minutes at most, never committed"


def _git_lines(found: Findings) -> Iterator[str]:
    """Say which lines let git merge counters: they are the user's to add."""
    roots: dict[str, list[str]] = {}
    for one in found.candidates:
        real = os.path.realpath(one.path)
        root = git_root(os.path.dirname(real))
        if root is not None:
            roots.setdefault(root, []).append(os.path.relpath(real, root))
    for root, names in roots.items():
        yield f"  {found.short(root)}/.gitattributes:"
        yield from (f"    {_attribute_path(name)} merge=kbd" for name in names)
        yield "  once in each clone:"
        yield '    git config merge.kbd.driver "kbd merge-driver %O %A %B"'


def _attribute_path(name: str) -> str:
    """Return a path as gitattributes(5) reads it: quoted where it holds spaces or quotes."""
    if not re.search(r'[\s"\\]', name):
        return "/" + name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"/{escaped}"'


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
    yield from (f"    {line}" for line in diff[:DIFF_LINES])
    if len(diff) > DIFF_LINES:
        yield f"    … {len(diff) - DIFF_LINES} more lines"


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


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"
