"""How the known logs begin, by digest: what a log may be a copy of is found without opening each that begins so, too.

Candidates come by how much they have in common with it, the most first; a banner of a few lines may stand in thousands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from kbd.sources.text import text_session
from kbd.store.ledger.transcripts import FileRow, file_row
from kbd.store.logcopies import Mark

MOST = 32
"""So many of the logs that have most in common with one are looked into."""
_ROTATIONS = 1000


def note_head(db: sqlite3.Connection, file: int, marks: Sequence[Mark]) -> None:
    """Note how a log begins, as far as that is known; idempotent."""
    db.executemany("INSERT OR REPLACE INTO heads VALUES (?,?,0)", [(mark.digest, file) for mark in marks])
    db.execute("UPDATE files SET head=? WHERE id=?", (marks[-1].end, file))


def rotations(db: sqlite3.Connection, row: FileRow, marks: Sequence[Mark]) -> Iterator[list[FileRow]]:
    """Yield, as `alike` does, those of the same log: by the session of the other, or by where it is now.

    A renamed log keeps its session, but its rotations have the new name.
    """
    stem = text_session(row.relpath)
    found = db.execute(
        "SELECT * FROM (SELECT id, session, relpath FROM files WHERE source=?1 AND session=?2 AND session!='' "
        "ORDER BY id DESC LIMIT ?4) UNION SELECT * FROM (SELECT id, session, relpath FROM files "
        "WHERE source=?1 AND session!='' AND relpath>=?3 AND relpath<?3||char(1114111) ORDER BY id DESC LIMIT ?4)",
        (row.source, row.session, stem, _ROTATIONS),
    )
    same = [str(file) for file, session, path in found if session == row.session or text_session(path) == stem]
    yield from _alike(db, row, marks, f"AND file IN ({','.join(same)})")


def other_sources(db: sqlite3.Connection, source: int) -> list[int]:
    """Return the other sources of logs: a folder may be copied whole, or be synchronised with another one."""
    return [int(r[0]) for r in db.execute("SELECT id FROM sources WHERE agent='text' AND id!=? ORDER BY id", (source,))]


def alike(db: sqlite3.Connection, row: FileRow, marks: Sequence[Mark]) -> Iterator[list[FileRow]]:
    """Yield the other logs that begin, or began before they shrank, as this one does, those with most in common first.

    Each list holds those with as much in common, and those that are there come first.
    """
    yield from _alike(db, row, marks, "")


def _alike(db: sqlite3.Connection, row: FileRow, marks: Sequence[Mark], among: str) -> Iterator[list[FileRow]]:
    seen: set[int] = {row.id}
    for mark in reversed(marks):
        found = db.execute(
            f"SELECT file FROM heads WHERE digest=? {among} ORDER BY file LIMIT ?",  # noqa: S608 - numbers
            (mark.digest, MOST + len(seen)),
        )
        fresh = [int(one[0]) for one in found if one[0] not in seen][: MOST + 1 - len(seen)]
        seen.update(fresh)
        if fresh:
            yield sorted((file_row(db, one) for one in fresh), key=lambda one: (one.gone, one.id))
        if len(seen) > MOST:
            return
