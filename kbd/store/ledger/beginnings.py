"""How transcripts without message ids begin: one that begins as another does is a copy of it across sessions.

A copy tells nothing of its origin where the agent gives no ids and declares no lineage. Three equal messages in order,
their times included, are taken for a copy; fewer may be chance ("Done.").
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

EQUAL_MESSAGES = 3


def note_beginning(
    db: sqlite3.Connection, file: int, messages: Iterable[tuple[str, str]], *, from_start: bool
) -> tuple[str, ...]:
    """Take the next messages of a file, as (session, words with their time), and return the sessions it copies.

    Only the first three count, so a file is known by them however it grows. Reading again from the start begins anew.
    """
    if from_start:
        db.execute("DELETE FROM beginnings WHERE file=?", (file,))
    row = db.execute("SELECT session, messages, chain FROM beginnings WHERE file=?", (file,)).fetchone()
    session, count, chain = (row["session"], row["messages"], bytes(row["chain"])) if row else ("", 0, b"")
    if count < EQUAL_MESSAGES:
        for own, said in messages:
            session, count = session or own, count + 1
            chain = hashlib.sha256(chain + said.encode("utf-8", "surrogatepass")).digest()[:20]
            if count == EQUAL_MESSAGES:
                break
        if count:
            db.execute("INSERT OR REPLACE INTO beginnings VALUES (?,?,?,?)", (file, session, count, chain))
    if count < EQUAL_MESSAGES:
        return ()
    rows = db.execute(
        "SELECT DISTINCT session FROM beginnings WHERE chain=? AND messages=? AND session!=?",
        (chain, EQUAL_MESSAGES, session),
    )
    return tuple(str(r[0]) for r in rows)
