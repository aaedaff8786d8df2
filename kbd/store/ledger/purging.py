"""Removing sessions and entries from the ledger for good: their words, names and places, here and in every backup.

What was removed is known by its digest only, so that it is not read in again from transcripts that are still there.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kbd.core.normal import normalise
from kbd.store.descriptors import unwritable
from kbd.store.ledger.backups import back_up, backups
from kbd.store.ledger.counts import recount
from kbd.store.ledger.database import LEDGER_NAME, Ledger
from kbd.store.ledger.facts import entries_of_message
from kbd.store.ledger.tellings import forget_tellings
from kbd.store.sweeping import sweep_state

_DIGEST_BYTES = 20
_TELLING = 8


@dataclass(frozen=True, slots=True)
class Purged:
    """Digests of sessions and transcripts that are never read again."""

    digests: frozenset[bytes]

    def holds_session(self, session: str) -> bool:
        """Tell whether a session was purged."""
        return bool(self.digests) and _digest("session", session) in self.digests

    def holds_path(self, path: str) -> bool:
        """Tell whether a transcript was of a purged session alone."""
        return bool(self.digests) and _digest("path", path) in self.digests


def purged(db: sqlite3.Connection) -> Purged:
    """Return what was purged so far."""
    return Purged(frozenset(bytes(row[0]) for row in db.execute("SELECT digest FROM purged")))


def _digest(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


def sessions_known(db: sqlite3.Connection, session: str) -> list[str]:
    """Return the session if the ledger knows it."""
    tables = ("holders", "messages", "seen_sessions", "refs", "files", "lineage")
    known = any(
        db.execute(f"SELECT 1 FROM {table} WHERE session=? LIMIT 1", (session,)).fetchone()  # noqa: S608 - constants
        for table in tables
    )
    return [session] if known else []


def sessions_in(db: sqlite3.Connection, folder: str) -> list[str]:
    """Return the sessions that worked in a folder or below it."""
    rows = db.execute(
        "SELECT session FROM holders WHERE cwd=?1 OR substr(cwd, 1, length(?1)+1)=?1||'/' UNION "
        "SELECT session FROM messages WHERE cwd=?1 OR substr(cwd, 1, length(?1)+1)=?1||'/'",
        (folder,),
    )
    return sorted(str(row[0]) for row in rows)


def purge_sessions(db: sqlite3.Connection, sessions: Iterable[str], words: Sequence[str], today: date) -> int:
    """Remove sessions, and what else holds one of the words (ids of sessions, a folder); return the references lost.

    What another session holds too, as a copy, is credited to that one.
    """
    dirty: set[int] = set()
    files: set[int] = set()
    before = db.execute("SELECT count(*) FROM refs").fetchone()[0]
    for session in sessions:
        files |= {int(r[0]) for r in db.execute("SELECT DISTINCT file FROM holders WHERE session=?", (session,))}
        dirty |= _purge_messages(db, session)
        for table, column in _SESSION_COLUMNS:
            db.execute(f"DELETE FROM {table} WHERE {column}=?", (session,))  # noqa: S608 - constants
        forget_tellings(db, session=session)
        agents = db.execute("DELETE FROM trunks WHERE trunk=? RETURNING thread", (session,)).fetchall()
        for name in (session, *(str(row[0]) for row in agents)):
            db.execute("INSERT OR IGNORE INTO purged VALUES (?)", (_digest("session", name),))
    for word in words:
        _purge_word(db, word)
    _forget_files(db, files)
    recount(db, dirty, today)
    return int(before - db.execute("SELECT count(*) FROM refs").fetchone()[0])


_SESSION_COLUMNS = (
    ("seen_sessions", "session"),
    ("lineage", "session"),
    ("lineage", "ancestor"),
    ("beginnings", "session"),
    ("set_aside", "session"),
    ("refs", "session"),
)


def _purge_messages(db: sqlite3.Connection, session: str) -> set[int]:
    rows = db.execute(
        "SELECT message FROM holders WHERE session=?1 UNION SELECT id FROM messages WHERE session=?1", (session,)
    )
    messages = [int(row[0]) for row in rows]
    db.execute("DELETE FROM holders WHERE session=?", (session,))
    dirty: set[int] = set()
    for message in messages:
        dirty |= entries_of_message(db, message)
        other = db.execute(
            "SELECT session, at, cwd FROM holders WHERE message=? ORDER BY told, birth_ns, file, path LIMIT 1",
            (message,),
        ).fetchone()
        if other is None:
            _drop_message(db, message)
        else:
            db.execute(
                "UPDATE messages SET session=?, at=?, day=?, cwd=? WHERE id=?",
                (other["session"], other["at"], other["at"][:10], other["cwd"], message),
            )
    return dirty


def _drop_message(db: sqlite3.Connection, message: int) -> None:
    db.execute("DELETE FROM mentions WHERE block IN (SELECT id FROM blocks WHERE message=?)", (message,))
    for table, column in (
        ("blocks", "message"),
        ("authorships", "message"),
        ("holders", "message"),
        ("messages", "id"),
    ):
        db.execute(f"DELETE FROM {table} WHERE {column}=?", (message,))  # noqa: S608 - constants


def _forget_files(db: sqlite3.Connection, files: Iterable[int]) -> None:
    """Forget transcripts that hold nothing of other sessions: they are read anew if they are still there."""
    for file in files:
        if db.execute("SELECT 1 FROM holders WHERE file=? LIMIT 1", (file,)).fetchone() is None:
            _drop_file(db, file)


def _drop_file(db: sqlite3.Connection, file: int) -> None:
    db.execute("DELETE FROM marks WHERE stream=(SELECT stream FROM files WHERE id=?)", (file,))
    db.execute("DELETE FROM beginnings WHERE file=?", (file,))
    forget_tellings(db, file=file)
    db.execute("DELETE FROM heads WHERE file=?", (file,))
    db.execute("DELETE FROM files WHERE id=?", (file,))


def _purge_word(db: sqlite3.Connection, word: str) -> None:
    """Remove what else holds a session's id or a folder: transcripts of that name, states of decoders, the log."""
    folder = f"/{word.replace('/', '-')}/"  # Claude Code names a project's folder so
    for file, path, session, origins in db.execute(
        "SELECT id, path, session, origins || old_origins FROM files"
    ).fetchall():
        if session == word or folder in path or _names(path, word) or _names(origins, word):
            db.execute("INSERT OR IGNORE INTO purged VALUES (?)", (_digest("path", path),))
            for (other,) in db.execute("SELECT DISTINCT session FROM seen_sessions").fetchall():
                if _names(path, other):
                    db.execute("DELETE FROM seen_sessions WHERE session=?", (other,))
            _drop_file(db, file)
    _forget_states(db, word)
    for event, text in db.execute("SELECT id, title || ' ' || detail FROM events").fetchall():
        if _names(text, word):
            db.execute("DELETE FROM events WHERE id=?", (event,))
    for code, place, what in db.execute("SELECT code, place, what FROM faults").fetchall():
        if _names(place, word) or _names(what, word):
            db.execute("DELETE FROM faults WHERE code=? AND place=?", (code, place))


