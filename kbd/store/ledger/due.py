"""Which entries' files say something else than the ledger wants, and that they say it now."""

from __future__ import annotations

import sqlite3

from kbd.store.ledger import lessons
from kbd.store.ledger.lessons import EntryRow

_DUE = """
  e.gone_on IS NULL AND e.moving IS NULL AND
  CASE WHEN e.file_ref IS NULL THEN e.ref!=0 OR e.last IS NOT NULL OR e.state!='active'
  ELSE e.file_ref!=e.ref OR e.file_last IS NOT e.last OR coalesce(e.file_state, 'active')!=e.state
    OR (:markers AND e.state!='archived' AND (e.file_marker!=0)!=(e.state='dormant')) END
"""


def due_by_file(db: sqlite3.Connection, base: int, *, markers: bool) -> dict[str, int]:
    """Return how many entries differ from what their file says, by path in order; those on their way not included."""
    query = f"SELECT e.file, count(*) FROM entries e WHERE e.base=:base AND {_DUE} GROUP BY e.file ORDER BY e.file"  # noqa: S608 - a constant
    rows = db.execute(query, {"base": base, "markers": markers})
    return {str(r[0]): int(r[1]) for r in rows}


def due_of_file(db: sqlite3.Connection, path: str, *, markers: bool) -> list[EntryRow]:
    """Return the entries that differ from what this file says of them, in order; those on their way not included."""
    rest = f"JOIN notes n ON n.path=e.file AND n.base=e.base WHERE e.file=:file AND {_DUE} ORDER BY e.place, e.id"
    return lessons.entries_where(db, rest, {"file": path, "markers": markers})


def note_said(db: sqlite3.Connection, row: EntryRow, *, marker: bool, grown: int) -> None:
    """Note that the file says of an entry what the ledger wants, in a block that is `grown` lines longer now."""
    said = {"file_ref": row.ref, "file_last": row.last, "file_state": row.state, "file_marker": int(marker)}
    lessons.update_entry(db, row.id, **said)
    if grown:
        db.execute(
            "UPDATE entries SET line=line+iif(id=?1, 0, ?2), last_line=last_line+?2 "
            "WHERE id=?1 OR (base=?3 AND file=?4 AND place>?5 AND gone_on IS NULL)",
            (row.id, grown, row.base, row.file, row.place),
        )


def stamp_note(db: sqlite3.Connection, path: str, sha: str, size: int, mtime_ns: int, ino: int, tokens: int) -> None:
    """Note that a file is in step with the ledger as it is now; what was told of it stays."""
    db.execute(
        "UPDATE notes SET sha=?, size=?, mtime_ns=?, ino=?, tokens=? WHERE path=?",
        (sha, size, mtime_ns, ino, tokens, path),
    )
