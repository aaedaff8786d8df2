"""Which file on disk is which transcript of the ledger: new, known, renamed, or a copy of another log."""

from __future__ import annotations

from collections.abc import Mapping

from kbd.errors import FileUnreadable
from kbd.sources.contract import FileKind
from kbd.sources.text import text_session
from kbd.store import tail
from kbd.store.ledger import Ledger, transcripts
from kbd.store.ledger.transcripts import FileRow
from kbd.store.logcopies import common_lines, first_line
from kbd.store.position import Position
from kbd.store.scan import Found
from kbd.store.statx import birth_time_ns

COPIED_LINES = 3
"""So many equal lines in order make a copy across sessions (SPEC 3); within one log's rotations one is enough."""


def register(
    ledger: Ledger,
    source: int,
    source_name: str,
    found: Found[FileKind],
    known: Mapping[tuple[int, int], FileRow],
    *,
    is_text: bool,
) -> FileRow:
    """Return the ledger's row of a file, made or renamed as needed; one transaction if something changes.

    Raises:
        FileUnreadable: the file cannot be read.
        FileNotFoundError: it is gone.
    """
    row = known.get((found.dev, found.ino))
    if row is not None and row.path == found.path and (row.first_line or not is_text):
        return row
    line = first_line(found.path) if is_text else None
    with ledger.transaction() as db:
        if row is None or (
            row.path != found.path
            and row.position
            and not tail.holds(found.path, row.position)
            and row.position.offset > 0
        ):
            row = transcripts.add_file(
                db, source, found.path, found.relpath, found.dev, found.ino, birth_time_ns(found.path), None
            )
        elif row.path != found.path:
            transcripts.move_file(db, row.id, found.path, found.relpath)
        if is_text and line and row.first_line is None:
            transcripts.set_first_line(db, row.id, line)
            if row.offset == 0:
                _find_original(ledger, source, source_name, row, line)
        return transcripts.file_row(db, row.id)


def _find_original(ledger: Ledger, source: int, name: str, row: FileRow, line: str) -> None:
    """Recognise a log that begins as another one: a rotated or copied one counts once."""
    mine = text_session(row.relpath)
    best: tuple[int, str, FileRow] | None = None
    for other in transcripts.with_first_line(ledger.db, source, line):
        if other.id == row.id:
            continue
        found = _copied(row, other, same_log=text_session(other.relpath) == mine, is_rotated=row.relpath != mine)
        if found[0] and (best is None or found[0] > best[0]):
            best = (*found, other)
    if best is not None:
        length, stream, other = best
        session = other.shared_session or f"{name}:{text_session(other.relpath)}"
        transcripts.share_beginning(ledger.db, row.id, stream, session, length)


def _copied(row: FileRow, other: FileRow, *, same_log: bool, is_rotated: bool) -> tuple[int, str]:
    """Return how many first bytes of a log are a copy of another's, and that one's stream.

    The other file must still hold them; or, when a log was copied aside and truncated (logrotate's copytruncate), the
    copy must be that of what was read of it before.
    """
    stream = other.shared_stream or other.stream
    if same_log and is_rotated:
        for known, known_stream in ((other.position, stream), (other.old_position, other.old_stream)):
            if known is not None and known_stream and _holds(row.path, known):
                return known.offset, known_stream
    if other.gone:
        return 0, stream
    try:
        length, lines = common_lines(row.path, other.path)
    except (FileNotFoundError, FileUnreadable):
        return 0, stream
    return (length, stream) if length and (same_log or lines >= COPIED_LINES) else (0, stream)


def _holds(path: str, position: Position) -> bool:
    try:
        return position.offset > 0 and tail.holds(path, position)
    except (FileNotFoundError, FileUnreadable):
        return False
