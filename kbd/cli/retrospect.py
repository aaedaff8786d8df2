"""`kbd report`: what became of the lessons lately."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import click

from kbd.cli.changing import NEVER_RUN
from kbd.cli.history import first_day
from kbd.cli.known import chosen_bases, known_bases
from kbd.cli.output import Column, counted, emit, emit_json, fit, safe, table, terminal_width
from kbd.cli.session import Session
from kbd.errors import UsageError
from kbd.service.retrospect import Retrospect, Span, look_back
from kbd.store.ledger.evidence import events_since

SHOWN = 10


@click.command("report")
@click.option("--since", metavar="DAY", default="7d", show_default=True, help="From this day on; 30d: 30 days.")
@click.option("--base", help="Only this base.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, nothing left out.")
@click.pass_obj
def report(session: Session, since: str, base: str | None, as_json: bool) -> int:
    """Look back: what was cited most, what is new, revived, faded and archived, and what nobody ever cited."""
    day = first_day(session, since)
    # Today is one of the last 7 days, as in the references of 7 days that `kbd status` shows.
    span = Span(day + timedelta(days=since.endswith("d")), session.today)
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        events = events_since(ledger.db, day=span.since)
        found = [
            look_back(ledger, known.name, known.row.id, known.entries, events, span)
            for known in known_bases(session, ledger, chosen_bases(session.config, base))
            if known.row is not None
        ]
    if as_json:
        emit_json({"since": span.since.isoformat(), "until": span.until.isoformat(),
                   "bases": [one.as_json() for one in found]})  # fmt: skip
        return 0
    emit(f"{span.since} to {span.until}")
    for one in found:
        for line in _lines(one):
            emit(line)
    return 0


def _lines(one: Retrospect) -> Iterator[str]:
    columns = terminal_width()
    yield ""
    told = f"{counted(one.references, 'reference')} in {counted(one.sessions, 'session')}"
    yield f"{click.style(safe(one.base), bold=True)}  {told}, {counted(len(one.cited), 'entry')} cited"
    if one.cited:
        yield ""
        heads = [Column("refs", "right"), Column("sessions", "right"), Column("handle"), Column("cited most")]
        rows = [
            (f"{c.references:,}", f"{c.sessions:,}", c.entry.handle, safe(c.entry.title)) for c in one.cited[:SHOWN]
        ]
        yield from table(heads, rows, indent="  ")
        yield from _rest(len(one.cited))
    for name, events in one.changes.items():
        if events:
            yield from ("", click.style(f"{name}  ({len(events):,})", bold=True))
        yield from (fit(f"  {e.at[:10]}  {e.handle}  {safe(e.title)}", columns) for e in events[-SHOWN:])
        yield from _rest(len(events))
    if one.never_cited:
        yield from ("", click.style(f"never cited  ({len(one.never_cited):,} of {one.live:,})", bold=True))
    for row in one.never_cited[:SHOWN]:
        yield fit(f"  {row.created or 'no date   '}  {row.handle}  {safe(row.title)}", columns)
    yield from _rest(len(one.never_cited))


def _rest(number: int) -> Iterator[str]:
    if number > SHOWN:
        yield f"  … and {number - SHOWN:,} more; --json has all"
