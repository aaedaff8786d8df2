"""Moving a block between a knowledge file and its archive, so that a crash anywhere leaves it whole somewhere.

The ledger decides first (`state`, and `moving` until the block has arrived). The move appends to the target, which is
synced, then cuts from the source. Interrupted, it is done again: a copy with the same words is taken for the arrived
block, and what is left in the source is cut; if the words differ, the live one is kept and reported. Blocks that are
entries of their own are never taken for copies.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kbd.core import entries as markdown
from kbd.core import splice
from kbd.core.entries import Parsed
from kbd.core.model import Entry, Problem, State
from kbd.core.undoing import Change, moved
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, LockTimeout
from kbd.store import notes
from kbd.store.base_files import MAX_BYTES, NEVER_NS, NoteFile, describe, same_file
from kbd.store.files import create_file, read_with_stat
from kbd.store.ledger import Ledger, lessons, promise, undo
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks
from kbd.store.replacing import replace_file
from kbd.store.rewrite import Quiet, reason_to_wait

LOCK_SECONDS = 10.0

Resync = Callable[[Sequence[NoteFile]], None]
"""Brings the ledger in step with files that were just read or written under their locks."""


@dataclass(slots=True)
class Settled:
    """What settling did.

    Attributes:
        moved: files whose blocks came or went.
        problems: what must wait or cannot be done.
    """

    moved: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves the blocks of one base.

    Attributes:
        ledger: open for writing.
        locks: of the state directory.
        types: known entry types.
        marker: the dormancy marker, "" for none.
        quiet: when a file counts as at rest.
        sidecars: counters stand in files beside: a block moves as it is.
    """

    ledger: Ledger
    locks: Locks
    types: frozenset[str]
    marker: str
    quiet: Callable[[str], Quiet]
    sidecars: bool = False

    def settle(self, base: int, resync: Resync, now: datetime) -> Settled:
        """Bring every block on its way to its file."""
        done = Settled()
        for row in lessons.entries_on_the_way(self.ledger.db, base):
            try:
                self._settle_one(row, resync, now, done)
            except (LockTimeout, ChangedUnderneath) as exc:
                done.problems.append(Problem("write_deferred", row.file, exc.what, exc.hint or "kbd tries again"))
            except (FileUnreadable, FileUnwritable) as exc:
                done.problems.append(Problem("move_failed", row.file, exc.what, exc.hint))
        return done

    def _settle_one(self, row: EntryRow, resync: Resync, now: datetime, done: Settled) -> None:
        live, archive = both_files(row.file)
        with self.locks.hold([live, archive], LOCK_SECONDS):
            self._require_two(row.base, archive)
            texts: dict[str, bytes] = {}
            for path in (live, archive):
                reason = self._read(path, texts)
                if reason is not None:
                    hint = "kbd moves the entry as soon as it may"
                    done.problems.append(Problem("write_deferred", path, reason, hint))
                    return
            resync([describe(path, data) for path, data in texts.items()])
            row = lessons.entry_row(self.ledger.db, row.id)
            if row.moving is None or row.gone_on is not None or row.file not in texts:
                return
            source, target = (live, archive) if row.moving == "archive" else (archive, live)
            move = _Move(self, row, source, target, texts, done, now)
            event, detail = move.run()
            self._finish(row, move, event, detail, now)
            resync([describe(path, data) for path, data in texts.items()])

    def _require_two(self, base: int, archive: str) -> None:
        """Refuse an archive that is, by a link, a file whose entries live: what is cut from one is gone from both."""
        notes_of = lessons.notes_of(self.ledger.db, base)
        owner = same_file(archive, [path for path, note in notes_of.items() if not note.archive])
        if owner is not None:
            raise FileUnwritable(f"is no archive but {owner}", where=archive, hint="remove the link")

    def _read(self, path: str, texts: dict[str, bytes]) -> str | None:
        """Read a file if it is there; return why it may not be written now."""
        try:
            data, status = read_with_stat(path, MAX_BYTES)
        except FileNotFoundError:
            return None
        texts[path] = data
        return reason_to_wait(path, data, status.st_mtime_ns, self.quiet(path))

    def _finish(self, row: EntryRow, move: _Move, event: str, detail: str, now: datetime) -> None:
        """Note where the block stands; the sync that follows finds it there, and others of its title where they are."""
        with self.ledger.transaction() as db:
            lessons.update_entry(db, row.id, moving=None, **({"file": move.target} if event == "moved" else {}))
            for path in (move.source, move.target):
                # Until then its place is that in the file it came from: both must be read, whatever happens now.
                db.execute("UPDATE notes SET mtime_ns=? WHERE path=?", (NEVER_NS, path))
            for path, mtime_ns in move.written.items():
                db.execute("UPDATE notes SET wrote_mtime_ns=? WHERE path=?", (mtime_ns, path))
            move.remember(db)
            if event:
                self.ledger.record_event(now, event, base=row.base, entry=row.id, title=row.title, detail=detail)


