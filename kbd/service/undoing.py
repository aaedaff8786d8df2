"""Taking a write of kbd back, byte for byte, as a person's decision that later passes hold to.

The ledger decides first: what the entries will say again becomes what it wants of them, so that a crash between the
ledger and the files leaves a difference that the next pass writes. Then the files are spliced back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kbd.core import relyaml
from kbd.core.entries import Parsed
from kbd.core.model import Entry, Metadata, Pair, State
from kbd.core.undoing import MADE, Change, Parse, between, revert
from kbd.errors import ChangedUnderneath, Refused
from kbd.store.base_files import MAX_BYTES, NoteFile, describe
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, lessons, promise, undo
from kbd.store.ledger.counts import added_after, recount, reference_days
from kbd.store.ledger.lessons import EntryRow
from kbd.store.ledger.undo import Act, WriteRow
from kbd.store.locks import Locks
from kbd.store.notes import is_archive
from kbd.store.removing import is_alone, remove_file
from kbd.store.replacing import replace_file
from kbd.store.rewrite import Quiet, reason_to_wait

LOCK_SECONDS = 10.0
DECIDED = frozenset({undo.COUNTERS, "archive", "restore"})
"""Acts by which the ledger's values got into files; the others are about words only."""

Resync = Callable[[Sequence[NoteFile]], None]
"""Brings the ledger in step with files that were just read or written under their locks."""


@dataclass(frozen=True, slots=True)
class Reverted:
    """A file before and after an undo; `after` is None for one that the act made, and that goes."""

    path: str
    before: bytes
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Undoer:
    """Takes acts back.

    Attributes:
        ledger: open, for writing unless only previews are made.
        locks: of the state directory.
        parse: reads knowledge files with the types and the marker in force.
        markers: dormant entries carry a marker.
        sidecars: counters stand in files beside; comments in the Markdown say nothing.
        relations: paths of relations files: no entries stand in them.
    """

    ledger: Ledger
    locks: Locks
    parse: Parse
    markers: bool
    sidecars: bool = False
    relations: Collection[str] = ()

    def preview(self, act: Act, now: datetime) -> list[Reverted]:
        """Return what an undo would make of the files; raises as `undo`."""
        return [self._reverted(write, now) for write in act.writes]

    def undo(self, act: Act, resync: Resync, now: datetime) -> list[Reverted]:
        """Splice back what an act changed.

        Args:
            act: what to take back; of `about`, a part of one.
            resync: brings the ledger in step with the files.
            now: the time.

        Raises:
            Refused: bytes it wrote have changed since, or git is at work; nothing was changed.
            LockTimeout, FileUnreadable, FileUnwritable: nothing was changed that the next pass does not mend.
        """
        with self.locks.hold([write.path for write in act.writes], LOCK_SECONDS):
            reverted = self.preview(act, now)
            resync([describe(one.path, one.before) for one in reverted if one.path not in self.relations])
            wanted = self._wanted(act, reverted)
            with promise(self.ledger) as db:
                for entry, (where, said) in wanted.items():
                    if act.kind != undo.COUNTERS and (said.meta is None or self.sidecars):
                        said = self._spoken(db, entry, said, archive=is_archive(where))
                    self._decide(db, lessons.entry_row(db, entry), said, now, archive=is_archive(where))
            # What takes a block in comes before what lets it go: a crash in between leaves it in both.
            for one in sorted(reverted, key=lambda one: len(one.before) > len(one.after or b"")):
                _write(one)
            self._confirm(act, wanted, now)
            resync([describe(one.path, one.after) for one in reverted if one.after and one.path not in self.relations])
        return reverted

    def _reverted(self, write: WriteRow, now: datetime) -> Reverted:
        try:
            data = read_regular(write.path, MAX_BYTES)
        except FileNotFoundError as error:
            raise ChangedUnderneath("the file is gone", where=write.path, hint="nothing was undone") from error
        reason = reason_to_wait(write.path, data, None, Quiet(now.timestamp(), 0.0))
        if reason is not None:
            raise Refused(reason, where=write.path, hint="try again when that is over")
        changes = [change for _, change in write.changes]
        after = self._without(data, changes, write.path)
        made = any(change.offset == MADE for change in changes) and is_alone(write.path)
        return Reverted(write.path, data, None if made and not after else after)

    def _without(self, data: bytes, changes: Sequence[Change], path: str) -> bytes:
        """Return a file with the changes taken back; relations go whatever days of their use kbd noted since."""
        try:
            return revert(data, changes, self.parse, path)
        except Refused:
            if path not in self.relations:
                raise
            added = [one for change in changes for one in relyaml.parse(change.new, path).relations]
            return relyaml.remove(data, added, path)

    def _wanted(self, act: Act, reverted: Sequence[Reverted]) -> dict[int, tuple[str, Entry]]:
        """Return what the entries concerned will say again, and where; raises Refused if one would not be there."""
        if act.kind not in DECIDED:
            return {}
        parsed: Mapping[str, Parsed] = {one.path: self.parse(one.after or b"") for one in reverted}
        wanted: dict[int, tuple[str, Entry]] = {}
        for number in act.entries:
            row = lessons.entry_row(self.ledger.db, number)
            found = [(path, one) for path, file in parsed.items() for one in file.entries if one.norm == row.norm]
            if row.moving is not None:
                raise Refused(f"'{row.title}' is on its way to or from its archive", hint="try again after a pass")
            if len(found) != 1 or row.gone_on is not None:
                what = f"'{row.title}' is no longer there, or twice"
                raise Refused(what, where=act.writes[0].path, hint="nothing was undone")
            wanted[number] = found[0]
        return wanted

    def _spoken(self, db: sqlite3.Connection, entry: int, said: Entry, *, archive: bool) -> Entry:
        """Return a block whose counters stand elsewhere as if it said them: they stay as they are."""
        row = lessons.entry_row(db, entry)
        awake = State.DORMANT if row.state is State.DORMANT else State.ACTIVE
        return replace(said, meta=Metadata(row.ref, row.last, True, State.ARCHIVED if archive else awake))

    def _decide(self, db: sqlite3.Connection, row: EntryRow, said: Entry, now: datetime, *, archive: bool) -> None:
        """Let the ledger want what an entry says again: references that this denies are set aside.

        Those that came after the write, and wait for the next one, count on top.
        """
        state = _state(said, archive=archive)
        pair = Pair(said.meta.ref or 0, said.meta.last) if said.meta else Pair(0, None)
        last, written = pair.last.isoformat() if pair.last else "", row.file_last.isoformat() if row.file_last else "~"
        denied = [(row.id, session, day) for session, day in reference_days(db, row.id) if last < day <= written]
        db.executemany("INSERT OR IGNORE INTO set_aside VALUES (?,?,?)", denied)
        if row.last_floor is not None and row.last_floor.isoformat() > last:
            lessons.update_entry(db, row.id, last_floor=pair.last)
        recount(db, [row.id], now.date())
        counted = lessons.entry_row(db, row.id)
        newer = added_after(db, row.id, written)
        lessons.update_entry(db, row.id, adjust=row.adjust + pair.ref + newer - counted.ref)
        recount(db, [row.id], now.date())
        if state is not row.state:
            # Idle counts from today whatever the state: else the next pass would do the same again.
            if state is not State.ARCHIVED:
                lessons.update_entry(db, row.id, active_since=now.date())
            lessons.set_state(db, row.id, state, now.date(), archive=is_archive(row.file))
        lessons.add_pair(db, row.id, pair)
        marker = None if archive or not self.markers else said.marker
        lessons.update_entry(db, row.id, due_ref=pair.ref, due_last=pair.last, due_state=state, due_marker=marker)

    def _confirm(self, act: Act, wanted: Mapping[int, tuple[str, Entry]], now: datetime) -> None:
        with self.ledger.transaction() as db:
            for entry, (path, said) in wanted.items():
                lessons.confirm_written(db, entry)
                silent = said.meta is None or said.meta.ref is None
                quiet: dict[str, object] = {"wrote_ref": None, "wrote_last": None} if silent else {}
                lessons.update_entry(db, entry, moving=None, file=path, **quiet)
            for entry in act.entries:
                row = lessons.entry_row(db, entry)
                self.ledger.record_event(
                    now, "undone", base=row.base, entry=entry, title=row.title, detail=f"{act.kind} of {act.at[:16]}"
                )
            for number, only in _parts(act):
                undo.drop(db, number, only)


