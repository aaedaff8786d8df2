"""Writing the ledger's values into the Markdown: a projection, set by three-way merge, never incremented.

The order survives a crash at any point: under the file's lock the file is read and merged, the intended values
are committed, the file is replaced, the values are confirmed. What is interrupted is done again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbd.core import entries as markdown
from kbd.core import splice
from kbd.core.model import Problem
from kbd.core.splice import Edit
from kbd.store import notes
from kbd.store.base_files import NoteFile, describe
from kbd.store.ledger import Ledger, lessons
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """When files may be written (SPEC 13 `write`); times in seconds of the real clock.

    Attributes:
        marker: the dormancy marker, "" for none.
        immediate: write at once, without the coalescing delays (`run --once`).
    """

    marker: str = "⚠️"
    every_seconds: float = 30
    git_every_seconds: float = 900
    quiet_seconds: float = 5
    max_wait_seconds: float = 300
    immediate: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What one projection did: entries whose values were written, and why a file had to wait."""

    entries: int
    problems: tuple[Problem, ...]


Resync = Callable[[NoteFile], None]
"""Brings the ledger in step with a file that was just read under its lock."""


class Projector:
    """Writes counters of one base."""

    def __init__(self, ledger: Ledger, locks: Locks, policy: WritePolicy, types: frozenset[str], real_now: float) -> None:
        """Prepare; `real_now` is the real clock in seconds."""
        self.ledger, self.locks, self.policy, self.types, self.real_now = ledger, locks, policy, types, real_now

    def write_base(self, base: int, resync: Resync) -> Written:
        """Write all files of a base that differ from the ledger and may be written now."""
        count, problems = 0, []
        for path in self.due_files(base):
            why = self._must_wait(path)
            if why is None:
                outcome = self.write_file(path, resync)
                count += outcome.entries
                problems.extend(outcome.problems)
            else:
                problems.append(Problem("write_deferred", path, why, "kbd writes it as soon as it may"))
        return Written(count, tuple(problems))

    def due_files(self, base: int) -> list[str]:
        """Return the files of a base that say something else than the ledger."""
        markers = bool(self.policy.marker)
        due = {row.file for row in lessons.entries_of(self.ledger.db, base) if row.differs_from_file(markers=markers)}
        return sorted(due)

    def _must_wait(self, path: str) -> str | None:
        """Return why a file is not written yet, None if it may be."""
        if self.policy.immediate:
            return None
        row = self.ledger.db.execute("SELECT wrote_at FROM notes WHERE path=?", (path,)).fetchone()
        wrote_at = row["wrote_at"] if row and row["wrote_at"] is not None else None
        every = self.policy.git_every_seconds if notes.in_git(path) else self.policy.every_seconds
        if wrote_at is not None and 0 <= self.real_now - wrote_at < every:
            return f"written {self.real_now - wrote_at:.0f} s ago, at most every {every:.0f} s"
        return None

    def write_file(self, path: str, resync: Resync) -> Written:
        """Write one file now; 0 entries if there was nothing to write after all.

        Raises:
            LockTimeout, FileUnreadable, FileUnwritable, ChangedUnderneath: nothing was written.
        """
        job = _Job(self, path, resync)
        quiet = 0.0 if self.policy.immediate else self.policy.quiet_seconds
        outcome = notes.rewrite(path, job.edit, self.locks, quiet_seconds=quiet, now=self.real_now)
        if isinstance(outcome, notes.Deferred):
            return Written(0, (Problem("write_deferred", path, outcome.reason, "kbd writes it as soon as it may"),))
        if isinstance(outcome, notes.Written):
            job.confirm(outcome)
        return Written(len(job.due), ())


class _Job:
    """One file being written."""

    def __init__(self, projector: Projector, path: str, resync: Resync) -> None:
        self.projector, self.path, self.resync = projector, path, resync
        self.due: list[EntryRow] = []

    def edit(self, data: bytes) -> bytes:
        """Return the file with the ledger's values; the intended values are committed by then."""
        self.resync(describe(self.path, data))
        parsed = markdown.parse(data, self.projector.types)
        marker = self.projector.policy.marker
        edits: list[Edit] = []
        self.due = []
        for row in lessons.entries_of_file(self.projector.ledger.db, self.path):
            if row.differs_from_file(markers=bool(marker)) and row.place < len(parsed.entries):
                entry = parsed.entries[row.place]
                extra = entry.meta.extra if entry.meta else ()
                edits.extend(splice.edits_for(data, entry, row.ref, row.last, row.state, marker, extra=extra))
                self.due.append(row)
        self._intend(bool(marker))
        return splice.apply(data, edits)

    def _intend(self, markers: bool) -> None:
        if not self.due:
            return
        with self.projector.ledger.transaction() as db:
            for row in self.due:
                lessons.add_pair(db, row.id, row.pair)
                lessons.update_entry(db, row.id, due_ref=row.ref, due_last=row.last, due_state=row.state,
                                     due_marker=(row.state is row.state.DORMANT) if markers else None)

    def confirm(self, written: notes.Written) -> None:
        """Note that the values stand in the file, and where its entries stand now."""
        with self.projector.ledger.transaction() as db:
            for row in self.due:
                lessons.confirm_written(db, row.id)
            db.execute("UPDATE notes SET wrote_at=? WHERE path=?", (self.projector.real_now, self.path))
        self.resync(describe(self.path, written.data))
