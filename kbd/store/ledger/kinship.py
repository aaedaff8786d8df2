"""Copies of messages that carry no id, or another one: told by their words, among sessions of declared lineage.

A fork or a sub-agent may begin with its parent's records under new times (transcripts.md of the agents' formats call
this replay). Each record of a copy is paired with one record of a kindred session that says the same; the order in
which the files are read does not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

_COPIES = (
    "SELECT m.key FROM messages m WHERE m.content=? AND (? IS NULL OR m.at=?) "
    "AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.message=m.id AND h.file=? AND h.thread=?) "
    "AND EXISTS (SELECT 1 FROM holders h WHERE h.message=m.id AND h.session IN ({marks})) "
    "ORDER BY m.at, m.id LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Kin:
    """What tells a copy of a message without id.

    Attributes:
        content: digest of its words, whatever session and time.
        session: the session that holds it here.
        ancestors: sessions that this file declares to begin with.
        file: id of the file; thread: which of its sessions, where they count for one.
        twins: sessions that begin with the same messages, undeclared: their copies have the same time too.
        at: the time of the message, None if it carries none.
    """

    content: bytes
    session: str
    ancestors: tuple[str, ...]
    file: int
    thread: str = ""
    twins: tuple[str, ...] = ()
    at: str | None = None


def note_lineage(db: sqlite3.Connection, session: str, ancestors: Sequence[str]) -> None:
    """Note from which sessions a session was forked."""
    db.executemany("INSERT OR IGNORE INTO lineage VALUES (?,?)", [(session, a) for a in ancestors])


def canonical_key(db: sqlite3.Connection, key: bytes, kin: Kin) -> bytes:
    """Return the key of the message that this one is a copy of, else its own key; fixed once found."""
    note_lineage(db, kin.session, kin.ancestors)
    alias = db.execute("SELECT canonical FROM aliases WHERE key=?", (key,)).fetchone()
    if alias is not None:
        return bytes(alias[0])
    if db.execute("SELECT 1 FROM messages WHERE key=?", (key,)).fetchone() is not None:
        return key
    original = _original(db, kin)
    if original is None:
        return key
    db.execute("INSERT INTO aliases VALUES (?,?)", (key, original))
    return original


def _original(db: sqlite3.Connection, kin: Kin) -> bytes | None:
    """Return the key of the earliest message of the kin that says the same and is not paired with this file yet."""
    family = _family(db, kin.session)
    found = _said_by(db, kin, family, None) if family else None
    return found or (_said_by(db, kin, kin.twins, kin.at) if kin.twins else None)


def _said_by(db: sqlite3.Connection, kin: Kin, sessions: Sequence[str], at: str | None) -> bytes | None:
    """Return the key of the earliest message of these sessions with the same words, at that time if one is given."""
    marks = ",".join("?" * len(sessions))
    row = db.execute(_COPIES.format(marks=marks), (kin.content, at, at, kin.file, kin.thread, *sessions)).fetchone()
    return None if row is None else bytes(row[0])


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
