"""Writing what a message named: idempotent, so that reading a record twice changes nothing.

A message is credited to its earliest holder: by record time, then by birth time of the file, then the file
kbd saw first, then by path. A block that grows (a streamed partial and its full text) counts once: the
shorter one is superseded.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from kbd.core.redact import masked_id

_EARLIEST = (
    "SELECT h.session, h.at, h.cwd FROM holders h WHERE h.message=?1 ORDER BY h.told, "
    # A fork that says so is the copy, whenever its file was born: whole files are born anew at each save.
    "EXISTS (SELECT 1 FROM lineage l JOIN holders o ON o.session=l.ancestor AND o.message=?1 "
    "WHERE l.session=h.session AND l.ancestor!=h.session), h.birth_ns, h.file, h.path LIMIT 1"
)
_KEYS_AT_ONCE = 500
_NEWEST_BLOCKS = "SELECT * FROM blocks WHERE message=? ORDER BY id DESC LIMIT 64"
"""Where partials are looked for; a message of thousands of blocks is none that was streamed."""
_UNBORN = 2**62
"""Birth time of a file whose file system tells none: later than any."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A place where a message was found.

    Attributes:
        session: the session it counts for there.
        at: time of its first record, UTC, but not later than it was read: its day is the day of the reference.
        observed: the time is that of reading.
        file: id of the file; its birth in ns, None if unknown; its path.
        cwd: working directory, None if unknown.
        record: record id for the evidence.
        offset: byte offset of the record.
        content: digest of its words if its copies are told by them (see kinship.py), else None.
        thread: which of the sessions of the file holds it, where they count for one.
        place: which of its sayings it is, where it is told by its words.
        told: the time its record gives, which decides between holders; None if that is `at`. Under a clock that is
            behind, whatever is read has the same `at`, and would be earlier than the original.
    """

    session: str
    at: datetime
    observed: bool
    file: int
    birth_ns: int | None
    path: str
    cwd: str | None
    record: str
    offset: int
    content: bytes | None = None
    thread: str = ""
    place: int = 0
    told: datetime | None = None


@dataclass(frozen=True, slots=True)
class MentionFact:
    """A named entry, ready to be stored."""

    pattern: int
    entry: int
    listed: bool
    own: int
    span: int
    prefix: bytes
    snippet: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BlockFact:
    """A block with its mentions.

    Attributes:
        key: content identity.
        author: author class.
        norm_length: characters of its whole normalised text.
        length: the same without echo lines, what listing measures.
        sha: digest of the normalised text.
    """

    key: bytes
    author: str
    norm_length: int
    length: int
    sha: bytes
    mentions: tuple[MentionFact, ...]


def key_of(*parts: str) -> bytes:
    """Return the 20-byte content identity of these parts, in order."""
    joined = "\x1f".join(f"{len(p)}:{p}" for p in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()[:20]


def hold_message(db: sqlite3.Connection, key: bytes, source: int, holder: Holder) -> int:
    """Note that a file holds a message; credit goes to the earliest holder. Return the message's id."""
    at, day = holder.at.isoformat(timespec="microseconds"), holder.at.date().isoformat()
    told = at if holder.told is None else holder.told.isoformat(timespec="microseconds")
    session, record, thread = storable(holder.session), masked_id(storable(holder.record)), storable(holder.thread)
    cwd = None if holder.cwd is None else storable(holder.cwd)
    db.execute(
        "INSERT OR IGNORE INTO messages(key, source, session, at, day, cwd, content) VALUES (?,?,?,?,?,?,?)",
        (key, source, session, at, day, cwd, holder.content),
    )
    message = int(db.execute("SELECT id FROM messages WHERE key=?", (key,)).fetchone()[0])
    birth = _UNBORN if holder.birth_ns is None else holder.birth_ns
    db.execute(
        "INSERT INTO holders VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,0) "
        "ON CONFLICT(message, session, file, thread) DO UPDATE SET "
        "at=excluded.at, told=excluded.told, record=excluded.record, offset=excluded.offset, place=excluded.place, "
        "cwd=excluded.cwd "
        "WHERE holders.observed=0 AND excluded.told < holders.told",
        (
            message,
            session,
            holder.file,
            thread,
            at,
            told,
            holder.observed,
            birth,
            holder.path,
            cwd,
            record,
            holder.offset,
            holder.place,
        ),
    )
    _follow_growth(db, message, holder, record)
    _credit(db, message)
    return message


