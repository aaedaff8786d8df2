"""`kbd log`: what happened to entries and files."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import click

from kbd.cli.changing import NEVER_RUN
from kbd.cli.known import known_bases
from kbd.cli.output import emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.errors import UsageError
from kbd.service import report
from kbd.store.ledger import Ledger, lessons
from kbd.store.ledger.evidence import Logged, events_since, former_names


@click.command("log")
@click.option("--since", metavar="DAY", help="From this day on; also 30d.")
@click.option("--entry", "name", metavar="TITLE|HANDLE|ID", help="Only this entry.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def log(session: Session, since: str | None, name: str | None, as_json: bool) -> int:
    """Show what happened to entries and files, oldest first."""
    day = first_day(session, since) if since else None
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        entry = entry_id(session, ledger, name) if name else None
        events = events_since(ledger.db, day=day, entry=entry)
    if as_json:
        emit_json({"events": [event_json(event) for event in events]})
    else:
        for event in events:
            emit(event_line(event))
        if not events:
            say("nothing happened")
    return 0


def entry_id(session: Session, ledger: Ledger, name: str) -> int:
    """Return the entry that a name means, those that are gone among them."""
    listed = []
    for known in known_bases(session, ledger, session.config.bases):
        if known.row is not None:
            rows = lessons.entries_of(ledger.db, known.row.id, gone=True)
            listed += report.list_base(known.name, [row for row in rows if "\0" not in row.norm], {})
    present = [one for one in listed if one.entry.gone_on is None]
    names = {one.entry.norm for one in present}
    listed = present + [one for one in listed if one.entry.gone_on is not None and one.entry.norm not in names]
    return report.find(listed, name, lambda text: former_names(ledger.db, text)).entry.id


def first_day(session: Session, text: str) -> date:
    """Return the day that `--since` names: itself, or so many days ago."""
    span = re.fullmatch(r"(\d{1,5})d", text)
    try:
        return session.today - timedelta(days=int(span[1])) if span else date.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--since: {text!r} is no day", hint="write 2026-06-11 or 30d") from error


def event_line(event: Logged) -> str:
    """Return an event as one line, fit for a terminal."""
    title = [f'"{event.title}"'] if event.title else []
    return safe("  ".join([f"{minute(event.at)} {event.kind}", *title, event.detail])).rstrip()


def event_json(event: Logged) -> dict[str, object]:
    """Return an event with its fields."""
    return {"at": event.at, "kind": event.kind, "base": event.base, "title": event.title, "handle": event.handle,
            "detail": event.detail}  # fmt: skip


def minute(at: str) -> str:
    """Return an ISO time as `2026-06-11 14:00`, UTC."""
    return datetime.fromisoformat(at).astimezone(UTC).strftime("%Y-%m-%d %H:%M")