def _names(text: str, word: str) -> bool:
    """Tell whether a text holds a word as a whole; a short one, such as a session called `1`, would stand anywhere."""
    if len(word) < _TELLING or word not in text:
        return False
    return re.search(rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])", text) is not None


def _forget_states(db: sqlite3.Connection, word: str) -> None:
    """Let decoders forget what they carry over to the next record; it is made anew by reading from the beginning."""
    wanted = normalise(word)
    for file, state in db.execute("SELECT id, state FROM files WHERE state IS NOT NULL").fetchall():
        if wanted in normalise(bytes(state).decode("utf-8", "replace")):
            db.execute("UPDATE files SET state=NULL, reread=1, settled=0 WHERE id=?", (file,))


def purge_entry(db: sqlite3.Connection, entry: int) -> int:
    """Remove an entry and its evidence; return how many citations that were.

    Where it still stands in a file, the next pass takes it in as new: with the number it has there, which covers
    what was counted.
    """
    row = db.execute("SELECT title, norm, citations, file FROM entries WHERE id=?", (entry,)).fetchone()
    touched = db.execute(
        "SELECT b.message FROM mentions m JOIN blocks b ON b.id=m.block WHERE m.entry=?1 "
        "UNION SELECT message FROM authorships WHERE entry=?1",
        (entry,),
    ).fetchall()
    for table in ("mentions", "authorships", "refs", "set_aside", "patterns", "pairs", "bodies", "events"):
        db.execute(f"DELETE FROM {table} WHERE entry=?", (entry,))  # noqa: S608 - constants
    db.execute("DELETE FROM entries WHERE id=?", (entry,))
    db.execute("DELETE FROM notes WHERE path=?", (row["file"],))
    for (message,) in touched:
        if not entries_of_message(db, message):
            _drop_message(db, message)
    _purge_title(db, row["title"], row["norm"])
    _forget_states(db, row["title"])
    _purge_undo(db, entry, row["title"])
    return int(row["citations"])