def _credit(db: sqlite3.Connection, message: int) -> None:
    first = db.execute(_EARLIEST, (message,)).fetchone()
    db.execute(
        "UPDATE messages SET session=?, at=?, day=?, cwd=? WHERE id=? AND (session, at) IS NOT (?, ?)",
        (first["session"], first["at"], first["at"][:10], first["cwd"], message, first["session"], first["at"]),
    )


def join_messages(db: sqlite3.Connection, kept: int, other: int) -> set[int]:
    """Make one of two messages that say the same; return the entries to count again."""
    dirty = entries_of_message(db, kept) | entries_of_message(db, other)
    db.execute("DELETE FROM holders WHERE message=?2 AND (session, file, thread) IN "
               "(SELECT session, file, thread FROM holders WHERE message=?1)", (kept, other))  # fmt: skip
    db.execute("UPDATE holders SET message=? WHERE message=?", (kept, other))
    for block in db.execute("SELECT id, author, sha FROM blocks WHERE message=?", (other,)).fetchall():
        same = "SELECT 1 FROM blocks WHERE message=? AND author=? AND sha=?"
        if db.execute(same, (kept, block["author"], block["sha"])).fetchone() is None:
            db.execute("UPDATE blocks SET message=? WHERE id=?", (kept, block["id"]))
        else:
            db.execute("DELETE FROM mentions WHERE block=?", (block["id"],))
            db.execute("DELETE FROM blocks WHERE id=?", (block["id"],))
    db.execute("UPDATE OR IGNORE authorships SET message=? WHERE message=?", (kept, other))
    db.execute("DELETE FROM authorships WHERE message=?", (other,))
    keys = [db.execute("SELECT key FROM messages WHERE id=?", (one,)).fetchone()[0] for one in (kept, other)]
    db.execute("UPDATE aliases SET canonical=? WHERE canonical=?", keys)
    db.execute("INSERT OR REPLACE INTO aliases VALUES (?,?)", (keys[1], keys[0]))
    db.execute("DELETE FROM messages WHERE id=?", (other,))
    _credit(db, kept)
    return dirty


def _follow_growth(db: sqlite3.Connection, message: int, holder: Holder, record: str) -> None:
    """Let a message whose first record has grown be known by its new words."""
    if holder.content is not None:
        db.execute(
            "UPDATE messages SET content=?1 WHERE id=?2 AND content IS NOT ?1 AND EXISTS (SELECT 1 FROM holders "
            "WHERE message=?2 AND file=?3 AND session=?4 AND thread=?5 AND record=?6)",
            (holder.content, message, holder.file, storable(holder.session), storable(holder.thread), record),
        )


def hold_silence(db: sqlite3.Connection, message: int, file: int, silent: int, before: int | None = None) -> bool:
    """Note how much of a message names nothing, as a file has it; True if that is news.

    It takes the place of `before`, or of whatever is noted if that is None; else the greater one stands.
    """
    changed = (
        "UPDATE holders SET silent=?1 WHERE message=?2 AND file=?3 AND silent!=?1 "
        "AND (?4 IS NULL OR silent=?4 OR silent<?1)"
    )
    return db.execute(changed, (silent, message, file, before)).rowcount > 0


def growing_blocks(db: sqlite3.Connection, message: int) -> list[tuple[int, int, bytes]]:
    """Return (id, length, digest) of the newest text blocks of a message that may be partials of a longer text."""
    rows = db.execute(
        f"SELECT id, norm_length, sha FROM ({_NEWEST_BLOCKS}) "  # noqa: S608 - a constant
        "WHERE superseded=0 AND author!='agent_tool_input'",
        (message,),
    )
    return [(int(r[0]), int(r[1]), bytes(r[2])) for r in rows]


