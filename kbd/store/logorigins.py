"""Whose the lines of a log are, when the log begins as another one: a rotated or copied log counts once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain

from kbd.errors import FileUnreadable
from kbd.sources.text import text_session
from kbd.store import tail
from kbd.store.ledger import logheads, transcripts
from kbd.store.ledger.transcripts import FileRow, Origin, first_bytes
from kbd.store.logcopies import HEAD_BYTES, common_lines, lines_before, log_head
from kbd.store.position import Position

COPIED_LINES = 3
"""So many equal lines in order make a copy across sessions (SPEC 3); within one log's rotations one is enough."""


def recognise(db: sqlite3.Connection, row: FileRow) -> FileRow:
    """Note how a log begins and what it is a copy of, before any of its present content is stored; return its row.

    Nothing is noted while its first line has no end. The caller holds a transaction.

    Raises:
        FileUnreadable: the file cannot be read.
        FileNotFoundError: it is gone.
    """
    marks = log_head(row.path, row.source)
    if not marks:
        return row
    copied = _longest(row, logheads.rotations(db, row, marks))
    if not copied or copied[-1].end < os.path.getsize(row.path):
        copied = _best(row, [copied, *(_longest(row, others) for others in _alike(db, row))])
    logheads.note_head(db, row.id, marks)
    transcripts.set_origins(db, row.id, copied)
    return transcripts.file_row(db, row.id)


def follow_growth(db: sqlite3.Connection, row: FileRow) -> FileRow:
    """Note how a log that has grown begins; return its row. The caller holds a transaction. Raises as `recognise`."""
    marks = log_head(row.path, row.source)
    if not marks or row.head is not None and marks[-1].end <= row.head:
        return row
    logheads.note_head(db, row.id, marks)
    return transcripts.file_row(db, row.id)


def go_on(db: sqlite3.Connection, row: FileRow) -> FileRow:
    """Note, before a log is read on, whose its next lines are if another one goes on alike; return its row.

    Two that say the same so far, of which one is kept in step with the other, stay one, whichever is read first. The
    caller holds a transaction. Raises as `recognise`.
    """
    said = row.origins_up_to(row.offset)
    for other in chain.from_iterable(chain.from_iterable(_alike(db, row, said_up_to=row.offset))):
        if not other.gone and other.origins_up_to(row.offset) == said:
            length = _in_common(row, other, row.offset)[0]
            if length > row.offset:
                transcripts.set_origins(db, row.id, other.origins_up_to(length))
                return transcripts.file_row(db, row.id)
    return row


def _alike(db: sqlite3.Connection, row: FileRow, said_up_to: int | None = None) -> Iterator[Iterator[list[FileRow]]]:
    """Yield for each source its logs that begin as this one, those with most in common first.

    Those that say the same up to an offset have the last place before it in common.
    """
    for source in (row.source, *logheads.other_sources(db, row.source)):
        marks = [m for m in log_head(row.path, source) if m.lines >= COPIED_LINES or m.end == HEAD_BYTES]
        if said_up_to is not None:
            marks = [m for m in marks if m.end <= said_up_to][-1:]
        yield logheads.alike(db, row, marks)


def _longest(row: FileRow, others: Iterable[list[FileRow]]) -> tuple[Origin, ...]:
    """Return what a log is a copy of, looked for where most is in common; empty if it is none."""
    for several in others:
        found = [copied for other in several if (copied := _copied(row, other))]
        if found:
            return _best(row, found)
    return ()


def _best(row: FileRow, found: Iterable[tuple[Origin, ...]]) -> tuple[Origin, ...]:
    """Return whose most is; of equal beginnings that of a file that still holds the lines, those without times too."""

    def worth(one: tuple[Origin, ...]) -> tuple[int, bool]:
        return one[-1].end, all(origin.stream != row.stream for origin in one)

    return max(filter(None, found), key=worth, default=())


def _copied(row: FileRow, other: FileRow) -> tuple[Origin, ...]:
    """Return whose the first bytes of a log are that are a copy of another's; empty if none are."""
    is_same = _is_same_log(row, other)
    is_rotated = is_same and row.relpath != text_session(row.relpath)
    read = _as_read(row, other)
    if read and is_rotated:
        return read
    length, lines = _in_common(row, other)
    if length and (is_same or lines >= COPIED_LINES):
        return other.origins_up_to(length)
    if read and lines_before(row.path, read[-1].end) >= COPIED_LINES:
        # The other file no longer holds these lines: a copy by their times, but without times they are its own.
        return tuple(Origin(o.end, row.stream, o.session) for o in read)
    return ()


def _is_same_log(row: FileRow, other: FileRow) -> bool:
    """Tell whether two files are rotations of one log, by the session of the other or by where it is now.

    A renamed log keeps its session, but its rotations have the new name.
    """
    is_named_alike = row.session == other.session or text_session(row.relpath) == text_session(other.relpath)
    return row.source == other.source and is_named_alike


def _as_read(row: FileRow, other: FileRow) -> tuple[Origin, ...]:
    """Return whose the beginning is if the log begins with all that was read of the other, now or before it shrank."""
    if other.position is not None and _holds(row.path, other.position):
        return other.origins_up_to(other.position.offset)
    if other.old_position is not None and _holds(row.path, other.old_position):
        return first_bytes(other.old_origins, other.old_position.offset)
    return ()


def _in_common(row: FileRow, other: FileRow, start: int = 0) -> tuple[int, int]:
    """Return up to which byte both are alike now, which they are up to `start`, and how many lines from there."""
    try:
        return (0, 0) if other.gone else common_lines(row.path, other.path, start)
    except (FileNotFoundError, FileUnreadable):
        return 0, 0


def _holds(path: str, position: Position) -> bool:
    try:
        return position.offset > 0 and tail.holds(path, position)
    except (FileNotFoundError, FileUnreadable):
        return False
