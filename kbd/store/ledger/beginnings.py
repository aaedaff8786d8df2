"""How transcripts without message ids begin: one that begins as another does is a copy of it across sessions.

A copy tells nothing of its origin where the agent gives no ids and declares no lineage. Three equal messages in order,
their times included, are taken for a copy; fewer may be chance ("Done."), unless the one is all that a file held which
is gone, and the other's file begins with the very bytes that were read of it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass

EQUAL_MESSAGES = 3
_DIGEST_BYTES = 20
_COMPARED = 16
"""So many files that begin alike, the newest first, are asked whether they are gone."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the beginning of a thread tells.

    Attributes:
        twins: sessions that begin alike; none while too little is known.
        is_told_now: the newest messages told more of the beginning, and others were known before them.
    """

    twins: tuple[str, ...] = ()
    is_told_now: bool = False


def forget_beginnings(db: sqlite3.Connection, file: int) -> None:
    """Let a file that is read from its start begin anew."""
    db.execute("DELETE FROM beginnings WHERE file=?", (file,))


def note_beginning(
    db: sqlite3.Connection,
    file: int,
    thread: str,
    messages: Iterable[tuple[str, str]],
    continues: Callable[[int], bool],
) -> Beginning:
    """Take the next messages of a thread of a file, as (session, words with their time); return what it copies.

    Only the first three count, so a transcript is known by them however it grows; one that comes again is not another.
    `continues` tells whether this file took the place of a known one.
    """
    row = db.execute("SELECT session, chain FROM beginnings WHERE file=? AND thread=?", (file, thread)).fetchone()
    session, known = (row["session"], bytes(row["chain"])) if row else ("", b"")
    said_before = [known[at : at + _DIGEST_BYTES] for at in range(0, len(known), _DIGEST_BYTES)]
    for own, said in messages if len(said_before) < EQUAL_MESSAGES else ():
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
        if digest not in said_before:
            session = session or own
            said_before.append(digest)
        if len(said_before) == EQUAL_MESSAGES:
            break
    chain = b"".join(said_before)
    if chain != known:
        db.execute("INSERT OR REPLACE INTO beginnings VALUES (?,?,?,?)", (file, thread, session, chain))
    twins = _continued(db, said_before, session, continues)
    if len(said_before) == EQUAL_MESSAGES:
        rows = db.execute("SELECT DISTINCT session FROM beginnings WHERE chain=? AND session!=?", (chain, session))
        twins.update((str(r[0]), None) for r in rows)
    return Beginning(tuple(twins), bool(known) and chain != known)


def _continued(
    db: sqlite3.Connection, said: list[bytes], session: str, continues: Callable[[int], bool]
) -> dict[str, None]:
    """Return the sessions of files that held less than tells a copy, in whose place this one came."""
    shorter = [b"".join(said[:length]) for length in range(1, min(len(said) + 1, EQUAL_MESSAGES))]
    rows = db.execute(
        f"SELECT file, session FROM beginnings WHERE chain IN ({','.join('?' * len(shorter))}) "  # noqa: S608 - marks
        f"AND session!=? ORDER BY file DESC LIMIT {_COMPARED}",
        (*shorter, session),
    )
    return {str(row["session"]): None for row in rows.fetchall() if continues(row["file"])}