class _Move:
    """One block on its way, both files locked and read."""

    def __init__(
        self,
        mover: Mover,
        row: EntryRow,
        source: str,
        target: str,
        texts: dict[str, bytes],
        done: Settled,
        now: datetime,
    ) -> None:
        self.mover, self.row, self.source, self.target, self.texts, self.done = mover, row, source, target, texts, done
        self.now = now
        self.parsed: Mapping[str, Parsed] = {
            path: markdown.parse(data, mover.types, mover.marker) for path, data in texts.items()
        }
        self.written: dict[str, int] = {}
        self.changes: list[tuple[str, tuple[Change, ...]]] = []

    def run(self) -> tuple[str, str]:
        """Finish the move; return the event to record and its detail, "" if there was nothing left to do."""
        here, other = self.row.file, self.source if self.row.file == self.target else self.target
        entry = self.parsed[here].entries[self.row.place]
        copies = self._unclaimed(other)
        twin = next((copy for copy in copies if self._bare(other, copy) == self._bare(here, entry)), None)
        if twin is None and copies and self.row.move_begun:
            return self._keep_live(entry if here == self.live else copies[0])
        leaving = entry if here == self.source else twin
        if leaving is None:
            return "", ""
        if here == self.source and twin is None:
            self._append(leaving)
        self._replace(self.source, splice.cut(self.texts[self.source], leaving)[1], leaving)
        return "moved", f"from {self.source} to {self.target}"

    @property
    def live(self) -> str:
        """The one of the two files that is no archive."""
        return self.source if notes.is_archive(self.target) else self.target

    def _unclaimed(self, path: str) -> list[Entry]:
        """Return the blocks of the same title in a file that are no entry of their own."""
        if path not in self.parsed:
            return []
        rows = lessons.entries_of_file(self.mover.ledger.db, path)
        claimed = {row.place for row in rows if row.id != self.row.id}
        entries = enumerate(self.parsed[path].entries)
        return [entry for place, entry in entries if entry.norm == self.row.norm and place not in claimed]

    def _bare(self, path: str, entry: Entry) -> bytes:
        """Return what a block says, counters and marker aside: a copy differs in nothing else."""
        block, _ = splice.cut(self.texts[path], entry)
        (alone, *_) = markdown.parse(block, self.mover.types, self.mover.marker).entries
        return splice.apply(block, splice.bare_edits(block, alone, self.mover.marker)).rstrip(b"\r\n")

    def _append(self, entry: Entry) -> None:
        """Write the target with the block at its place; the intended values are committed first."""
        row, db, marker = self.row, self.mover.ledger.db, bool(self.mover.marker)
        new = self._with_block(entry)
        with promise(self.mover.ledger):
            lessons.add_pair(db, row.id, row.pair)
            shown = None if row.state is State.ARCHIVED or not marker else row.state is State.DORMANT
            lessons.update_entry(db, row.id, due_ref=row.ref, due_last=row.last, due_state=row.state, due_marker=shown)
            if self.mover.sidecars:
                # The file beside the target says nothing of the entry yet, or what held when it last stood there.
                lessons.update_entry(db, row.id, due_ref=None, wrote_ref=None, wrote_last=None, wrote_state=None)
        if self.target in self.texts:
            self._replace(self.target, new, entry)
        else:
            create_file(self.target, new, like=self.source)
            self._wrote(self.target, new, os.stat(self.target).st_mtime_ns, entry)
        with self.mover.ledger.transaction():
            lessons.confirm_written(db, row.id)
            self.remember(db)

    def _with_block(self, entry: Entry) -> bytes:
        """Return the target with the block under its heading, saying the ledger's values.

        In the archive it keeps its marker: there only the comment says more than the block did.
        """
        row, mover, text = self.row, self.mover, self.texts[self.source]
        marker = "" if row.state is State.ARCHIVED else mover.marker
        block, _ = splice.cut(text, entry)
        alone = markdown.parse(block, mover.types, mover.marker).entries[0]
        if not mover.sidecars:
            block = splice.set_metadata(block, alone, row.ref, row.last, row.state, marker)
        headings = splice.heading_lines(self.parsed[self.source].outline, entry)
        return splice.insert(self.texts.get(self.target, b""), block, entry.section, headings)

    def remember(self, db: sqlite3.Connection) -> None:
        """Let what was written since be undone, within the transaction that confirms it."""
        kind = self.row.moving or ""
        for path, changes in self.changes:
            act = undo.half_done(db, self.row.id, kind, self.target, self.source) if path == self.source else None
            undo.record(db, kind, path, changes, self.now, ids={self.row.norm: self.row.id}, act=act)
        self.changes = []

    def _replace(self, path: str, new: bytes, entry: Entry) -> None:
        done = replace_file(path, self.texts[path], new)
        self._wrote(path, new, done.mtime_ns, entry)

    def _wrote(self, path: str, data: bytes, mtime_ns: int, entry: Entry) -> None:
        def parse(text: bytes) -> Parsed:
            return markdown.parse(text, self.mover.types, self.mover.marker)

        self.changes.append((path, moved(self.texts.get(path), data, entry, parse)))
        self.texts[path], self.written[path] = data, mtime_ns
        self.done.moved.add(path)

    def _keep_live(self, entry: Entry) -> tuple[str, str]:
        """Both files hold it with different words: the live one stays, nothing is cut."""
        row = self.row
        said = entry.meta.state if entry.meta else None
        with self.mover.ledger.transaction() as db:
            state = State.DORMANT if row.state is State.ARCHIVED else row.state
            lessons.update_entry(
                db, row.id, moving=None, state=state, archived_since=None, file=self.live,
                wrote_state=said or State.ACTIVE, wrote_marker=entry.marker,
                due_ref=None, due_last=None, due_state=None, due_marker=None,
            )  # fmt: skip
        what = f"'{row.title}' stands in its archive with different words"
        self.done.problems.append(Problem("move_conflict", self.live, what, "remove one of the two"))
        return "move_conflict", f"{self.source} and {self.target} hold it with different words; {self.live} stays"


def both_files(path: str) -> tuple[str, str]:
    """Return the paths of the live file and its archive, of which `path` is one."""
    if not notes.is_archive(path):
        return path, notes.archive_of(path)
    return notes.live_of(path), path
