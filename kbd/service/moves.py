"""Moving a block between a knowledge file and its archive, so that a crash anywhere leaves it whole somewhere.

The ledger decides first (`state`, and `moving` until the block has arrived). The move appends to the target, which is
synced, then cuts from the source. Interrupted, it is done again: a block that stands in both is cut from the source
if both are equal; if not, the live one is kept and reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kbd.core import entries as markdown
from kbd.core import splice
from kbd.core.model import Entry, Problem, State
from kbd.core.wording import wording_digest
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, LockTimeout
from kbd.store import gitstate, notes
from kbd.store.base_files import MAX_BYTES, NoteFile, describe
from kbd.store.files import create_file, read_regular, replace_file
from kbd.store.ledger import Ledger, lessons
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks
from kbd.store.rewrite import has_conflict

LOCK_SECONDS = 10.0

Resync = Callable[[Sequence[NoteFile]], None]
"""Brings the ledger in step with files that were just read or written under their locks."""


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves the blocks of one base.

    Attributes:
        ledger: open for writing.
        locks: of the state directory.
        types: known entry types.
        marker: the dormancy marker, "" for none.
    """

    ledger: Ledger
    locks: Locks
    types: frozenset[str]
    marker: str

    def settle(self, base: int, resync: Resync, now: datetime) -> list[Problem]:
        """Bring every block on its way to its file; what must wait or cannot be done is returned."""
        problems = []
        for row in lessons.entries_of(self.ledger.db, base):
            if row.moving is None:
                continue
            try:
                problem = self._move(row, resync, now)
            except (LockTimeout, ChangedUnderneath) as exc:
                problem = Problem("write_deferred", row.file, exc.what, exc.hint or "kbd tries again")
            except (FileUnreadable, FileUnwritable) as exc:
                problem = Problem("move_failed", row.file, exc.what, exc.hint)
            if problem is not None:
                problems.append(problem)
        return problems

    def _move(self, row: EntryRow, resync: Resync, now: datetime) -> Problem | None:
        live = live_of(row.file) if notes.is_archive(row.file) else row.file
        archive = notes.archive_of(live)
        why = gitstate.at_work(live)
        if why is not None:
            return Problem("write_deferred", live, f"git is at work ({why})", "kbd moves the entry as soon as it may")
        with self.locks.hold([live, archive], LOCK_SECONDS):
            resync([describe(p, d) for p in (live, archive) if (d := _read(p)) is not None])
            row = lessons.entry_row(self.ledger.db, row.id)
            if row.moving is None or row.gone_on is not None:
                return None
            source, target = (live, archive) if row.moving == "archive" else (archive, live)
            return self._move_locked(row, source, target, resync, now)

    def _move_locked(self, row: EntryRow, source: str, target: str, resync: Resync, now: datetime) -> Problem | None:
        source_data, target_data = _read(source), _read(target)
        if any(d is not None and has_conflict(d) for d in (source_data, target_data)):
            return Problem("write_deferred", source, "conflict markers stand in it", "resolve the conflict")
        leaving = self._find(source_data, row)
        arrived = self._find(target_data, row)
        if leaving is None or source_data is None:
            if arrived is None:
                with self.ledger.transaction() as db:
                    lessons.update_entry(db, row.id, moving=None)
            return None
        block, rest = splice.cut(source_data, leaving)
        if arrived is not None and target_data is not None:
            there = target_data[arrived.block.start : arrived.block.end]
            if wording_digest(arrived) != wording_digest(leaving):
                return self._keep_live(row, source, target, there, now)
        else:
            headings = splice.heading_lines(markdown.parse(source_data, self.types, self.marker).outline, leaving)
            moved = self._values_in(row, block)
            self._append(
                row, splice.insert(target_data or b"", moved, leaving.section, headings), source, target, target_data
            )
        replace_file((source), source_data, rest)
        resync([describe(p, d) for p in (source, target) if (d := _read(p)) is not None])
        with self.ledger.transaction() as db:
            lessons.update_entry(db, row.id, moving=None)
            self.ledger.record_event(
                now, "moved", base=row.base, entry=row.id, title=row.title, detail=f"from {source} to {target}"
            )
        return None

    def _values_in(self, row: EntryRow, block: bytes) -> bytes:
        """Return the block with the ledger's values; an archived one keeps its marker byte for byte."""
        entry = markdown.parse(block, self.types, self.marker).entries[0]
        marker = self.marker if row.state is not State.ARCHIVED else ""
        return splice.set_metadata(block, entry, row.ref, row.last, row.state, marker)

    def _append(self, row: EntryRow, new: bytes, source: str, target: str, data: bytes | None) -> None:
        """Write the target with the block at its place; the intended values are committed first."""
        with self.ledger.transaction() as db:
            lessons.add_pair(db, row.id, row.pair)
            lessons.update_entry(db, row.id, due_ref=row.ref, due_last=row.last, due_state=row.state, due_marker=None)
        if data is None:
            create_file(target, new, like=source)
        else:
            replace_file(target, data, new)
        with self.ledger.transaction() as db:
            lessons.confirm_written(db, row.id)

    def _keep_live(self, row: EntryRow, source: str, target: str, _there: bytes, now: datetime) -> Problem:
        """Both files hold the entry with different words: the live one stays, nothing is cut."""
        live = source if row.moving == "archive" else target
        state = State.DORMANT if row.moving == "archive" else State.ACTIVE
        with self.ledger.transaction() as db:
            lessons.update_entry(db, row.id, moving=None, state=state, file=live)
            self.ledger.record_event(
                now,
                "move_conflict",
                base=row.base,
                entry=row.id,
                title=row.title,
                detail=f"{source} and {target} hold it with different words; {live} stays",
            )
        return Problem(
            "move_conflict", live, f"'{row.title}' stands in its archive with different words", "remove one of the two"
        )

    def _find(self, data: bytes | None, row: EntryRow) -> Entry | None:
        """Return the entry's block in a file: its title, and its section if several have that title."""
        if data is None:
            return None
        same = [e for e in markdown.parse(data, self.types, self.marker).entries if e.norm == row.norm]
        return next((e for e in same if e.section == row.section), same[0] if same else None)


def live_of(archive: str) -> str:
    """Return the path of the file that an archive belongs to."""
    stem, suffix = os.path.splitext(archive)
    return stem[: -len("-archive")] + suffix


def _read(path: str) -> bytes | None:
    """Return a file's bytes, None if it is not there."""
    try:
        return read_regular((path), MAX_BYTES)
    except FileNotFoundError:
        return None
