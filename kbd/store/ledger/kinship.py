"""Copies of messages that carry no id, or another one: told by their words, among sessions that are kin.

Kin are sessions of one declared lineage (a fork, a sub-agent, a compacted session, and what they stem from) and
transcripts that begin alike. A message of the one is a copy of a message of the other as far as one of them begins with
the other (see `kbd.core.copies`). Copies are one message, kept as the one that was stored first; in which order their
files are read, and in which pieces, does not matter: a message that turns out to be what two others are makes them one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kbd.core.copies import copied_beginning
from kbd.store.ledger import facts
from kbd.store.ledger.tellings import Tellings

_CANDIDATES = 64
"""So many threads of undeclared kin are compared; a phrase may be said in thousands of sub-agents."""

Place = tuple[int, str, str]
"""A thread: file, session, own id."""

WORDS_BYTES = 8


@dataclass(frozen=True, slots=True)
class Kin:
    """A place where a message without id was found, and the sessions that may hold a copy.

    Attributes:
        content: digest of its words, whatever session and time.
        file: id of the file; session: that holds it there; thread: which of its sessions, where they count for one.
        at: its time in microseconds, None if it carries none.
        place: which of the sayings of its thread.
        twins: sessions that begin with the same messages, undeclared.
    """

    content: bytes
    file: int
    session: str
    thread: str
    at: int | None
    place: int
    twins: tuple[str, ...] = ()

    @property
    def words(self) -> bytes:
        """The digest as tellings hold it."""
        return self.content[:WORDS_BYTES]


def note_lineage(db: sqlite3.Connection, session: str, ancestors: Sequence[str]) -> None:
    """Note from which sessions, or sub-agents of sessions, a session was forked."""
    db.executemany("INSERT OR IGNORE INTO lineage VALUES (?,?)", [(session, a) for a in ancestors])
    db.executemany(
        "INSERT OR IGNORE INTO lineage SELECT ?1, trunk FROM trunks WHERE thread=?2 AND trunk!=?1",
        [(session, a) for a in ancestors],
    )


def microseconds(at: datetime) -> int:
    """Return a time as tellings hold it, exactly."""
    return round(at.timestamp() * 1_000_000)


class Kinship:
    """Finds the message that another is a copy of; lives as long as a batch, within its transaction.

    What was found out stays known until a message of that thread comes: the same words may be said thousands of times.
    """

    def __init__(self, db: sqlite3.Connection, tellings: Tellings) -> None:
        """Look at tellings that hold this batch already."""
        self._db, self._tellings = db, tellings
        self._copied: dict[tuple[Place, Place], tuple[dict[int, int], dict[int, int]]] = {}
        self._said: dict[bytes, dict[Place, None]] = {}
        self._kin: dict[tuple[bytes, Place], tuple[int, list[Place]]] = {}
        self._held: dict[Place, dict[bytes, dict[int, dict[int, str]]]] = {}
        self._joined: dict[int, int] = {}

    def canonical_key(self, key: bytes, kin: Kin) -> bytes:
        """Return the key of the message that this one is a copy of, else its own key; fixed once found."""
        here = (kin.file, kin.session, kin.thread)
        self._held.pop(here, None)
        self._said.setdefault(kin.content, {})[here] = None
        alias = self._db.execute("SELECT canonical FROM aliases WHERE key=?", (key,)).fetchone()
        key = key if alias is None else bytes(alias[0])
        known = facts.message_id(self._db, key)
        if known is not None and self._is_held(known, kin):
            return key
        found = [message for message in self._equals(kin) if message != known]
        if known is None and found:
            known = found.pop(0)
            canonical = bytes(self._db.execute("SELECT key FROM messages WHERE id=?", (known,)).fetchone()[0])
            self._db.execute("INSERT OR REPLACE INTO aliases VALUES (?,?)", (key, canonical))
            key = canonical
        if known is not None:
            for other in found:
                self.join(known, other)
        return key

    def settle(self, file: int, thread: str, twins: tuple[str, ...]) -> set[int]:
        """Join what a thread said before its twins were known; return the entries to count again."""
        dirty: set[int] = set()
        joined: set[int] = set()
        rows = self._db.execute(
            "SELECT m.id, m.content, h.session, h.told, h.observed, h.place FROM holders h JOIN messages m "
            "ON m.id=h.message WHERE h.file=? AND h.thread=? AND m.content IS NOT NULL ORDER BY m.at, m.id",
            (file, thread),
        ).fetchall()
        for row in (row for row in rows if row["id"] not in joined):
            kin = Kin(bytes(row["content"]), file, row["session"], thread, *_moment(row), twins)
            for other in (message for message in self._equals(kin) if message != row["id"]):
                dirty |= self.join(row["id"], other)
                joined.add(other)
        return dirty

    def join(self, kept: int, other: int) -> set[int]:
        """Make one of two stored messages; return the entries to count again."""
        self._joined[other] = kept
        return facts.join_messages(self._db, kept, other)

    def _is_held(self, message: int, kin: Kin) -> bool:
        place = (message, kin.session, kin.file, kin.thread)
        held = "SELECT 1 FROM holders WHERE message=? AND session=? AND file=? AND thread=?"
        return self._db.execute(held, place).fetchone() is not None

    def _equals(self, kin: Kin) -> list[int]:
        """Return the stored messages that this one is the same as, the earliest first.

        What is said of two sessions, of which one names the other, goes before what others have in common with them.
        """
        here = (kin.file, kin.session, kin.thread)
        kindred = self._that_say_it(kin, here)
        mine = self._tellings.of(*here).saying(kin.words, kin.at, kin.place) if kindred else None
        if mine is None:
            return []
        declared: dict[int, str] = {}
        alike: dict[int, str] = {}
        for there in kindred:
            original, copied = self._begins(here, there)[0].get(mine), self._begins(there, here)[1].get(mine)
            for copy, origin, wanted in ((here, there, original), (there, here, copied)):
                if wanted is not None:
                    kind = declared if self._tellings.names_as_origin(copy, origin) else alike
                    kind.update(self._stored(kin, there, wanted))
        found = declared or alike
        return sorted(found, key=lambda message: (found[message], message))

    def _that_say_it(self, kin: Kin, here: Place) -> list[Place]:
        """Return the threads of kin that hold these words: all of declared kin, and the first others."""
        said = self._said.get(kin.content, {})
        known = self._kin.get((kin.content, here))
        if known is None or known[0] != len(said):
            known = self._kin[kin.content, here] = len(said), self._kin_of(kin, here)
        return known[1]

    def _kin_of(self, kin: Kin, here: Place) -> list[Place]:
        sessions = {*_family(self._db, kin.session), *kin.twins}
        if not sessions:
            return []
        rows = self._db.execute(
            "SELECT h.file, h.session, h.thread FROM messages m "  # noqa: S608 - marks
            "JOIN holders h ON h.message=m.id WHERE m.content=? AND NOT (h.file=? AND h.session=? AND h.thread=?) "
            f"AND h.session IN ({','.join('?' * len(sessions))}) GROUP BY 1, 2, 3 ORDER BY min(m.at), min(m.id)",
            (kin.content, *here, *sorted(sessions)),
        )
        found = [(int(file), str(session), str(thread)) for file, session, thread in rows]
        names = self._tellings.names_as_origin
        named = {there: names(here, there) or names(there, here) for there in found}
        others = [there for there in found if not named[there]]
        return [*(there for there in found if named[there]), *others[:_CANDIDATES]]

    def _stored(self, kin: Kin, there: Place, wanted: int) -> dict[int, str]:
        """Return the messages of another thread that are this saying of it, with their times."""
        of_thread = self._held.setdefault(there, {})
        if kin.content not in of_thread:
            of_thread[kin.content] = self._sayings(kin, there)
        return {self.kept(message): at for message, at in of_thread[kin.content].get(wanted, {}).items()}

    def _sayings(self, kin: Kin, there: Place) -> dict[int, dict[int, str]]:
        """Return the messages with these words that a thread holds, with their times, by which of its sayings."""
        rows = self._db.execute(
            "SELECT m.id, m.at AS first, h.told, h.observed, h.place FROM messages m JOIN holders h ON h.message=m.id "
            "WHERE m.content=? AND h.file=? AND h.session=? AND h.thread=?",
            (kin.content, *there),
        )
        found: dict[int, dict[int, str]] = {}
        for row in rows:
            saying = self._tellings.of(*there).saying(kin.words, *_moment(row))
            if saying is not None:
                found.setdefault(saying, {})[row["id"]] = row["first"]
        return found

    def kept(self, message: int) -> int:
        """Return which message a stored one is now: the one that it was joined with."""
        while message in self._joined:
            message = self._joined[message]
        return message

    def _begins(self, copy: Place, origin: Place) -> tuple[dict[int, int], dict[int, int]]:
        """Return which messages of one thread are copies of which of the other's, and the other way round."""
        if (copy, origin) not in self._copied:
            is_declared = self._tellings.names_as_origin(copy, origin)
            found = copied_beginning(self._tellings.of(*copy), self._tellings.of(*origin), is_declared=is_declared)
            self._copied[copy, origin] = found, {original: copied for copied, original in found.items()}
        return self._copied[copy, origin]


def _moment(row: sqlite3.Row) -> tuple[int | None, int]:
    """Return time and place of a holder."""
    at = None if row["observed"] else microseconds(datetime.fromisoformat(row["told"]))
    return at, row["place"]


def _family(db: sqlite3.Connection, session: str) -> list[str]:
    """Return the sessions of one lineage: ancestors, descendants, and those with a common ancestor; [] if none."""
    rows = db.execute(
        "WITH roots(name) AS (SELECT ?1 UNION SELECT ancestor FROM lineage WHERE session=?1) "
        "SELECT ancestor FROM lineage WHERE session=?1 "
        "UNION SELECT session FROM lineage WHERE ancestor IN (SELECT name FROM roots)",
        (session,),
    )
    found = [str(r[0]) for r in rows]
    return [session, *found] if found else []
