"""Which session a sub-agent counts for, where it names only the sub-agent that started it: the trunk of them all.

A sub-agent's file says which session it counts for, and that one's file whether it is a sub-agent itself. They are read
in any order: what was stored of a session that turns out to be a sub-agent's moves to its trunk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from kbd.core.model import Message, SessionId
from kbd.store.ledger import facts

_KEYED = ("holders", "threads", "lineage", "set_aside")
"""Tables that have a session in their keys: what the trunk has already is not moved."""


class Trunks:
    """The sub-agents known by a ledger, within a transaction; `moved` are the entries to be counted again."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Take the ledger."""
        self._db = db
        self._known: dict[str, str] = {}
        self._declared: dict[int, tuple[Message, str]] = {}
        self.moved: set[int] = set()

    def settle(self, messages: Sequence[Message], is_read: Callable[[Message], bool]) -> list[Message]:
        """Return those messages that may be read, for their trunks; sub-agents among them are noted."""
        read = [one for one in map(self._settled, messages) if is_read(one)]
        if not any([self._note(thread, of) for thread, of in dict.fromkeys((m.thread, m.session) for m in read)]):
            return read
        return [self._settled(one) for one in read]

    def _settled(self, message: Message) -> Message:
        trunk = self._trunk(message.session)
        if trunk == message.session:
            return message
        settled = replace(message, session=SessionId(trunk))
        self._declared[id(settled)] = settled, self.declared(message)
        return settled

    def declared(self, message: Message) -> str:
        """Return the session that a settled message names itself: it is told by that, whenever its trunk was known."""
        return self._declared.get(id(message), (message, message.session))[1]

    def _trunk(self, session: str) -> str:
        if session not in self._known:
            row = self._db.execute("SELECT trunk FROM trunks WHERE thread=?", (facts.storable(session),)).fetchone()
            self._known[session] = session if row is None else str(row[0])
        return self._known[session]

    def _note(self, thread: str, session: str) -> bool:
        """Note that a thread counts for a session; True if that is news."""
        if not thread or thread == session or self._trunk(thread) != thread or self._trunk(session) == thread:
            return False
        names = (facts.storable(thread), facts.storable(self._trunk(session)))
        self._db.execute("INSERT OR IGNORE INTO trunks VALUES (?,?)", names)
        self._db.execute("UPDATE trunks SET trunk=?2 WHERE trunk=?1", names)
        self._move(*names)
        self._known.clear()
        return True

    def _move(self, thread: str, trunk: str) -> None:
        names = (thread, trunk)
        self._db.execute(
            "INSERT OR IGNORE INTO lineage SELECT session, ?2 FROM lineage WHERE ancestor=?1 AND session!=?2", names
        )
        seen = "SELECT 1 FROM seen_sessions WHERE source IN (SELECT id FROM sources) AND session=?"
        if self._db.execute(seen, (thread,)).fetchone() is None:
            return  # most sub-agents start none, and tables are not searched for them
        for row in self._db.execute("SELECT id FROM messages WHERE session=?", (thread,)).fetchall():
            self.moved |= facts.entries_of_message(self._db, row[0])
        for table in _KEYED:
            self._db.execute(f"UPDATE OR IGNORE {table} SET session=?2 WHERE session=?1", names)  # noqa: S608 - constants
            self._db.execute(f"DELETE FROM {table} WHERE session=?", (thread,))  # noqa: S608 - constants
        for table in ("messages", "beginnings"):
            self._db.execute(f"UPDATE {table} SET session=?2 WHERE session=?1", names)  # noqa: S608 - constants
        self._db.execute(
            "INSERT INTO seen_sessions SELECT source, ?2, day FROM seen_sessions WHERE session=?1 "
            "ON CONFLICT(source, session) DO UPDATE SET day=max(day, excluded.day)",
            names,
        )
        self._db.execute("DELETE FROM seen_sessions WHERE session=?", (thread,))
