"""Which message is which where a record around others repeats what they put out, in another file: it is told once.

Words are known by a name that the records share. The first to tell them has them; one that encloses others and tells
them again is the same message. One that was read before those within it is theirs, once: the next that says the same
is another one beside it.
"""

from __future__ import annotations

import sqlite3

from kbd.core.model import Message
from kbd.store.ledger import facts
from kbd.store.ledger.kinship import Kinship


class Enclosing:
    """The words that records of one agent tell again, within a transaction."""

    def __init__(self, db: sqlite3.Connection, agent: str, kinship: Kinship) -> None:
        """Take the ledger, and what knows which messages became one."""
        self._db, self._agent, self._kinship = db, agent, kinship
        self._repeated: list[tuple[bytes, bytes]] = []

    def key_of(self, key: bytes, message: Message) -> bytes:
        """Return the key of the message that this one, of its own `key`, is."""
        key = self._canonical(key) or key
        for name in message.words:
            told, waiting = (facts.key_of(self._agent, kind, name) for kind in ("told", "around"))
            known = self._canonical(told)
            if known is None:
                self._note(told, key)
                if message.encloses:
                    self._note(waiting, key)
            elif known == key:
                continue
            elif message.encloses:
                self._repeated.append((known, key))
                self._note(key, known)
                key = known
            elif self._canonical(waiting):
                self._db.execute("DELETE FROM aliases WHERE key=?", (waiting,))
                self._note(told, key)
                self._repeated.append((key, known))
        return key

    def settle(self) -> set[int]:
        """Let messages that were stored meanwhile have what was told around them; return the entries to count again."""
        dirty: set[int] = set()
        for key, around in self._repeated:
            mine, other = facts.message_id(self._db, key), facts.message_id(self._db, around)
            if mine is not None and other is not None and mine != other:
                dirty |= self._kinship.join(mine, other)
        self._repeated.clear()
        return dirty

    def _canonical(self, key: bytes) -> bytes | None:
        row = self._db.execute("SELECT canonical FROM aliases WHERE key=?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _note(self, key: bytes, canonical: bytes) -> None:
        self._db.execute("INSERT OR REPLACE INTO aliases VALUES (?,?)", (key, canonical))
