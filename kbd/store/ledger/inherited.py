"""Finds again what an older kbd stored, when its transcript is read once more: what has another key now is no news.

Messages that an older kbd stored may have keys made otherwise (see migrations.py). Such a message is known by its key
all the same, or it is one in the same transcript at the same time, or with the same words at the same place, that names
one of the same entries. It gets the key that it has now; its day and its verdicts stay.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from kbd.store.ledger import facts
from kbd.store.ledger.facts import BlockFact, Holder

_AT_PLACE = """
  SELECT h.message, h.offset FROM holders h
  JOIN blocks b ON b.message=h.message AND b.inherited=1 AND b.author=:author
  JOIN mentions m ON m.block=b.id AND m.entry IN (SELECT value FROM json_each(:entries))
  WHERE h.file=:file AND {which} ORDER BY h.message LIMIT 1
"""
_SAME_OFFSET = _AT_PLACE.format(which="h.offset=:offset AND (h.at=:at OR b.sha=:sha)")
_SAME_TIME = _AT_PLACE.format(which="h.observed=0 AND h.at=:at AND h.session=:session")
_OF_MESSAGE = """
  SELECT b.id FROM blocks b WHERE b.message=:message AND b.inherited=1 AND b.author=:author AND EXISTS
    (SELECT 1 FROM mentions m WHERE m.block=b.id AND m.entry IN (SELECT value FROM json_each(:entries)))
  ORDER BY b.sha!=:sha, b.id LIMIT 1
"""


def claim(db: sqlite3.Connection, key: bytes, holder: Holder, blocks: Sequence[BlockFact]) -> None:
    """Give what is known of a message the keys that it and its blocks have now, before it is stored."""
    if not blocks or not db.execute("SELECT EXISTS (SELECT 1 FROM blocks WHERE inherited=1)").fetchone()[0]:
        return
    message, place = facts.message_id(db, key), holder.offset
    if message is None or not _waits(db, message):
        # What is known by its key, and was read again already, may be said more than once at a time.
        found = _placed(db, holder, blocks, (_SAME_OFFSET, _SAME_TIME) if message is None else (_SAME_OFFSET,))
        if found is None:
            return
        message, place = _as_one(db, key, message, found[0]), found[1]
    _take_place(db, message, place, holder)
    for block in blocks:
        _take_block(db, message, block)


def _waits(db: sqlite3.Connection, message: int) -> bool:
    return db.execute("SELECT 1 FROM blocks WHERE message=? AND inherited=1", (message,)).fetchone() is not None


def _placed(
    db: sqlite3.Connection, holder: Holder, blocks: Sequence[BlockFact], queries: Sequence[str]
) -> tuple[int, int] | None:
    """Return the inherited message that stands where this one does, and its offset as it was, None if there is none."""
    session = facts.storable(holder.session)
    at = {"file": holder.file, "session": session, "offset": holder.offset, "at": _text(holder.at)}
    for query in queries:
        for block in blocks:
            row = db.execute(query, at | _look(block)).fetchone()
            if row is not None:
                return int(row[0]), int(row[1])
    return None


def _as_one(db: sqlite3.Connection, key: bytes, message: int | None, found: int) -> int:
    """Let an inherited message have the key it has now, or be one with the message that has it."""
    if message is not None:
        facts.join_messages(db, message, found)
        return message
    db.execute("UPDATE messages SET key=? WHERE id=?", (key, found))
    return found


def _take_place(db: sqlite3.Connection, message: int, offset: int, holder: Holder) -> None:
    """Tell where the first record of a message stands in the words of today; when it was said first stays."""
    session, thread = facts.storable(holder.session), facts.storable(holder.thread)
    told = _text(holder.at if holder.told is None else holder.told)
    db.execute(
        "UPDATE OR REPLACE holders SET session=?, thread=?, offset=?, place=?, "
        "told=CASE WHEN observed THEN told ELSE ? END WHERE message=? AND file=? AND offset=?",
        (session, thread, holder.offset, holder.place, told, message, holder.file, offset),
    )
    db.execute("UPDATE messages SET content=? WHERE id=? AND content IS NULL", (holder.content, message))


def _take_block(db: sqlite3.Connection, message: int, block: BlockFact) -> None:
    if db.execute("UPDATE blocks SET inherited=0 WHERE key=?", (block.key,)).rowcount:
        return
    row = db.execute(_OF_MESSAGE, _look(block) | {"message": message}).fetchone()
    if row is not None:
        db.execute("UPDATE blocks SET key=?, inherited=0 WHERE id=?", (block.key, row[0]))


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def _look(block: BlockFact) -> dict[str, object]:
    entries = json.dumps([mention.entry for mention in block.mentions])
    return {"author": block.author, "sha": block.sha, "entries": entries}
