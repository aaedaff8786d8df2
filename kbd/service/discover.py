"""Which file on disk is which transcript of the ledger: new, known, renamed, or a copy of another log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from kbd.sources.contract import FileKind
from kbd.sources.text import text_session
from kbd.store import tail
from kbd.store.ledger import Ledger, transcripts
from kbd.store.ledger.transcripts import FileRow
from kbd.store.logcopies import HEAD_BYTES
from kbd.store.logorigins import follow_growth, go_on, recognise
from kbd.store.scan import Found
from kbd.store.statx import birth_time_ns


def register(ledger: Ledger, source: int, session_prefix: str, found: Found[FileKind], *, is_text: bool) -> FileRow:
    """Return the ledger's row of a file, made or placed anew as needed; one transaction if something changes.

    A file is known by its inode, else by its path, and then by its content: what was read of it must still stand
    there. Neither a device number that changed over a reboot nor a file that was put back makes it another one.

    Raises:
        FileUnreadable: the file cannot be read.
        FileNotFoundError: it is gone.
    """
    rows = transcripts.candidates(ledger.db, source, found.dev, found.ino, found.path)
    row = _known(rows, found)
    begins = is_text and _begins(row, found)
    grows = is_text and row is not None and 0 < row.offset < found.size
    if row is not None and not (begins or grows) and _is_in_place(row, found):
        return row
    with ledger.single() if not (rows or is_text) else ledger.transaction() as db:
        if row is None:
            if rows:
                transcripts.mark_replaced(db, source, found.path)
            born = birth_time_ns(found.path)
            session = f"{session_prefix}:{text_session(found.relpath)}" if is_text else ""
            row = transcripts.add_file(db, source, found.path, found.relpath, found.dev, found.ino, born, session)
        else:
            if not _is_in_place(row, found):
                transcripts.place_file(db, row, found.path, found.relpath, found.dev, found.ino)
            row = transcripts.file_row(db, row.id)
        if begins:
            row = recognise(db, row) if row.head is None and row.offset == 0 else follow_growth(db, row)
        return go_on(db, row) if grows else row


def _begins(row: FileRow | None, found: Found[FileKind]) -> bool:
    """Tell whether more of how a log begins may be told than is known."""
    if row is None or row.head is None:
        return True
    return row.head < HEAD_BYTES and (row.size, row.mtime_ns) != (found.size, found.mtime_ns)


def by_age(ledger: Ledger, source: int, session_prefix: str, fresh: Iterable[Found[FileKind]]) -> list[Found[FileKind]]:
    """Put logs not known by their inode in an order in which originals come before their copies.

    What a known log rotated aside comes first, as its lines were there before; then the others by birth.
    """
    rows = ledger.db.execute("SELECT DISTINCT session FROM files WHERE source=?", (source,))
    known = {str(r[0]) for r in rows}

    def age(found: Found[FileKind]) -> tuple[bool, int]:
        session = text_session(found.relpath)
        rotated = session != found.relpath and f"{session_prefix}:{session}" in known
        return not rotated, birth_time_ns(found.path) or sys.maxsize

    return sorted(fresh, key=age)


def _is_in_place(row: FileRow, found: Found[FileKind]) -> bool:
    same = (row.dev, row.ino, row.gone) == (found.dev, found.ino, False)
    return same and is_one_file(row.path, found.path)


def is_one_file(known: str, found: str) -> bool:
    """Tell whether a file found is the known one: by its path, or as a further name of it (a hard link)."""
    try:
        return known == found or os.path.samestat(os.lstat(known), os.lstat(found))
    except OSError:  # gone, or in a folder that may not be looked into: reading it says what is wrong
        return False


def _known(rows: Sequence[FileRow], found: Found[FileKind]) -> FileRow | None:
    """Return the one of these rows that a file continues; of what is rewritten as a whole only the path tells."""
    by_path = found.kind in (FileKind.DOCUMENT, FileKind.DATABASE)
    for row in rows:
        if by_path and row.path != found.path:
            continue
        if _is_in_place(row, found) or row.position is None or row.position.offset == 0:
            return row
        if tail.holds(found.path, row.position):
            return row
    return None