def _purge_title(db: sqlite3.Connection, title: str, norm: str) -> None:
    """Remove a title from other entries' evidence, from relations and from what is said of files."""
    for block, pattern, words in db.execute(
        "SELECT block, pattern, snippet FROM mentions WHERE snippet!=''"
    ).fetchall():
        if norm in normalise(words):
            db.execute("UPDATE mentions SET snippet='' WHERE block=? AND pattern=?", (block, pattern))
    for base, s, p, o in db.execute("SELECT base, s, p, o FROM relations").fetchall():
        if norm in (normalise(s), normalise(o)):
            db.execute("DELETE FROM relations WHERE base=? AND s=? AND p=? AND o=?", (base, s, p, o))
    db.execute("DELETE FROM events WHERE title=?1 OR instr(detail, ?1)", (title,))
    db.execute("DELETE FROM notes WHERE instr(problems, ?)", (title,))
    db.execute("DELETE FROM faults WHERE instr(place, ?1) OR instr(what, ?1)", (title,))


def _purge_undo(db: sqlite3.Connection, entry: int, title: str) -> None:
    """Forget how to take back what was written about an entry, or right beside it."""
    bytes_of = title.encode("utf-8", "replace")
    holds = " OR ".join(f"instr(c.{column}, ?2)" for column in ("old", "new", "before", "after"))
    db.execute(
        f"DELETE FROM undo WHERE act IN (SELECT u.act FROM undo u JOIN undo_changes c ON c.undo=u.id "  # noqa: S608 - constants
        f"WHERE c.entry=?1 OR {holds})",
        (entry, bytes_of),
    )
    db.execute("DELETE FROM undo_changes WHERE undo NOT IN (SELECT id FROM undo)")


def note_begun(ledger: Ledger) -> None:
    """Note in the transaction of a purge that copies are to be removed: a kill in between leaves that to the next."""
    ledger.set_meta("purging", "1")


def finish_begun(ledger: Ledger, state_dir: Path, today: date) -> bool:
    """Finish a purge that was interrupted; return whether one was. Raises as `leave_nothing`."""
    if ledger.meta("purging") != "1":
        return False
    leave_nothing(ledger, state_dir, today)
    return True


def leave_nothing(ledger: Ledger, state_dir: Path, today: date) -> None:
    """Rewrite the ledger without what was deleted, and put one new backup in the place of all others.

    Raises:
        FileUnwritable: the disk is full or read-only: some copies may be left, so call it again.
    """
    sweep_state(state_dir)  # a backup that was cut short is one, too
    with unwritable(ledger.path):
        for copy in [*backups(state_dir), *state_dir.glob(f"{LEDGER_NAME}*.damaged-*")]:
            copy.unlink()
        if not (state_dir / "relations").is_symlink():  # a link leads to files of somebody else
            for copy in (state_dir / "relations").glob("*"):
                copy.unlink()
        ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ledger.db.execute("VACUUM")
        ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with ledger.transaction():
        ledger.set_meta("purging", "")
    back_up(ledger, state_dir, today)
