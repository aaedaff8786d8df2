"""The time of log lines that carry none."""

from __future__ import annotations

import bisect
import sqlite3
from datetime import UTC, datetime

from kbd.store.ledger import transcripts
from kbd.store.ledger.transcripts import FileRow


class LineClock:
    """The time of lines that carry none: when their bytes were first read, not later than the file's mtime then."""

    def __init__(self, db: sqlite3.Connection, row: FileRow, mtime_ns: int, now: datetime) -> None:
        """Take a file, its modification time, and the time of the pass."""
        self.db, self.file, self.high = db, row.id, row.high
        self.marks = transcripts.marks_of(db, row.id)
        self.fresh = min(now, datetime.fromtimestamp(mtime_ns / 1e9, UTC))

    def at(self, offset: int) -> datetime:
        """Return the time of the line at a byte offset; a new day of reading is noted."""
        i = bisect.bisect_right(self.marks, offset, key=lambda mark: mark[0]) - 1
        if i >= 0 and (offset < self.high or self.marks[i][1].date() == self.fresh.date()):
            return self.marks[i][1]
        transcripts.add_mark(self.db, self.file, offset, self.fresh)
        self.marks.append((offset, self.fresh))
        return self.fresh
