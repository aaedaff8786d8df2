"""`kbd decay` and `kbd forecast`: what fades, when and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from kbd.cli.changing import NEVER_RUN, opened, who_writes
from kbd.cli.history import event_json, event_line, minute
from kbd.cli.known import Known, chosen_bases, known_bases
from kbd.cli.output import counted, emit, emit_json, fit, fitted, safe, say, terminal_width
from kbd.cli.session import Session
from kbd.core.sight import Sight, day_has_begun, next_run
from kbd.errors import Refused, UsageError
from kbd.service import foretell, lifecycle
from kbd.service.foretell import Exempt, Fall
from kbd.service.lifecycle import SourceSight
from kbd.store.ledger import Ledger, standing
from kbd.store.ledger.evidence import events_since
from kbd.store.ledger.survey import source_sums
from kbd.store.locks import InstanceLock, running_pid
from kbd.store.pausing import pause_in_force


@click.command("forecast")
@click.option("--days", type=click.IntRange(1, 36_500), default=90, show_default=True, help="How far to look.")
@click.option("--base", help="Only this base.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def forecast(session: Session, days: int, base: str | None, as_json: bool) -> int:
    """Show what turns dormant or archived when, if nobody cites it, and what never does.

    Many entries of one day are spread by the daily limit (`change_fraction`).
    """
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        bases = known_bases(session, ledger, chosen_bases(session.config, base))
        sight = _sight(session, ledger, bases)
    until = session.today + timedelta(days=days)
    found = [fall for known in bases for fall in foretell.falls(known.name, known.entries, known.forecasts, until)]
    exempt = [one for known in bases for one in foretell.exempt(known.name, known.entries, known.policy)]
    following = _next_run(session, bases)
    if as_json:
        emit_json({"next_run": following, "days": days, "sight": _sight_json(sight),
                   "falls": [fall.as_json() for fall in sorted(found, key=lambda fall: fall.on)],
                   "exempt": [one.as_json() for one in exempt]})  # fmt: skip
        return 0
    for line in _calendar(found, exempt, following, days):
        emit(line)
    _say_sight(sight)
    return 0


def _calendar(found: list[Fall], exempt: list[Exempt], following: str | None, days: int) -> Iterator[str]:
    columns = terminal_width()
    yield f"next decay pass: {minute(following) if following else 'the day after the first reading'}"
    if not found:
        yield f"nothing fades in the next {counted(days, 'day')}"
    for monday, week in foretell.by_week(found).items():
        yield ""
        yield click.style(f"week of {monday}  ({counted(len(week), 'entry')})", bold=True)
        for fall in week:
            yield fit(f"  {fall.on:%a} {fall.on}  {fall.to.value:8}  {fall.handle}  {safe(fall.title)}", columns)
    if exempt:
        yield ""
        yield click.style(f"never fades  ({counted(len(exempt), 'entry')})", bold=True)
    for one in exempt:
        yield fitted(f"  {one.handle}  ", safe(one.title), f"  ({safe(one.why)})", columns)


@click.command("decay")
@click.option("--base", help="Only this base.")
@click.option("--dry-run", is_flag=True, help="Show what the next pass would do, with reasons, and what holds it back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def decay(session: Session, base: str | None, dry_run: bool, as_json: bool) -> int:
    """Run the daily pass now, instead of at its hour. A UTC day has one; there is no second."""
    if dry_run:
        return _show_plan(session, base, as_json=as_json)
    pause = pause_in_force(session.state_dir, session.real_now())
    if pause is not None:
        raise Refused(f"paused {pause.words()}", hint="`kbd resume` ends the pause")
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        bases = known_bases(session, ledger, chosen_bases(session.config, base))
        newest = ledger.db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0]
    due = [known for known in bases if known.row and day_has_begun(known.row.last_pass, session.now())]
    if due:
        _run_pass(session, due)
    with session.reading() as ledger:
        events = events_since(ledger.db, after=newest) if ledger else []
    events = [event for event in events if event.kind.startswith("to_") or event.kind == "no_sight"]
    following = _next_run(session, known_bases_now(session, base))
    if as_json:
        emit_json({"ran": bool(due), "next_run": following, "events": [event_json(event) for event in events]})
        return 0
    for event in events:
        emit(event_line(event))
    has_run = any(known.row and known.row.last_decay for known in bases)
    idle = "today's pass has run" if has_run else "the first pass waits a day after the first reading"
    done = counted(len(events), "change") if due else idle
    say(f"{done}; the next is due {minute(following) if following else 'the day after the first reading'}")
    return 0


def known_bases_now(session: Session, base: str | None) -> list[Known]:
    """Return the bases as the ledger knows them now."""
    with session.reading() as ledger:
        return known_bases(session, ledger, chosen_bases(session.config, base))


def _run_pass(session: Session, due: Sequence[Known]) -> None:
    """Read what is left, then let entries fade; with a daemon that has read everything, only the latter."""
    if running_pid(session.state_dir) is None:
        with InstanceLock(session.state_dir), opened(session) as (engine, clock):
            for problem in engine.run_pass(clock, immediate=True).problems:
                say(f"{problem.where}: {problem.what}; {problem.hint}")
        return
    with opened(session) as (engine, clock):
        ledger = engine.frame.ledger
        lag = sum(sums.lag_bytes for sums in source_sums(ledger.db) if _is_configured(session, sums.name))
        if lag:
            raise Refused(f"{lag} bytes of transcripts are not read yet", hint="the daemon is at it; try again")
        for known in due:
            if known.row is not None:
                sights = _sights(session, ledger)
                relations = known.related.relations or ()
                lifecycle.decay(ledger, known.row.id, known.policy, relations, sights, clock.now)
    say(who_writes(session))


def _show_plan(session: Session, base: str | None, *, as_json: bool) -> int:
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        bases = known_bases(session, ledger, chosen_bases(session.config, base))
        shown = [_plan(session, ledger, known) for known in bases if known.row is not None]
    if as_json:
        emit_json({"bases": shown})
        return 0
    for plan in shown:
        for line in _plan_lines(plan, with_base=len(shown) > 1):
            emit(line)
    return 0


def _plan(session: Session, ledger: Ledger, known: Known) -> dict[str, object]:
    """Return what a pass on the session's day would do, whether or not the day has had one."""
    assert known.row is not None  # noqa: S101 - for the type checker
    relations = known.related.relations or ()
    sights = _sights(session, ledger)
    done = lifecycle.decay(ledger, known.row.id, known.policy, relations, sights, session.now(), dry_run=True)
    transitions, held = foretell.steps(done.plan, known.entries)
    return {"name": known.name, "due": day_has_begun(known.row.last_pass, session.now()),
            "next_run": _next_run(session, [known]), "sight": _sight_json(done.plan.sight),
            "transitions": transitions, "held": held}  # fmt: skip


