"""Whether a ledger holds what a ledger holds: SQLite's own checks, its tables, and each value as it is read back.

SQLite vouches for its pages and not for what stands in them: noise inside a text or the hand of another program pass
its checks and stop a pass later on. So every value is read once as it will be read.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from types import NoneType
from typing import Any

import msgspec

from kbd.core.model import State
from kbd.store.ledger.schema import TABLES

UNTRUSTED = (sqlite3.DatabaseError, ValueError, TypeError, LookupError, ArithmeticError, msgspec.MsgspecError)
"""What a damaged ledger may raise wherever it is read. A fault of kbd raises the same: `fault_of` tells."""

_REFUSALS = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_OWNERS = (("holders", "file", "files"), ("mentions", "entry", "entries"), ("refs", "entry", "entries"))
_TYPES = {"INTEGER": int, "TEXT": str, "BLOB": bytes, "REAL": float}

Read = Callable[[Any], object]


def is_refusal(error: sqlite3.Error) -> bool:
    """Tell whether the world refused what SQLite wanted; else it is the database that is not as it should be."""
    # What Python's own module finds, such as bytes that are no text, carries no code.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _REFUSALS


def fault_of(db: sqlite3.Connection) -> str:
    """Return what is wrong with a ledger, "" if it is sound. It is read as a whole.

    Raises:
        sqlite3.OperationalError: the world refuses to let it be read, which says nothing of the ledger.
    """
    try:
        return _told_by_sqlite(db) or _lacks(db) or next(filter(None, map(lambda t: _misread(db, t), _shape())), "")
    except sqlite3.DatabaseError as error:
        if is_refusal(error):
            raise
        return str(error)
    except UnicodeDecodeError:  # of its schema, which the message of the error quotes
        return "its schema is no text"


def _told_by_sqlite(db: sqlite3.Connection) -> str:
    said = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if said != "ok":
        return said
    if not db.execute("SELECT 1 FROM meta WHERE key='id'").fetchone():
        return "has no id"
    number = db.execute("SELECT value FROM meta WHERE key='generation'").fetchone()
    if number and not re.fullmatch("[0-9]{1,18}", str(number[0])):
        return "its generation is no number"
    orphan = db.execute("PRAGMA foreign_key_check").fetchone()
    return f"a row of {orphan[0]} belongs to none of {orphan[2]}" if orphan else _orphan(db)


def _orphan(db: sqlite3.Connection) -> str:
    for table, column, owner in _OWNERS:
        rows = f"SELECT 1 FROM {table} WHERE {column} NOT IN (SELECT id FROM {owner}) LIMIT 1"  # noqa: S608 - constants
        if db.execute(rows).fetchone():
            return f"a row of {table} belongs to none of {owner}"
    return ""


@cache
def _shape() -> Mapping[str, tuple[tuple[str, str, bool], ...]]:
    """Return the tables with their columns: name, declared type, whether NULL may stand there."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(TABLES)
        return {table: _columns(db, table) for table in _names(db, "table")}


@cache
def _indexes() -> frozenset[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(TABLES)
        return frozenset(_names(db, "index"))


def _names(db: sqlite3.Connection, kind: str) -> list[str]:
    return [str(r[0]) for r in db.execute("SELECT name FROM sqlite_master WHERE type=?", (kind,))]


def _columns(db: sqlite3.Connection, table: str) -> tuple[tuple[str, str, bool], ...]:
    return tuple((r[1], r[2], not (r[3] or r[5])) for r in db.execute(f"PRAGMA table_info({table})"))


def _lacks(db: sqlite3.Connection) -> str:
    there = set(_names(db, "table"))
    for table, columns in _shape().items():
        missing = {name for name, _, _ in columns} - {name for name, _, _ in _columns(db, table)}
        if table not in there or missing:
            return f"has no {table}" + (f".{sorted(missing)[0]}" if table in there else "")
    index = sorted(_indexes() - set(_names(db, "index")))
    return f"has no index {index[0]}" if index else ""


def _misread(db: sqlite3.Connection, table: str) -> str:
    """Return what column of a table holds something that it cannot hold, "" if none does."""
    names = [name for name, _, _ in _shape()[table]]
    readers = [(at, read) for at, name in enumerate(names) if (read := _readers().get(f"{table}.{name}"))]
    known: set[tuple[type, ...]] = set()
    rows = db.cursor()
    rows.row_factory = None
    try:
        for row in rows.execute(f"SELECT {', '.join(names)} FROM {table}"):  # noqa: S608 - names are ours
            if (types := tuple(map(type, row))) not in known:
                if name := _of_another_kind(table, types):
                    return f"{table}.{name} holds a value of another kind"
                known.add(types)
            for at, read in readers:
                if row[at] is not None and not _can(read, row[at]):
                    return f"{table}.{names[at]} holds what cannot be read"
    except sqlite3.OperationalError as error:
        if is_refusal(error):
            raise
        return f"{table} holds bytes that are no text"
    return ""


def _of_another_kind(table: str, types: tuple[type, ...]) -> str:
    for (name, declared, may_be_null), kind in zip(_shape()[table], types, strict=True):
        if kind is not _TYPES[declared] and not (kind is NoneType and may_be_null):
            return name
    return ""


def _can(read: Read, value: object) -> bool:
    try:
        read(value)
    except UNTRUSTED:
        return False
    return True


def _day_or_none(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


def _time_or_none(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _listed(text: str) -> list[object]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("no list")
    return found


@cache
def _readers() -> Mapping[str, Read]:
    """Return how the columns are read that hold more than their type says."""
    # Brings the matcher, which commands that only read do without.
    from kbd.core.silence import Remembered  # noqa: PLC0415 - see above
    from kbd.store.ledger.transcripts import Origin  # noqa: PLC0415 - see above
    from kbd.store.position import Position  # noqa: PLC0415 - see above

    states: dict[str, State | None] = {"": None} | {state.value: state for state in State}
    kinds: dict[Read, str] = {
        date.fromisoformat: "bases.first_read bases.decay_after bases.last_decay entries.created entries.first_seen "
        "entries.covers entries.last_floor entries.wrote_last entries.due_last entries.file_last "
        "entries.dormant_since entries.archived_since entries.active_since entries.gone_on entries.last "
        "patterns.earns_from patterns.until bodies.day activity.day base_activity.day seen_sessions.day messages.day "
        "refs.day set_aside.day events.day",
        _day_or_none: "pairs.last",
        datetime.fromisoformat: "marks.at messages.at holders.at holders.told undo.at events.at files.read_at",
        _time_or_none: "sources.last_record_at files.last_record_at",
        _listed: "notes.problems mentions.files",
        msgspec.json.Decoder(Position).decode: "files.position files.old_position",
        msgspec.json.Decoder(tuple[Origin, ...]).decode: "files.origins files.old_origins",
        msgspec.json.Decoder(dict[str, Remembered]).decode: "files.silence",
        states.__getitem__: "entries.state entries.wrote_state entries.due_state entries.file_state",
    }
    return {column: read for read, columns in kinds.items() for column in columns.split()}
