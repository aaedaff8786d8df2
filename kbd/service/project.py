"""Writing the ledger's values into the Markdown: a projection, set by three-way merge, never incremented.

The order survives a crash at any point: under the file's lock the file is read and merged, the intended values
are committed, the file is replaced, the values are confirmed. What is interrupted is done again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kbd.core import entries as markdown
from kbd.core import sidecar, splice
from kbd.core.model import Problem
from kbd.core.normal import normalise
from kbd.core.splice import Edit
from kbd.core.undoing import of_edits
from kbd.store import rewrite
from kbd.store.base_files import MAX_BYTES, NoteFile, describe
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, lessons, promise, undo
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks
from kbd.store.pace import Pace
from kbd.store.rewrite import rewrite_held
from kbd.store.sidecars import sidecar_of

LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How counters are written.

    Attributes:
        pace: when a file may be written.
        marker: the dormancy marker, "" for none.
        sidecars: write into the file beside the Markdown, which is left alone.
    """

    pace: Pace = field(default_factory=Pace)
    marker: str = "⚠️"
    sidecars: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What one projection did: entries whose values were written, and why a file had to wait."""

    entries: int
    problems: tuple[Problem, ...] = ()


Resync = Callable[[NoteFile], None]
"""Brings the ledger in step with a file that was just read under its lock."""


class Projector:
    """Writes counters of one base."""

    def __init__(
        self,
        ledger: Ledger,
        locks: Locks,
        policy: WritePolicy,
        types: frozenset[str],
        real_now: float,
        waiting: dict[str, float],
    ) -> None:
        """Prepare.

        Args:
            ledger: open for writing.
            locks: of the state directory.
            policy: when files may be written.
            types: known entry types.
            real_now: the real clock in seconds.
            waiting: since when (real clock) which file waits to be at rest; kept by the caller over passes.
        """
        self.ledger, self.locks, self.policy, self.types, self.real_now = ledger, locks, policy, types, real_now
        self.waiting = waiting

    def due_files(self, base: int) -> list[str]:
        """Return the files of a base that say something else than the ledger."""
        return list(lessons.due_by_file(self.ledger.db, base, markers=bool(self.policy.marker)))

    def write_file(self, path: str, resync: Resync) -> Written:
        """Write one file if it may be written now; 0 entries if not, or if there was nothing to write after all.

        Raises:
            LockTimeout, FileUnreadable, FileUnwritable, ChangedUnderneath: nothing was written.
        """
        row = self.ledger.db.execute("SELECT wrote_at, wrote_mtime_ns FROM notes WHERE path=?", (path,)).fetchone()
        seconds = self.seconds_to_wait(path, row["wrote_at"] if row else None)
        if seconds > 0:
            return Written(0)
        quiet = self.policy.pace.quiet(path, self.waiting, self.real_now, row["wrote_mtime_ns"] if row else None)
        job = _SidecarJob(self, path, resync) if self.policy.sidecars else _Job(self, path, resync)
        with self.locks.hold({path, job.target}, LOCK_SECONDS):
            outcome = rewrite_held(job.target, job.edit, self.locks, quiet, create=self.policy.sidecars)
        if isinstance(outcome, rewrite.Deferred):
            return Written(0, (Problem("write_deferred", path, outcome.reason, "kbd writes it as soon as it may"),))
        self.waiting.pop(path, None)
        if isinstance(outcome, rewrite.Unchanged):
            return Written(0)
        job.confirm(outcome)
        return Written(len(job.due))

    def seconds_to_wait(self, path: str, wrote_at: float | None) -> float:
        """Return for how long writes to a file are still collected; 0 if it may be written."""
        return self.policy.pace.seconds_to_wait(path, wrote_at, self.real_now)


class _Job:
    """One file being written."""

    def __init__(self, projector: Projector, path: str, resync: Resync) -> None:
        self.projector, self.path, self.resync = projector, path, resync
        self.target = path
        self.due: list[EntryRow] = []
        self.edits: list[tuple[str, Edit]] = []

    def edit(self, data: bytes) -> bytes:
        """Return the file with the ledger's values; the intended values are committed by then."""
        self.resync(describe(self.path, data))
        parsed = markdown.parse(data, self.projector.types, self.projector.policy.marker)
        marker = self.projector.policy.marker
        self.edits, self.due = [], []
        for row in lessons.entries_of_file(self.projector.ledger.db, self.path):
            # What is on its way gets its values when it arrives.
            due = row.moving is None and row.differs_from_file(markers=bool(marker))
            if due and row.place < len(parsed.entries):
                entry = parsed.entries[row.place]
                edits = splice.edits_for(data, entry, row.ref, row.last, row.state, marker)
                self.edits.extend((row.norm, edit) for edit in edits)
                self.due.append(row)
        self._intend(bool(marker))
        return splice.apply(data, [edit for _, edit in self.edits])

    def _intend(self, markers: bool) -> None:
        if not self.due:
            return
        with promise(self.projector.ledger) as db:
            for row in self.due:
                lessons.add_pair(db, row.id, row.pair)
                lessons.update_entry(
                    db,
                    row.id,
                    due_ref=row.ref,
                    due_last=row.last,
                    due_state=row.state,
                    due_marker=(row.state is row.state.DORMANT) if markers else None,
                )

    def confirm(self, written: rewrite.Written) -> None:
        """Note that the values stand in the file, and where its entries stand now."""
        with self.projector.ledger.transaction() as db:
            for row in self.due:
                lessons.confirm_written(db, row.id)
            db.execute(
                "UPDATE notes SET wrote_at=?, wrote_mtime_ns=? WHERE path=?",
                (self.projector.real_now, written.mtime_ns, self.path),
            )
            changes = of_edits(written.before or b"", written.data, self.edits)
            now = datetime.fromtimestamp(self.projector.real_now, UTC)
            undo.record(db, undo.COUNTERS, self.path, changes, now, ids={row.norm: row.id for row in self.due})
        self.resync(self._described(written))

    def _described(self, written: rewrite.Written) -> NoteFile:
        return describe(self.path, written.data)


class _SidecarJob(_Job):
    """The counters of one file, written beside it."""

    def __init__(self, projector: Projector, path: str, resync: Resync) -> None:
        super().__init__(projector, path, resync)
        self.target = sidecar_of(path)

    def edit(self, data: bytes) -> bytes:
        """Return the file beside with the ledger's values; the intended values are committed by then."""
        note = read_regular(self.path, MAX_BYTES)
        self.resync(describe(self.path, note))
        entries = markdown.parse(note, self.projector.types, self.projector.policy.marker).entries
        rows = {row.place: row for row in lessons.entries_of_file(self.projector.ledger.db, self.path)}
        said = sidecar.parse(data, self.target)
        lines = []
        self.due = []
        for place, key in enumerate(sidecar.keys_of(entries)):
            row, meta = rows.get(place), said.get(normalise(key))
            if row is None or row.moving is not None:
                continue  # on its way: its values are written where it arrives
            self.due += [row] if row.differs_from_file(markers=False) else []
            if meta is not None or row in self.due:
                lines.append(sidecar.Line(key, row.pair, row.state, row.handle, meta.extra if meta else ()))
        self._intend(False)
        return sidecar.render(lines) if self.due else data

    def _described(self, written: rewrite.Written) -> NoteFile:
        return describe(self.path, read_regular(self.path, MAX_BYTES))