def _plan_lines(plan: dict[str, object], *, with_base: bool) -> Iterator[str]:
    transitions, held, sight = plan["transitions"], plan["held"], plan["sight"]
    assert isinstance(transitions, list) and isinstance(held, list) and isinstance(sight, dict)  # noqa: S101 - for the type checker
    following = plan["next_run"]
    if with_base:
        yield click.style(safe(str(plan["name"])), bold=True)
    yield f"next decay pass: {minute(str(following)) if following else 'the day after the first reading'}"
    for reason in sight["reasons"]:
        yield click.style(safe(f"no sight, nothing falls: {reason['where']}: {reason['what']}"), fg="yellow")
    yield from map(_step_line, transitions)
    if not transitions:
        yield "  nothing changes"
    if held:
        yield f"held back  ({counted(len(held), 'entry')})" + (": the daily limit" if sight["ok"] else "")
    yield from map(_step_line, held)


def _step_line(step: dict[str, object]) -> str:
    days = step["idle_days"]
    idle = counted(days, "day") if isinstance(days, int) else "no date"
    columns = terminal_width()
    return fitted(
        f"  {step['from']} → {step['to']}  {step['handle']}  ",
        safe(str(step["title"])),
        f"  ({step['reason']}: {idle})",
        columns,
    )


def _next_run(session: Session, bases: Sequence[Known]) -> str | None:
    """Return when the next pass is due, ISO, UTC; None before the first reading."""
    last = [(known.policy.at, known.row.last_pass) for known in bases if known.row and known.row.last_pass]
    runs = [next_run(day, at, session.now(), session.zone) for at, day in last]
    return min(runs).isoformat(timespec="seconds") if runs else None


def _sights(session: Session, ledger: Ledger) -> list[SourceSight]:
    """Return what the last pass that looked everywhere knew of the configured sources."""
    blind = {p.where for p in standing.faults(ledger.db) if p.code in ("source_unreadable", "source_missing")}
    alarms = lifecycle.format_alarms(ledger.db)
    sums = [one for one in source_sums(ledger.db) if _is_configured(session, one.name)]
    return [SourceSight(one.name, one.root not in blind, one.name in alarms) for one in sums]


def _is_configured(session: Session, name: str) -> bool:
    """Tell whether a source of the ledger is one of the configuration; the second root of `codex` is `codex-2`."""
    return bool({name, re.sub(r"-[0-9]+\Z", "", name)} & {source.name for source in session.config.sources})


def _sight(session: Session, ledger: Ledger, bases: Sequence[Known]) -> Sight:
    read = [known.row.id for known in bases if known.row is not None]
    return lifecycle.see_any(ledger.db, read, _sights(session, ledger), bases[0].policy, session.today)


def _sight_json(sight: Sight) -> dict[str, object]:
    reasons = [{"where": p.where, "what": p.what, "hint": p.hint} for p in sight.reasons]
    return {"ok": sight.ok, "reasons": reasons}


def _say_sight(sight: Sight) -> None:
    for problem in sight.reasons:
        say(f"no sight, so nothing falls: {problem.where}: {problem.what}; {problem.hint}")
