"""How transcripts without message ids begin: one that begins as another does is a copy of it across sessions.

A copy tells nothing of its origin where the agent gives no ids and declares no lineage. Three equal messages in order,
their times included, are taken for a copy; fewer may be chance ("Done.").
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

EQUAL_MESSAGES = 3
_DIGEST_BYTES = 20


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the beginning of a thread tells.

    Attributes:
        twins: sessions that begin alike; none while too little is known.
        is_told_now: enough is known since the newest messages, and others were known before them.
    """

    twins: tuple[str, ...] = ()
    is_told_now: bool = False


def forget_beginnings(db: sqlite3.Connection, file: int) -> None:
    """Let a file that is read from its start begin anew."""
    db.execute("DELETE FROM beginnings WHERE file=?", (file,))


def note_beginning(db: sqlite3.Connection, file: int, thread: str, messages: Iterable[tuple[str, str]]) -> Beginning:
    """Take the next messages of a thread of a file, as (session, words with their time); return what it copies.

    Only the first three count, so a transcript is known by them however it grows; one that comes again is not another.
    """
    row = db.execute("SELECT session, chain FROM beginnings WHERE file=? AND thread=?", (file, thread)).fetchone()
    session, known = (row["session"], bytes(row["chain"])) if row else ("", b"")
    said_before = [known[at : at + _DIGEST_BYTES] for at in range(0, len(known), _DIGEST_BYTES)]
    for own, said in messages:
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
        if len(said_before) < EQUAL_MESSAGES and digest not in said_before:
            session = session or own
            said_before.append(digest)
    chain = b"".join(said_before)
    if chain != known:
        db.execute("INSERT OR REPLACE INTO beginnings VALUES (?,?,?,?)", (file, thread, session, chain))
    if len(said_before) < EQUAL_MESSAGES:
        return Beginning()
    rows = db.execute("SELECT DISTINCT session FROM beginnings WHERE chain=? AND session!=?", (chain, session))
    return Beginning(tuple(str(r[0]) for r in rows), bool(known) and chain != known)
