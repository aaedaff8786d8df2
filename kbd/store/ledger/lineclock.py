"""The time of log lines that carry none."""

from __future__ import annotations

import bisect
import sqlite3
from datetime import UTC, datetime

from kbd.store.ledger import transcripts
from kbd.store.ledger.transcripts import FileRow


class LineClock:
    """The time of lines that carry none: when their bytes were first read, not later than the file's mtime then.

    Bytes copied from another log have the time at which they were read there.
    """

    def __init__(self, db: sqlite3.Connection, row: FileRow, mtime_ns: int, now: datetime) -> None:
        """Take a file, its modification time, and the time of the pass."""
        self.db, self.row = db, row
        self.marks: dict[str, list[tuple[int, datetime]]] = {}
        self.fresh = min(now, datetime.fromtimestamp(max(mtime_ns, 0) / 1e9, UTC))

    def at(self, offset: int) -> datetime:
        """Return the time of the line at a byte offset; a new day of reading is noted."""
        stream = self.row.origin_at(offset).stream
        marks = self.marks.get(stream)
        if marks is None:
            marks = self.marks[stream] = transcripts.marks_of(self.db, stream)
        i = bisect.bisect_right(marks, offset, key=lambda mark: mark[0]) - 1
        known = stream != self.row.stream or offset < self.row.high
        if i >= 0 and (known or marks[i][1].date() == self.fresh.date()):
            return marks[i][1]
        transcripts.add_mark(self.db, stream, offset, self.fresh)
        marks.append((offset, self.fresh))
        return self.fresh