def supersede(db: sqlite3.Connection, blocks: Collection[int]) -> None:
    """Let stored partials no longer count: a text that continues them was found."""
    db.executemany("UPDATE blocks SET superseded=1 WHERE id=?", [(b,) for b in blocks])


@dataclass(frozen=True, slots=True)
class Held:
    """What storing a block did: the message says something new, and entries that lost a mention."""

    changed: bool
    lost: set[int]


def hold_block(db: sqlite3.Connection, message: int, block: BlockFact, in_use: Container[int]) -> Held:
    """Store a block and its mentions; a block known at greater length stays as it is.

    Where a block under the same key has grown, mentions that its fuller text no longer holds are removed, but never
    those of patterns that are no longer in use (their text is not looked for). The verdict of a mention stays as it
    was first given, unless the text has changed since.
    """
    row = db.execute("SELECT id, norm_length, sha FROM blocks WHERE key=?", (block.key,)).fetchone()
    if row is None:
        cut = _is_cut_of_known(db, message, block)
        block_id = int(
            db.execute(
                "INSERT INTO blocks(key, message, author, norm_length, length, sha, superseded) "
                "VALUES (?,?,?,?,?,?,?) RETURNING id",
                (block.key, message, block.author, block.norm_length, block.length, block.sha, cut),
            ).fetchone()[0]
        )
        _hold_mentions(db, block_id, block.mentions, anew=True)
        return Held(True, set())
    block_id, same = int(row["id"]), bytes(row["sha"]) == block.sha
    if not same and row["norm_length"] > block.norm_length:
        return Held(False, set())
    lost: set[int] = set()
    if not same:
        db.execute(
            "UPDATE blocks SET norm_length=?, length=?, sha=? WHERE id=?",
            (block.norm_length, block.length, block.sha, block_id),
        )
        lost = _drop_unnamed(db, block_id, {m.pattern for m in block.mentions}, in_use)
    added = _hold_mentions(db, block_id, block.mentions, anew=not same)
    return Held(added or not same, lost)


def _is_cut_of_known(db: sqlite3.Connection, message: int, block: BlockFact) -> bool:
    """Tell whether a longer stored text of the message names the same entries after the same words."""
    if block.author == "agent_tool_input" or not block.mentions:
        return False
    prefixes = {(m.pattern, m.prefix) for m in block.mentions}
    for row in db.execute(
        f"SELECT id FROM ({_NEWEST_BLOCKS}) WHERE superseded=0 AND norm_length>? AND author=?",  # noqa: S608 - a constant
        (message, block.norm_length, block.author),
    ).fetchall():
        known = {
            (int(r[0]), bytes(r[1])) for r in db.execute("SELECT pattern, prefix FROM mentions WHERE block=?", row)
        }
        if prefixes <= known:
            return True
    return False


def _hold_mentions(db: sqlite3.Connection, block: int, mentions: Sequence[MentionFact], *, anew: bool) -> bool:
    """Store mentions; those known keep their verdict unless judged anew. True if one is new."""
    known = {int(r[0]) for r in db.execute("SELECT pattern FROM mentions WHERE block=?", (block,))}
    for m in mentions:
        files = json.dumps(m.files, ensure_ascii=False)
        if m.pattern not in known:
            values = (block, m.pattern, m.entry, m.listed, m.own, m.span, m.prefix, storable(m.snippet), files)
            db.execute("INSERT INTO mentions VALUES (?,?,?,?,?,?,?,?,?)", values)
        elif anew:
            db.execute(
                "UPDATE mentions SET listed=?, own=?, span=? WHERE block=? AND pattern=?",
                (m.listed, m.own, m.span, block, m.pattern),
            )
    return any(m.pattern not in known for m in mentions)


