"""The ledger's record of writes that can be taken back: ten of counters for each file, others for thirty days."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kbd.core.undoing import Change

COUNTERS = "counters"
COUNTER_WRITES = 10
KEPT_DAYS = 30
_CHANGE = "place, old, new, before, after, title, above, section"


@dataclass(frozen=True, slots=True)
class WriteRow:
    """What one act changed in one file.

    Attributes:
        changes: each with the id of the entry it is about, None for none known; titles are those of today.
    """

    id: int
    path: str
    changes: tuple[tuple[int | None, Change], ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Something kbd did to one file, or two: `kind` is counters, archive, restore, forget, classify, dates or adopt."""

    id: int
    at: str
    kind: str
    writes: tuple[WriteRow, ...]

    @property
    def entries(self) -> tuple[int, ...]:
        """The entries concerned."""
        found = (entry for write in self.writes for entry, _ in write.changes)
        return tuple(dict.fromkeys(entry for entry in found if entry is not None))


def record(
    db: sqlite3.Connection,
    kind: str,
    path: str,
    changes: Sequence[Change],
    now: datetime,
    *,
    ids: Mapping[str, int] | None = None,
    act: int | None = None,
) -> int | None:
    """Remember what a write changed, within the transaction that confirms it; return the act, None if it was nothing.

    Args:
        db: within a transaction.
        kind: see `Act`.
        path: the file.
        changes: in it.
        now: the time.
        ids: normalised title → entry, where the caller knows; else those that stand in the file are looked up.
        act: the act that this file's part belongs to.
    """
    if not changes:
        return act
    if ids is None:
        rows = db.execute("SELECT norm, id FROM entries WHERE file=? ORDER BY gone_on IS NULL, id", (path,))
        ids = {str(r[0]): int(r[1]) for r in rows}
    row = db.execute(
        "INSERT INTO undo(act, at, kind, path) VALUES (?,?,?,?) RETURNING id", (act or 0, now.isoformat(), kind, path)
    ).fetchone()
    number = int(row[0])
    if act is None:
        db.execute("UPDATE undo SET act=id WHERE id=?", (number,))
    db.executemany(
        f"INSERT INTO undo_changes(undo, entry, {_CHANGE}) VALUES (?,?,?,?,?,?,?,?,?,?)",  # noqa: S608 - a constant
        [(number, ids.get(change.title), *_columns(change)) for change in changes],
    )
    _prune(db, path, now)
    return act or number


def _columns(c: Change) -> tuple[object, ...]:
    return c.offset, c.old, c.new, c.left, c.right, _text(c.title), _text(c.above), _text(c.section)


def _text(text: str | None) -> str | None:
    """SQLite takes no lone surrogates."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def half_done(db: sqlite3.Connection, entry: int, kind: str, target: str, source: str) -> int | None:
    """Return the act of a move whose block has arrived and is not yet cut from its source, None if there is none."""
    row = db.execute(
        "SELECT u.act FROM undo u JOIN undo_changes c ON c.undo=u.id WHERE c.entry=? AND u.kind=? AND u.path=? "
        "AND NOT EXISTS (SELECT 1 FROM undo o WHERE o.act=u.act AND o.path=?) ORDER BY u.id DESC LIMIT 1",
        (entry, kind, target, source),
    ).fetchone()
    return None if row is None else int(row[0])


def acts(db: sqlite3.Connection, *, path: str | None = None, entry: int | None = None) -> list[Act]:
    """Return the acts that can be taken back, newest first: of a file, of an entry, or all."""
    rows = db.execute(
        "SELECT DISTINCT u.act FROM undo u WHERE (?1 IS NULL OR u.path=?1) AND (?2 IS NULL OR EXISTS "
        "(SELECT 1 FROM undo_changes c WHERE c.undo=u.id AND c.entry=?2)) ORDER BY u.act DESC",
        (path, entry),
    ).fetchall()
    return [_act(db, int(r[0])) for r in rows]


def _act(db: sqlite3.Connection, number: int) -> Act:
    rows = db.execute("SELECT id, at, kind, path FROM undo WHERE act=? ORDER BY id", (number,)).fetchall()
    writes = tuple(WriteRow(int(r["id"]), r["path"], _changes(db, int(r["id"]))) for r in rows)
    return Act(number, rows[0]["at"], rows[0]["kind"], writes)


def _changes(db: sqlite3.Connection, write: int) -> tuple[tuple[int | None, Change], ...]:
    rows = db.execute(
        "SELECT c.entry, c.place, c.old, c.new, c.before, c.after, coalesce(e.norm, c.title), c.above, c.section "
        "FROM undo_changes c LEFT JOIN entries e ON e.id=c.entry AND e.norm NOT LIKE char(0)||'%' "
        "WHERE c.undo=? ORDER BY c.place",
        (write,),
    )
    return tuple(
        (r[0], Change(r[1], bytes(r[2]), bytes(r[3]), bytes(r[4]), bytes(r[5]), r[6], r[7], r[8])) for r in rows
    )


def drop(db: sqlite3.Connection, act: int, entry: int | None = None) -> None:
    """Forget an act that was taken back, or its part about one entry."""
    db.execute(
        "DELETE FROM undo_changes WHERE undo IN (SELECT id FROM undo WHERE act=?1) AND (?2 IS NULL OR entry=?2)",
        (act, entry),
    )
    db.execute("DELETE FROM undo WHERE act=? AND id NOT IN (SELECT undo FROM undo_changes)", (act,))


def _prune(db: sqlite3.Connection, path: str, now: datetime) -> None:
    old = db.execute(
        "SELECT id FROM undo WHERE kind=?1 AND path=?2 ORDER BY id DESC LIMIT -1 OFFSET ?3",
        (COUNTERS, path, COUNTER_WRITES),
    ).fetchall()
    oldest = (now - timedelta(days=KEPT_DAYS)).isoformat()
    old += db.execute("SELECT id FROM undo WHERE kind!=? AND at<?", (COUNTERS, oldest)).fetchall()
    db.executemany("DELETE FROM undo_changes WHERE undo=?", [(r[0],) for r in old])
    db.executemany("DELETE FROM undo WHERE id=?", [(r[0],) for r in old])