def remember(
    ledger: Ledger,
    kind: str,
    writes: Sequence[tuple[str, bytes | None, bytes]],
    parse: Parse,
    now: datetime,
    *,
    as_one: bool = False,
) -> None:
    """Let writes about words, such as `classify`, be undone: each by itself, or all of them as one act.

    A write is a path with its content before (None: there was no file) and after.
    """
    act: int | None = None
    with ledger.transaction() as db:
        for path, before, after in writes:
            number = undo.record(db, kind, path, between(before, after, parse), now, act=act)
            act = number if as_one else None


def about(act: Act, entry: int) -> Act:
    """Return the part of an act that is about one entry; a move is whole or not at all."""
    if act.kind != undo.COUNTERS:
        return act
    writes = (replace(write, changes=tuple(one for one in write.changes if one[0] == entry)) for write in act.writes)
    return replace(act, writes=tuple(write for write in writes if write.changes))


def _write(one: Reverted) -> None:
    if one.after is None:
        remove_file(one.path, one.before)
    elif one.after != one.before:
        replace_file(one.path, one.before, one.after)


def _parts(act: Act) -> Iterator[tuple[int, int | None]]:
    """Yield what to forget of an act: of counters the entries that were taken back, else all."""
    if act.kind == undo.COUNTERS:
        yield from ((act.id, entry) for entry in act.entries)
    else:
        yield act.id, None


def _state(said: Entry, *, archive: bool) -> State:
    if archive:
        return State.ARCHIVED
    state = said.meta.state if said.meta else None
    if state is None or state is State.ARCHIVED:
        return State.DORMANT if said.marker else State.ACTIVE
    return state
