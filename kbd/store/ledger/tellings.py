"""What sessions say, message by message, where messages carry no id of their own: what their copies are told by."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

from kbd.core.copies import Saying, Telling

_UNTIMED = -1
_KEPT_SAYINGS = 1 << 18
"""So many are held in memory; a session may have thousands of sub-agents."""


class Tellings:
    """The tellings of all threads, each a session's part of one file; those looked at lately are kept."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Take a ledger within a transaction."""
        self._db = db
        self._threads: dict[tuple[int, str, str], int] = {}
        self._known: dict[int, Telling] = {}

    def note(
        self, file: int, session: str, thread: str, sayings: Iterable[Saying], origins: Collection[str] = ()
    ) -> None:
        """Take what a thread says, and which sessions it names as its origins; idempotent.

        The newest words of a place stand; a time tells equal words apart.
        """
        number = self._thread(file, session, thread)
        self._known.pop(number, None)
        self._db.executemany("INSERT OR IGNORE INTO origins VALUES (?,?)", [(number, origin) for origin in origins])
        rows = [(number, _UNTIMED if s.at is None else s.at, s.place, s.words) for s in sayings]
        self._db.executemany(
            "INSERT OR REPLACE INTO sayings SELECT ?1, ?2, ?3, ?4 WHERE ?2=-1 OR NOT EXISTS "
            "(SELECT 1 FROM sayings WHERE thread=?1 AND at=?2 AND words=?4)",
            rows,
        )

    def of(self, file: int, session: str, thread: str) -> Telling:
        """Return all that a thread is known to say."""
        number = self._thread(file, session, thread)
        if number not in self._known:
            if sum(len(telling.sayings) for telling in self._known.values()) > _KEPT_SAYINGS:
                self._known.clear()
            rows = self._db.execute("SELECT words, at, place FROM sayings WHERE thread=? ORDER BY at, place", (number,))
            self._known[number] = Telling([Saying(bytes(w), None if at < 0 else at, place) for w, at, place in rows])
        return self._known[number]

    def names_as_origin(self, copy: tuple[int, str, str], origin: tuple[int, str, str]) -> bool:
        """Tell whether one thread, as (file, session, own id or ""), says that it stems from another one."""
        known = (self._thread(*copy), origin[2] or origin[1])
        return self._db.execute("SELECT 1 FROM origins WHERE thread=? AND origin=?", known).fetchone() is not None

    def _thread(self, file: int, session: str, thread: str) -> int:
        key = (file, session, thread)
        if key not in self._threads:
            self._db.execute("INSERT OR IGNORE INTO threads(file, session, thread) VALUES (?,?,?)", key)
            row = self._db.execute("SELECT id FROM threads WHERE file=? AND session=? AND thread=?", key).fetchone()
            self._threads[key] = int(row[0])
        return self._threads[key]


def forget_places(db: sqlite3.Connection, file: int) -> None:
    """Let a file that is read from its start say anew what only its places tell; what has a time was said."""
    db.execute("DELETE FROM sayings WHERE at=-1 AND thread IN (SELECT id FROM threads WHERE file=?)", (file,))


def forget_tellings(db: sqlite3.Connection, *, session: str | None = None, file: int | None = None) -> None:
    """Forget all that a session, or a file, said."""
    threads = db.execute("SELECT id FROM threads WHERE session IS ?1 OR file IS ?2", (session, file)).fetchall()
    db.executemany("DELETE FROM sayings WHERE thread=?", threads)
    db.executemany("DELETE FROM origins WHERE thread=?", threads)
    db.executemany("DELETE FROM threads WHERE id=?", threads)
