"""Writing the ledger's values into the Markdown: a projection, set by three-way merge, never incremented.

The order survives a crash at any point: under the file's lock the file is read and merged, the intended values
are committed, the file is replaced, the values are confirmed. What is interrupted is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kbd.core import entries as markdown
from kbd.core import sidecar, splice
from kbd.core.alone import another_follows, entry_alone, line_starts
from kbd.core.model import Entry, Metadata, Problem, State
from kbd.core.normal import normalise
from kbd.core.splice import Edit
from kbd.core.tokens import rough_tokens
from kbd.core.undoing import of_edits
from kbd.store import rewrite
from kbd.store.base_files import MAX_BYTES, NoteFile, describe
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, due, lessons, promise, undo
from kbd.store.ledger.lessons import EntryRow
from kbd.store.locks import Locks
from kbd.store.pace import Pace
from kbd.store.rewrite import rewrite_held
from kbd.store.sidecars import sidecar_of

LOCK_SECONDS = 10.0
MOST_ALONE = 64
"""So many entries are read each by itself; for more, reading the whole file is quicker."""


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
        return list(due.due_by_file(self.ledger.db, base, markers=bool(self.policy.marker)))

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
        self.edits: list[tuple[EntryRow, Edit]] = []
        self.is_local = False

    def edit(self, data: bytes) -> bytes:
        """Return the file with the ledger's values; the intended values are committed by then."""
        self.resync(describe(self.path, data))
        policy = self.projector.policy
        # What is on its way gets its values when it arrives.
        rows = due.due_of_file(self.projector.ledger.db, self.path, markers=bool(policy.marker))
        found = self._alone(data, rows)
        self.is_local = found is not None
        if found is None:
            entries = markdown.parse(data, self.projector.types, policy.marker).entries
            found = {row.id: entries[row.place] for row in rows if row.place < len(entries)}
        self.due = [row for row in rows if row.id in found]
        self.edits = [
            (row, edit)
            for row in self.due
            for edit in splice.edits_for(data, found[row.id], row.ref, row.last, row.state, policy.marker)
        ]
        self._intend(bool(policy.marker))
        return splice.apply(data, [edit for _, edit in self.edits])

    def _alone(self, data: bytes, rows: Sequence[EntryRow]) -> dict[int, Entry] | None:
        """Return the entries of a few rows, each read by itself; None if the whole file must be read to be sure."""
        if len(rows) > MOST_ALONE:
            return None
        starts, told = line_starts(data), {}
        for row in rows:
            entry = self._entry_alone(data, starts, row, row.line, row.last_line)
            if entry is None or not _is_as_known(entry, row):
                return None
            if entry.meta is None and not another_follows(data, starts, row.last_line):
                return None  # with a comment it would be told of the text that follows
            told[row.id] = entry
        return told

    def _entry_alone(self, data: bytes, starts: Sequence[int], row: EntryRow, first: int, last: int) -> Entry | None:
        entry = entry_alone(data, starts, first, last, self.projector.types, self.projector.policy.marker)
        same = entry is not None and (entry.norm, entry.body, entry.ident) == (row.norm, row.body, row.ident)
        return entry if same else None

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
            changes = of_edits(written.before or b"", written.data, [(row.norm, edit) for row, edit in self.edits])
            now = datetime.fromtimestamp(self.projector.real_now, UTC)
            undo.record(db, undo.COUNTERS, self.path, changes, now, ids={row.norm: row.id for row in self.due})
        note = self._described(written)
        if not (self.is_local and self._note_places(note, written.before or b"", written.data)):
            self.resync(note)

    def _note_places(self, note: NoteFile, before: bytes, data: bytes) -> bool:
        """Note what the file says now of what was written, and where all stand; False if it must be read for that."""
        starts, grown, shifts = line_starts(data), 0, []
        for row in self.due:
            edits = [edit for other, edit in self.edits if other.id == row.id]
            shifts.append(sum(_lines(one.replacement) - _lines(before[one.span.start : one.span.end]) for one in edits))
            first, last = row.line + grown, row.last_line + grown + shifts[-1]
            entry = self._entry_alone(data, starts, row, first, last)
            if entry is None or not self._says(entry, row):
                return False
            grown += shifts[-1]
        db = self.projector.ledger.db
        told = db.execute("SELECT problems FROM notes WHERE path=?", (self.path,)).fetchone()
        if any(shifts) and told[0] != "[]":
            return False  # they name lines
        with self.projector.ledger.transaction():
            for row, shift in zip(self.due, shifts, strict=True):
                due.note_said(db, row, marker=self._shows_marker(row), grown=shift)
            due.stamp_note(db, note.path, note.sha, note.size, note.mtime_ns, note.ino, rough_tokens(data))
        return True

    def _says(self, entry: Entry, row: EntryRow) -> bool:
        meta = entry.meta
        said = meta is not None and (meta.ref, meta.last, meta.state) == (row.ref, row.last, row.state)
        return said and entry.marker is self._shows_marker(row)

    def _shows_marker(self, row: EntryRow) -> bool:
        """Tell whether the marker stands after a write."""
        return row.state is State.DORMANT if self.projector.policy.marker else row.file_marker

    def _described(self, written: rewrite.Written) -> NoteFile:
        return describe(self.path, written.data)


def _is_as_known(entry: Entry, row: EntryRow) -> bool:
    """Tell whether an entry read by itself says what it said when its file was read."""
    meta = entry.meta or Metadata(None, None, False, None)
    said = (meta.ref, meta.last, meta.state, entry.marker)
    return said == (row.file_ref, row.file_last, row.file_state, row.file_marker) and not row.bad_date


def _lines(data: bytes) -> int:
    return data.count(b"\n")


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
