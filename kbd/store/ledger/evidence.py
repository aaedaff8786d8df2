"""What the ledger can show for an entry: the citations behind its number, and what happened to it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import date

from kbd.store.ledger.counts import COUNTING


@dataclass(frozen=True, slots=True)
class Evidence:
    """One citation, as found in its earliest holder.

    Attributes:
        session: whom it counts for; `at`: time of its message, ISO, UTC.
        record: id of the record in the transcript at `path`, byte offset `offset`; "", "" and 0 once forgotten.
        snippet: the words around it, "" if none were kept.
        author: class of the text.
        files: the files it was about, as in relations.
    """

    session: str
    record: str
    at: str
    path: str
    offset: int
    snippet: str
    author: str
    files: tuple[str, ...]


def evidence_of(db: sqlite3.Connection, entry: int, limit: int | None = None) -> list[Evidence]:
    """Return the citations that count for an entry, newest first; also those its file's number covers.

    A block that names the entry by title and by handle is one citation.
    """
    rows = db.execute(
        f"SELECT g.id AS message, g.session, g.at, b.author, m.snippet, m.files, min(m.pattern) {COUNTING} "
        "GROUP BY m.block ORDER BY g.at DESC, m.block DESC LIMIT :limit",
        {"entry": entry, "limit": -1 if limit is None else limit},
    ).fetchall()
    return [_evidence(db, row) for row in rows]


def _evidence(db: sqlite3.Connection, row: sqlite3.Row) -> Evidence:
    held = db.execute(
        "SELECT record, path, offset FROM holders WHERE message=? ORDER BY told, birth_ns, file, path LIMIT 1",
        (row["message"],),
    ).fetchone()
    record, path, offset = held or ("", "", 0)
    files = tuple(json.loads(row["files"]))
    return Evidence(row["session"], record, row["at"], path, offset, row["snippet"], row["author"], files)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an entry: `kind` as in the log, `at` ISO, UTC."""

    at: str
    kind: str
    title: str
    detail: str


def events_of(db: sqlite3.Connection, entry: int) -> list[Event]:
    """Return what happened to an entry, oldest first."""
    rows = db.execute("SELECT at, kind, title, detail FROM events WHERE entry=? ORDER BY id", (entry,))
    return [Event(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log: an event with the base and the entry concerned, "" where there is none."""

    at: str
    kind: str
    base: str
    title: str
    handle: str
    detail: str


def events_since(
    db: sqlite3.Connection, *, day: date | None = None, entry: int | None = None, after: int = 0
) -> list[Logged]:
    """Return what happened, oldest first: from a day on, to one entry, after an event of a number."""
    rows = db.execute(
        "SELECT v.at, v.kind, coalesce(b.name, ''), v.title, coalesce(e.handle, ''), v.detail FROM events v "
        "LEFT JOIN bases b ON b.id=v.base LEFT JOIN entries e ON e.id=v.entry "
        "WHERE v.id>?1 AND v.day>=?2 AND (?3 IS NULL OR v.entry=?3) ORDER BY v.id",
        (after, day.isoformat() if day else "", entry),
    )
    return [Logged(*row) for row in rows]


def overruled_since(db: sqlite3.Connection, day: str) -> list[Event]:
    """Return the hand edits that were overruled on or after a day, newest first."""
    rows = db.execute(
        "SELECT at, kind, title, detail FROM events WHERE kind='overruled' AND day>=? ORDER BY id DESC", (day,)
    )
    return [Event(*row) for row in rows]


def former_names(db: sqlite3.Connection, text: str) -> list[int]:
    """Return the entries that a title, handle or id named before it was edited, as long as it still cites them."""
    rows = db.execute("SELECT DISTINCT entry FROM patterns WHERE text=? AND until IS NOT NULL ORDER BY entry", (text,))
    return [int(row[0]) for row in rows]
