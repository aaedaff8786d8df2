"""A person's decisions about one entry: its counters, its state, its exemption from fading, its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from kbd.core import entries as markdown
from kbd.core import splice
from kbd.core.entries import Parsed
from kbd.core.model import Entry, State
from kbd.core.undoing import moved
from kbd.errors import ChangedUnderneath, Refused, UsageError
from kbd.store.base_files import MAX_BYTES, NoteFile, describe
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, lessons, undo
from kbd.store.ledger.counts import counted_references, recount
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks
from kbd.store.notes import is_archive
from kbd.store.replacing import replace_file
from kbd.store.rewrite import Quiet, reason_to_wait

LOCK_SECONDS = 10.0

Resync = Callable[[Sequence[NoteFile]], None]
"""Brings the ledger in step with files that were just read or written under their locks."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of an entry; None leaves a thing as it is. `clear_last`: there shall be no `last`."""

    ref: int | None = None
    last: date | None = None
    clear_last: bool = False
    state: State | None = None
    pinned: bool | None = None


def changes(db: sqlite3.Connection, row: EntryRow, wish: Wish, today: date) -> list[str]:
    """Return in words what a wish would change; nothing if all is so already.

    Raises:
        UsageError: a day ahead.
        Refused: a `last` that evidence denies.
    """
    told = []
    if wish.ref is not None and wish.ref != row.ref:
        told.append(f"ref {row.ref} → {wish.ref}")
    if wish.last is not None or wish.clear_last:
        _check_last(db, row, wish.last, today)
        if wish.last != row.last:
            told.append(f"last {row.last or 'none'} → {wish.last or 'none'}")
    if wish.state is not None and wish.state is not row.state:
        told.append(f"{row.state.value} → {wish.state.value}")
    elif wish.state is State.ACTIVE and row.active_since != today:
        told.append(f"active as before, idle counts from {today}")
    if wish.pinned is not None and wish.pinned is not row.pinned:
        told.append("pinned: it never fades" if wish.pinned else "no longer pinned")
    return told


def _check_last(db: sqlite3.Connection, row: EntryRow, last: date | None, today: date) -> None:
    if last is not None and last > today:
        raise UsageError(f"last {last} lies in the future", hint="give a day up to today")
    days = db.execute("SELECT max(day) FROM refs WHERE entry=? AND day<=?", (row.id, today.isoformat())).fetchone()
    cited = lessons.day(days[0])
    if cited is not None and (last is None or last < cited):
        raise Refused(f"it was cited on {cited}", where=row.title, hint="`kbd show` has the evidence; set a later day")
    if row.covers is not None and (last is None or last < row.covers):
        what = f"its file said last {row.covers} when kbd first saw it, and the number there covers the days until then"
        raise Refused(what, where=row.title, hint="set a later day")


def correct(ledger: Ledger, row: EntryRow, wish: Wish, now: datetime) -> list[str]:
    """Record a wish and return in words what it changed; raises as `changes`. Files follow by projection."""
    with ledger.transaction() as db:
        told = changes(db, row, wish, now.date())
        if not told:
            return []
        if wish.ref is not None:
            lessons.update_entry(db, row.id, adjust=wish.ref - row.base_ref - counted_references(db, row.id))
        if wish.last is not None or wish.clear_last:
            lessons.update_entry(db, row.id, last_floor=wish.last)
        recount(db, [row.id], now.date())
        if wish.state is not None and (wish.state is not row.state or wish.state is State.ACTIVE):
            lessons.set_state(db, row.id, wish.state, now.date(), archive=is_archive(row.file))
        if wish.pinned is not None:
            lessons.update_entry(db, row.id, pinned=wish.pinned)
        kind = f"to_{wish.state.value}" if wish.state is not None and wish.state is not row.state else "corrected"
        detail = f"by command: {', '.join(told)}"
        ledger.record_event(now, kind, base=row.base, entry=row.id, title=row.title, detail=detail)
    return told


@dataclass(frozen=True, slots=True)
class Reader:
    """How knowledge files are read: known entry types and the dormancy marker ("" for none)."""

    types: frozenset[str]
    marker: str

    def parse(self, data: bytes) -> Parsed:
        """Read a knowledge file."""
        return markdown.parse(data, self.types, self.marker)

    def block(self, row: EntryRow, data: bytes) -> Entry:
        """Return an entry's block in its file.

        Raises:
            ChangedUnderneath: no block of its title is there.
        """
        found = list(enumerate(self.parse(data).entries))
        same = [(place != row.place, place) for place, entry in found if entry.norm == row.norm]
        if not same:
            raise ChangedUnderneath("the entry is no longer there", where=row.file, hint="run a pass, then try again")
        return found[min(same)[1]][1]


def block_of(row: EntryRow, reader: Reader) -> bytes:
    """Return the bytes of an entry as they stand in its file now; raises as `Reader.block` and `read_regular`."""
    data = _data(row.file)
    return splice.cut(data, reader.block(row, data))[0]


def _data(path: str) -> bytes:
    try:
        return read_regular(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise ChangedUnderneath("the file is gone", where=path, hint="run a pass, then try again") from error


def resync_file(ledger: Ledger, locks: Locks, row: EntryRow, resync: Resync) -> EntryRow:
    """Take in what an entry's file says now, so that a decision is made on that; return the entry as it is then."""
    with locks.hold([row.file], LOCK_SECONDS):
        resync([describe(row.file, _data(row.file))])
    return lessons.entry_row(ledger.db, row.id)


def forget(
    ledger: Ledger, locks: Locks, row: EntryRow, block: bytes, reader: Reader, resync: Resync, now: datetime
) -> None:
    """Cut an entry's block out of its file and mark the entry as gone.

    The file comes first: whatever happens then, the next sync finds the entry gone.

    Args:
        ledger: open for writing.
        locks: of the state directory.
        row: the entry.
        block: the bytes that the person was shown.
        reader: how its file is read.
        resync: brings the ledger in step with the file.
        now: the time.

    Raises:
        ChangedUnderneath: the block is no longer what was shown; nothing was done.
        Refused: git is at work, or conflict markers stand in the file.
        LockTimeout, FileUnreadable, FileUnwritable: nothing was done.
    """
    with locks.hold([row.file], LOCK_SECONDS):
        data = _data(row.file)
        reason = reason_to_wait(row.file, data, None, Quiet(now.timestamp(), 0.0))
        if reason is not None:
            raise Refused(reason, where=row.file, hint="try again when that is over")
        entry = reader.block(row, data)
        found, rest = splice.cut(data, entry)
        if found != block:
            raise ChangedUnderneath("the entry changed meanwhile", where=row.file, hint="look at it again")
        replace_file(row.file, data, rest)
        with ledger.transaction() as db:
            lessons.update_entry(db, row.id, gone_on=now.date(), moving=None)
            detail = f"from {row.file}:{row.line}, {len(block)} bytes"
            undo.record(db, "forget", row.file, moved(data, rest, entry, reader.parse), now, ids={row.norm: row.id})
            ledger.record_event(now, "forgotten", base=row.base, entry=row.id, title=row.title, detail=detail)
        resync([describe(row.file, rest)])
