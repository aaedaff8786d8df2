"""`kbd list` and `kbd show`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import click

from kbd.cli.known import Known, chosen_bases, known_bases
from kbd.cli.output import Column, counted, emit, emit_json, fit, safe, say, table, terminal_width, wrapped
from kbd.cli.session import Session
from kbd.config.policies import entry_types
from kbd.core.model import Relation, State
from kbd.errors import UsageError
from kbd.service import report
from kbd.service.report import Listed, Shown
from kbd.store.ledger import Ledger
from kbd.store.ledger.evidence import Evidence, former_names

EVIDENCE_SHOWN = 20
STATE_COLOURS = (("active", "green"), ("dormant", "yellow"), ("archived", "bright_black"))
NEVER_RUN = "nothing was read yet; `kbd run`, or once: `kbd run --once`"


@click.command("list")
@click.option("--all", "archived", is_flag=True, help="Archived entries, too.")
@click.option("--base", help="Only this base.")
@click.option("--type", "type_", help="Only entries of this type.")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only entries in this state.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def list_entries(
    session: Session, archived: bool, base: str | None, type_: str | None, state: str | None, as_json: bool
) -> int:
    """List the entries: references, last citation, and in how many days each fades."""
    if type_ is not None and type_.lower() not in entry_types(session.config):
        raise UsageError(f"no type is named {type_!r}", hint=f"known: {', '.join(sorted(entry_types(session.config)))}")
    with session.reading() as ledger:
        if ledger is None:
            say(NEVER_RUN)
        found = report.select(
            _listed(known_bases(session, ledger, chosen_bases(session.config, base))),
            archived=archived,
            type_=type_ and type_.lower(),
            state=State(state) if state else None,
        )
    if as_json:
        emit_json({"entries": [one.as_json() for one in found]})
    elif found:
        _print_entries(found, session.today, with_base=len({one.base for one in found}) > 1)
    elif ledger is not None:
        say("no entries")
    return 0


def _listed(bases: list[Known]) -> list[Listed]:
    return [one for base in bases for one in report.list_base(base.name, base.entries, base.forecasts)]


def _print_entries(found: list[Listed], today: date, *, with_base: bool) -> None:
    columns = [
        Column("handle"),
        Column("state", colours=STATE_COLOURS),
        Column("ref", "right"),
        Column("last"),
        Column("falls in", "right"),
        Column("type"),
        Column("title"),
    ]
    rows = [
        [
            row.handle,
            row.state.value,
            str(row.ref),
            report.iso(row.last) or "never",
            _falls_in(one, today),
            row.type,
            safe(row.title),
        ]
        for one in found
        for row in [one.entry]
    ]
    if with_base:
        columns.insert(1, Column("base"))
        for cells, one in zip(rows, found, strict=True):
            cells.insert(1, safe(one.base))
    for line in table(columns, rows):
        emit(line)


def _falls_in(one: Listed, today: date) -> str:
    day = one.forecast.dormant_on or one.forecast.archived_on
    if day is None:
        return "-"
    return f"{(day - today).days} d" if day > today else "now"


@click.command("show")
@click.argument("name", metavar="TITLE|HANDLE|ID")
@click.option("--base", help="Only this base.")
@click.option("--limit", type=click.IntRange(min=0), help=f"Pieces of evidence; default {EVIDENCE_SHOWN}, in JSON all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def show(session: Session, name: str, base: str | None, limit: int | None, as_json: bool) -> int:
    """Show an entry: where its number comes from, who cited it when, its relations and its history.

    Any part of the title that only one entry has will do; FILE:LINE as well.
    """
    if as_json:
        emit_json(shown_now(session, name, base, limit))
        return 0
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        shown, known = _find(session, ledger, name, base, EVIDENCE_SHOWN if limit is None else limit)
        for line in _lines(shown, known, session.today, _why_deferred(ledger, shown.listed.entry.file)):
            emit(line)
    return 0


def shown_now(session: Session, name: str, base: str | None, limit: int | None) -> dict[str, object]:
    """Return what `kbd show --json` says of the entry that a name means; raises UsageError. None: all the evidence."""
    from kbd.service.context import Book, standing  # noqa: PLC0415 - brings the ranking, which no screen needs

    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        shown, known = _find(session, ledger, name, base, limit)
    book = Book(known.name, known.entries, known.related.relations or ())
    return shown.as_json() | {"rank": standing(book, session.today, shown.listed.entry)}


def _find(session: Session, ledger: Ledger, name: str, base: str | None, limit: int | None) -> tuple[Shown, Known]:
    db = ledger.db
    bases = known_bases(session, ledger, chosen_bases(session.config, base))
    one = report.find(_listed(bases), name, lambda text: former_names(db, text))
    known = next(base for base in bases if base.name == one.base)
    return report.show(ledger, one, known.related.relations or (), limit), known


def _why_deferred(ledger: Ledger, file: str) -> str:
    row = ledger.db.execute("SELECT what FROM faults WHERE code='write_deferred' AND place=?", (file,)).fetchone()
    return f" ({row[0]})" if row else ""


def _lines(shown: Shown, known: Known, today: date, why: str) -> Iterator[str]:
    row = shown.listed.entry
    yield click.style(safe(row.title), bold=True)
    ident = [row.ident] if row.ident else []
    yield " · ".join(
        [
            row.handle,
            *map(safe, ident),
            f"{row.type} ({row.type_source})",
            click.style(row.state.value, fg=dict(STATE_COLOURS)[row.state.value]),
            safe(shown.listed.base),
        ]
    )
    yield safe(f"{row.file}:{row.line}" + (f"  {row.section}" if row.section else ""))
    yield ""
    difference = report.pending(row, markers=bool(known.policy.marker))
    yield report.origin(row, shown.counted) + (f"; {difference}{safe(why)}" if difference else "")
    yield (
        f"last {row.last or 'never'}, created {row.created or 'unknown'}, "
        f"{counted(row.citations, 'citation')} in {counted(row.sessions, 'session')}"
        + (f", listed in {counted(row.listed, 'message')}" if row.listed else "")
    )
    yield wrapped(_days_to_come(shown.listed, today), terminal_width(), 2).lstrip()
    yield from _evidence(shown, row.citations)
    yield from _relations(shown)
    if shown.history:
        yield from ("", click.style("history", dim=True))
        yield from (f"  {_minute(event.at)}  {event.kind}  {safe(event.detail)}".rstrip() for event in shown.history)


def _days_to_come(listed: Listed, today: date) -> str:
    days = (("dormant", listed.forecast.dormant_on), ("archived", listed.forecast.archived_on))
    told = [f"{state} on {day} (in {counted((day - today).days, 'day')})" for state, day in days if day]
    if told:
        return "if nobody cites it: " + ", ".join(told)
    return "archived; a citation brings it back" if listed.entry.state is State.ARCHIVED else "never fades"


def _evidence(shown: Shown, citations: int) -> Iterator[str]:
    if not shown.evidence:
        return
    of_all = f" (newest {len(shown.evidence)} of {citations})" if citations > len(shown.evidence) else ""
    yield from ("", click.style(f"evidence{of_all}", dim=True))
    for piece in shown.evidence:
        yield from _piece(piece, terminal_width())


def _piece(piece: Evidence, columns: int | None) -> Iterator[str]:
    yield f"  {_minute(piece.at)}  {safe(piece.session)}  {piece.author}"
    if piece.snippet:
        yield fit(f"    “{safe(piece.snippet)}”", columns)
    record = f" record {piece.record}" if piece.record else ""
    yield click.style(safe(f"    {piece.path} at byte {piece.offset}{record}"), dim=True)
    if piece.files:
        yield safe(f"    about {', '.join(piece.files)}")


def _relations(shown: Shown) -> Iterator[str]:
    if shown.relations:
        yield from ("", click.style("relations", dim=True))
    for relation in shown.relations:
        yield "  " + safe(_relation(relation))


def _relation(relation: Relation) -> str:
    when = f"expired {relation.e}" if relation.e else f"used {relation.u or relation.c or 'never'}"
    return f"{relation.s} {relation.p} {relation.o} ({when})"


def _minute(at: str) -> str:
    return datetime.fromisoformat(at).astimezone(UTC).strftime("%Y-%m-%d %H:%M")