def storable(text: str) -> str:
    """Return a text that is valid UTF-8: SQLite takes no lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _drop_unnamed(db: sqlite3.Connection, block: int, named: Container[int], in_use: Container[int]) -> set[int]:
    rows = db.execute("SELECT pattern, entry FROM mentions WHERE block=?", (block,)).fetchall()
    gone = [r for r in rows if r["pattern"] in in_use and r["pattern"] not in named]
    db.executemany("DELETE FROM mentions WHERE block=? AND pattern=?", [(block, r["pattern"]) for r in gone])
    return {int(r["entry"]) for r in gone}


def message_id(db: sqlite3.Connection, key: bytes) -> int | None:
    """Return the id of a message, None if it names and wrote nothing."""
    row = db.execute("SELECT id FROM messages WHERE key=?", (key,)).fetchone()
    return None if row is None else int(row[0])


def known_messages(db: sqlite3.Connection, agent: str, native_ids: Iterable[str | None]) -> set[str]:
    """Return those ids by which an agent's messages are known to the ledger."""
    keys = {key_of(agent, "m", native_id): native_id for native_id in native_ids if native_id}
    found: set[str] = set()
    wanted = iter(keys)
    while part := tuple(islice(wanted, _KEYS_AT_ONCE)):
        marks = ",".join("?" * len(part))
        rows = db.execute(f"SELECT key FROM messages WHERE key IN ({marks})", part)  # noqa: S608 - marks
        found.update(keys[row[0]] for row in rows)
    return found


def add_files(db: sqlite3.Connection, message: int, names: Sequence[str], limit: int) -> bool:
    """Add files to all mentions of a message, up to a limit each; True if something was added."""
    added = False
    rows = db.execute(
        "SELECT m.block, m.pattern, m.files FROM blocks b JOIN mentions m ON m.block=b.id WHERE b.message=?", (message,)
    ).fetchall()
    for row in rows:
        old = json.loads(row["files"])
        new = [*old, *(n for n in names if n not in old)][:limit]
        if new != old:
            db.execute(
                "UPDATE mentions SET files=? WHERE block=? AND pattern=?",
                (json.dumps(new, ensure_ascii=False), row["block"], row["pattern"]),
            )
            added = True
    return added


@dataclass(frozen=True, slots=True)
class MessageMention:
    """A stored mention as the listing rule needs it."""

    block: int
    pattern: int
    entry: int
    base: int
    own: int
    span: int
    listed: bool


def message_mentions(db: sqlite3.Connection, message: int) -> tuple[list[MessageMention], int]:
    """Return all mentions of a message's valid blocks, and the message's length, silent blocks included."""
    rows = db.execute(
        "SELECT m.block, m.pattern, m.entry, e.base, m.own, m.span, m.listed FROM blocks b "
        "JOIN mentions m ON m.block=b.id JOIN entries e ON e.id=m.entry WHERE b.message=? AND b.superseded=0",
        (message,),
    )
    mentions = [
        MessageMention(r["block"], r["pattern"], r["entry"], r["base"], r["own"], r["span"], bool(r["listed"]))
        for r in rows
    ]
    length = db.execute(
        "SELECT coalesce((SELECT sum(length) FROM blocks WHERE message=?1 AND superseded=0), 0) "
        "+ coalesce((SELECT max(silent) FROM holders WHERE message=?1), 0)",
        (message,),
    ).fetchone()[0]
    return mentions, int(length)


def set_listed(db: sqlite3.Connection, mentions: Collection[MessageMention], listed: bool) -> None:
    """Set the verdict of these mentions."""
    for m in (one for one in mentions if one.listed != listed):
        db.execute("UPDATE mentions SET listed=? WHERE block=? AND pattern=?", (listed, m.block, m.pattern))


def hold_authorship(db: sqlite3.Connection, message: int, entries: Collection[int]) -> None:
    """Note that a message wrote these entries."""
    db.executemany("INSERT OR IGNORE INTO authorships VALUES (?,?)", [(message, e) for e in entries])


def entries_of_message(db: sqlite3.Connection, message: int) -> set[int]:
    """Return the entries a message names or wrote: those to count again when its credit moves."""
    rows = db.execute(
        "SELECT entry FROM authorships WHERE message=?1 UNION "
        "SELECT m.entry FROM blocks b JOIN mentions m ON m.block=b.id WHERE b.message=?1",
        (message,),
    )
    return {int(r[0]) for r in rows}
