"""What a scan needs of the files it passes over, asked for one by one: a source may have a million."""

from __future__ import annotations

import sqlite3
from itertools import islice

import msgspec

_ASKED_AT_ONCE = 500


class FileMark(msgspec.Struct, frozen=True):
    """What a scan needs to pass over a file that did not change."""

    id: int
    path: str
    size: int
    mtime_ns: int
    settled: int


class FileMarks:
    """The files of a source that are there, and which of them a scan has seen: a bit for each."""

    def __init__(self, db: sqlite3.Connection, source: int) -> None:
        """Begin a scan that has seen nothing."""
        self._db, self._source, self._seen = db, source, bytearray()
        self._cursor = db.cursor()
        self._cursor.row_factory = None

    def of(self, dev: int, ino: int) -> FileMark | None:
        """Return the file at an inode, None if none is known there."""
        row = self._cursor.execute(
            "SELECT id, path, size, mtime_ns, settled FROM files WHERE source=? AND dev=? AND ino=? AND gone=0 "
            "ORDER BY id DESC LIMIT 1",
            (self._source, dev, ino),
        ).fetchone()
        return None if row is None else FileMark(*row)

    def see(self, file: int) -> None:
        """Note that the scan has seen a file."""
        place = file >> 3
        if place >= len(self._seen):
            self._seen.extend(bytes(place + 1024 - len(self._seen)))
        self._seen[place] |= 1 << (file & 7)

    def unseen(self) -> list[int]:
        """Return the files that are there by what is known, and which the scan has not seen."""
        rows = self._db.execute("SELECT id FROM files WHERE source=?", (self._source,))  # from an index alone
        passed_by = (int(row[0]) for row in rows if not self._has_seen(row[0]))
        lost: list[int] = []
        while part := tuple(islice(passed_by, _ASKED_AT_ONCE)):  # mostly those long gone
            there = f"SELECT id FROM files WHERE id IN ({','.join('?' * len(part))}) AND gone=0"  # noqa: S608 - marks
            lost += [file for (file,) in self._cursor.execute(there, part)]
        return lost

    def _has_seen(self, file: int) -> bool:
        place = file >> 3
        return place < len(self._seen) and bool(self._seen[place] >> (file & 7) & 1)
