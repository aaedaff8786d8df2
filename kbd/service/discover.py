"""Which file on disk is which transcript of the ledger: new, known, renamed, or a copy of another log."""

from __future__ import annotations

from kbd.errors import FileUnreadable
from kbd.sources.contract import FileKind
from kbd.sources.text import text_session
from kbd.store import tail
from kbd.store.ledger import Ledger, transcripts
from kbd.store.ledger.transcripts import FileRow, Origin, first_bytes
from kbd.store.logcopies import common_lines, first_line
from kbd.store.position import Position
from kbd.store.scan import Found
from kbd.store.statx import birth_time_ns

COPIED_LINES = 3
"""So many equal lines in order make a copy across sessions (SPEC 3); within one log's rotations one is enough."""


def register(ledger: Ledger, source: int, source_name: str, found: Found[FileKind], *, is_text: bool) -> FileRow:
    """Return the ledger's row of a file, made or placed anew as needed; one transaction if something changes.

    A file is known by its inode, else by its path, and then by its content: what was read of it must still stand
    there. Neither a device number that changed over a reboot nor a file that was put back makes it another one.

    Raises:
        FileUnreadable: the file cannot be read.
        FileNotFoundError: it is gone.
    """
    row = _known(ledger, source, found)
    line = first_line(found.path) if is_text and (row is None or row.first_line is None) else None
    if row is not None and line is None and _is_in_place(row, found):
        return row
    with ledger.transaction() as db:
        if row is None:
            born = birth_time_ns(found.path)
            session = f"{source_name}:{text_session(found.relpath)}" if is_text else ""
            row = transcripts.add_file(db, source, found.path, found.relpath, found.dev, found.ino, born, None, session)
        elif not _is_in_place(row, found):
            transcripts.place_file(db, row, found.path, found.relpath, found.dev, found.ino)
        if line is not None:
            transcripts.set_first_line(db, row.id, line)
            if row.offset == 0:
                _find_original(ledger, source, row, line)
        return transcripts.file_row(db, row.id)


def _is_in_place(row: FileRow, found: Found[FileKind]) -> bool:
    return (row.path, row.dev, row.ino, row.gone) == (found.path, found.dev, found.ino, False)


def _known(ledger: Ledger, source: int, found: Found[FileKind]) -> FileRow | None:
    """Return the row that this file continues."""
    for row in transcripts.candidates(ledger.db, source, found.dev, found.ino, found.path):
        if _is_in_place(row, found) or row.position is None or row.position.offset == 0:
            return row
        if tail.holds(found.path, row.position):
            return row
    return None


def _find_original(ledger: Ledger, source: int, row: FileRow, line: str) -> None:
    """Recognise a log that begins as another one: a rotated or copied one counts once."""
    others = [o for o in transcripts.with_first_line(ledger.db, source, line) if o.id != row.id]
    copied = max((_copied(row, other) for other in others), key=_length, default=())
    if copied:
        transcripts.set_origins(ledger.db, row.id, copied)


def _length(origins: tuple[Origin, ...]) -> int:
    return origins[-1].end if origins else 0


def _copied(row: FileRow, other: FileRow) -> tuple[Origin, ...]:
    """Return whose the first bytes of a log are that are a copy of another's; empty if none are.

    The other file must still hold them; or, when a log was copied aside and truncated (logrotate's copytruncate), the
    copy must be that of what was read of it before.
    """
    same_log = row.session == other.session
    if same_log and row.relpath != text_session(row.relpath):
        if other.position is not None and _holds(row.path, other.position):
            return other.origins_up_to(other.position.offset)
        if other.old_position is not None and _holds(row.path, other.old_position):
            return first_bytes(other.old_origins, other.old_position.offset)
    if other.gone:
        return ()
    try:
        length, lines = common_lines(row.path, other.path)
    except (FileNotFoundError, FileUnreadable):
        return ()
    return other.origins_up_to(length) if length and (same_log or lines >= COPIED_LINES) else ()


def _holds(path: str, position: Position) -> bool:
    try:
        return position.offset > 0 and tail.holds(path, position)
    except (FileNotFoundError, FileUnreadable):
        return False
