"""Reads what is new in an agent's SQLite store, row by row, as records.

New rows are those with a rowid over the highest read. A row that changed in place tells so by a time. Clocks are
coarse, and a transaction may end later than its time, so a minute is looked at again; clocks are set back, so of the
newest rows any other time is a change. Rows that are as they were given are passed over.

A cursor saves work and never decides what counts: where the rowids no longer mean the rows they meant (another
database, a backup put back, a VACUUM), everything is read again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from kbd.core.model import Record
from kbd.errors import FileUnreadable
from kbd.sources.contract import Rows
from kbd.store.documents import is_quiet
from kbd.store.position import Position, Verdict
from kbd.store.sqlitefile import Stamp, columns_of, fetch, reading, stamp_of
from kbd.store.tail import Batch

BATCH_ROWS = 64
BATCH_BYTES = 4 << 20
KEYS_AT_ONCE = 4096
OVERLAP_MS = 60_000
MAX_SEEN = 2048
NEWEST_ROWS = 512
RECENT_ROWS = 50_000
WHOLE_SECONDS = 3600.0
_MAX_IDENTITY = 256

RowsOf = Callable[[Mapping[str, frozenset[str]]], tuple[Rows, ...]]


class Mark(msgspec.Struct):
    """Where one table stands.

    Attributes:
        top: highest rowid read; identity: of that row.
        since: newest time of a change when the recent rows were last looked through, in ms.
        since_whole: the same for the whole table, which is looked through once an hour; whole_at: when (real clock).
        seen: by rowid, (time, digest) of the newest rows, and of those changed in the last minute before `since`.
    """

    top: int = 0
    identity: str = ""
    since: int = 0
    since_whole: int = 0
    whole_at: float = 0.0
    seen: dict[int, tuple[int, str]] = {}


class _Cursor(msgspec.Struct):
    ino: int = 0
    marks: dict[str, Mark] = {}


@dataclass(slots=True)
class _Chunk:
    records: list[Record] = field(default_factory=list)
    oversize: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as fetched; `data` is None if it is too long."""

    key: int
    identity: str
    changed: int
    data: bytes | None


def read_rows(path: str, position: Position, rows_of: RowsOf, *, now: float, max_record: int) -> Iterator[Batch]:
    """Yield the rows that are new or changed since `position`, each as a record whose offset is its rowid.

    Nothing is yielded, and the store is not even opened, if it did not move. Short transactions only; the store is
    never written.

    Args:
        path: the database.
        position: from an earlier batch, or of a file not yet read.
        rows_of: what to read, given the columns of the tables.
        now: the real clock, in seconds since the epoch.
        max_record: bytes of the longest record that is given; longer ones are counted.

    Raises:
        FileNotFoundError: it is absent.
        FileUnreadable: it cannot be read now, or holds no table that is known.
    """
    stamp = stamp_of(path)
    cursor = _restored(position.cursor)
    if position.ended and (position.ino, position.size, position.mtime_ns) == (stamp.ino, stamp.size, stamp.moved_ns):
        return
    with reading(path, max_value=max_record) as db:
        wanted = rows_of(columns_of(db))
        if not wanted:
            hint = "its format may be newer than this kbd; see `kbd doctor`"
            raise FileUnreadable("holds none of the tables that are known", where=path, hint=hint)
        known = cursor.ino == stamp.ino and all(_still_means(db, r, cursor.marks.get(r.table)) for r in wanted)
        restarted = Verdict.REWRITTEN if cursor.marks and not known else None
        marks = cursor.marks if known else {}
        for rows in wanted:
            mark = marks.setdefault(rows.table, Mark())
            for chunk in _Sweep(db, rows, mark, now, max_record).chunks():
                at = _position(position, stamp, marks, ended=False)
                yield Batch(tuple(chunk.records), at, restarted, chunk.oversize, more=True, lag_bytes=stamp.size)
                restarted = None
        at = _position(position, stamp, marks, ended=is_quiet(stamp.moved_ns, now))
        yield Batch((), replace(at, offset=max(stamp.size, 1)), restarted, 0, more=False, lag_bytes=0)


def _restored(text: str) -> _Cursor:
    try:
        return msgspec.json.decode(text, type=_Cursor) if text else _Cursor()
    except msgspec.MsgspecError:
        return _Cursor()


def _position(before: Position, stamp: Stamp, marks: dict[str, Mark], *, ended: bool) -> Position:
    return replace(
        before,
        dev=stamp.dev,
        ino=stamp.ino,
        size=stamp.size,
        mtime_ns=stamp.moved_ns,
        offset=1,
        ended=ended,
        cursor=msgspec.json.encode(_Cursor(stamp.ino, marks)).decode(),
    )


def _still_means(db: sqlite3.Connection, rows: Rows, mark: Mark | None) -> bool:
    if mark is None or not mark.top:
        return mark is not None
    sql = f"SELECT {rows.identity} FROM {rows.table} t {rows.joins} WHERE t.rowid=?"  # noqa: S608 - the format's own
    found = fetch(db, sql, (mark.top,))
    return _identity(found[0][0]) == mark.identity if found else _never_used_again(db, rows.table, mark.top)


def _never_used_again(db: sqlite3.Connection, table: str, top: int) -> bool:
    """Tell whether a rowid that is gone stays so (AUTOINCREMENT): rows over it are new ones then."""
    if not fetch(db, "SELECT 1 FROM sqlite_master WHERE name='sqlite_sequence'"):
        return False
    highest = fetch(db, "SELECT seq FROM sqlite_sequence WHERE name=?", (table,))
    return bool(highest) and isinstance(highest[0][0], int) and highest[0][0] >= top


def _identity(value: object) -> str:
    return str(value)[:_MAX_IDENTITY]


@dataclass(slots=True)
class _Sweep:
    """One look through one table; moves its mark as rows are given."""

    db: sqlite3.Connection
    rows: Rows
    mark: Mark
    now: float
    max_record: int
    newest: int = 0

    def chunks(self) -> Iterator[_Chunk]:
        """Yield the rows to be read, a few at a time; the mark moves with each."""
        mark = self.mark
        whole = mark.top <= RECENT_ROWS or not 0 <= self.now - mark.whole_at < WHOLE_SECONDS
        floor = 0 if whole else mark.top - RECENT_ROWS
        low = (mark.since_whole if whole else mark.since) - OVERLAP_MS
        self.newest = self._newest(floor)
        if not mark.top:
            mark.since = mark.since_whole = self.newest
        for keys in self._keys(floor, low):
            while keys:
                chunk, keys = self._chunk(keys[:BATCH_ROWS], keys)
                if chunk.records or chunk.oversize:
                    yield chunk
        mark.since = self.newest
        if whole:
            mark.since_whole, mark.whole_at = self.newest, self.now

    def _newest(self, floor: int) -> int:
        if not self.rows.changed:
            return 0
        sql = f"SELECT max({self._changed()}) FROM {self.rows.table} t WHERE t.rowid>?"  # noqa: S608 - the format's own
        newest = fetch(self.db, sql, (floor,))[0][0]
        # A time ahead of the clock would hide every later change.
        return min(newest, int(self.now * 1000)) if isinstance(newest, int) else 0

    def _changed(self) -> str:
        return f"CAST({self.rows.changed or '0'} AS INTEGER)"

    def _keys(self, floor: int, low: int) -> Iterator[list[int]]:
        """Yield the rowids to be read: over the highest read, or changed since `low` and over `floor`."""
        top, behind = self.mark.top, floor if self.rows.changed else self.mark.top
        newest = top - NEWEST_ROWS
        sql = (
            f"SELECT t.rowid, {self._changed()} FROM {self.rows.table} t "  # noqa: S608 - the format's own
            f"WHERE t.rowid>? AND (t.rowid>? OR {self._changed()}>=?) ORDER BY t.rowid LIMIT {KEYS_AT_ONCE}"
        )
        while found := fetch(self.db, sql, (behind, newest, low)):
            keys = [(int(str(key)), changed) for key, changed in found]
            _check_order([behind, *(key for key, _ in keys)])
            yield [key for key, changed in keys if key > top or not self._is_as_it_was(key, changed, low)]
            behind = keys[-1][0]

    def _is_as_it_was(self, key: int, changed: object, low: int) -> bool:
        time, _ = self.mark.seen.get(key, (None, ""))
        return isinstance(changed, int) and changed < low and time in (changed, None)

    def _forget(self) -> None:
        """Keep of the rows that were given those that the next look needs to know."""
        mark = self.mark
        window, newest = self.newest - OVERLAP_MS, mark.top - NEWEST_ROWS
        kept = {key: seen for key, seen in mark.seen.items() if key > newest or seen[0] >= window}
        mark.seen = dict(sorted(kept.items())[-MAX_SEEN:])

    def _chunk(self, part: list[int], keys: list[int]) -> tuple[_Chunk, list[int]]:
        """Return what the first keys give, and the keys that are left."""
        chunk, rows = _Chunk(), self._fetched(part)
        for row in rows:
            is_new, row_data = row.key > self.mark.top, row.data
            if row_data is None:
                chunk.oversize += is_new
            elif not self._is_known(row, row_data):
                chunk.records.append(Record(row.key, row_data))
            if is_new:
                self.mark.top, self.mark.identity = row.key, row.identity
        self._forget()
        behind = rows[-1].key if rows else part[-1]
        return chunk, [key for key in keys if key > behind]

    def _is_known(self, row: _Row, data: bytes) -> bool:
        """Tell whether a row was given as it is; remember it."""
        seen = (row.changed, hashlib.blake2b(data, digest_size=6).hexdigest())
        known = self.mark.seen.get(row.key) == seen
        if self.rows.changed:
            self.mark.seen[row.key] = seen
        return known

    def _fetched(self, keys: list[int]) -> list[_Row]:
        """Return the first of these rows, at least one if any is there."""
        try:
            found = self._select(keys)
        except sqlite3.DataError:  # one of them holds a value over the limit
            found = [row for key in keys for row in self._select_alone(key)]
        given = [self._row(*row) for row in found]
        _check_order([min(keys) - 1, *(row.key for row in given)])
        return given

    def _select(self, keys: list[int]) -> list[tuple[object, ...]]:
        rows = self.rows
        marks = ",".join("?" * len(keys))
        sql = (
            f"SELECT t.rowid, {rows.identity}, {self._changed()}, {', '.join(rows.fields.values())} "  # noqa: S608 - the format's own
            f"FROM {rows.table} t {rows.joins} WHERE t.rowid IN ({marks}) ORDER BY t.rowid"
        )
        return fetch(self.db, sql, keys, enough=BATCH_BYTES)

    def _select_alone(self, key: int) -> list[tuple[object, ...]]:
        try:
            return self._select([key])
        except sqlite3.DataError:
            return [(key, "", 0)]

    def _row(self, key: object, identity: object, changed: object, *values: object) -> _Row:
        number = changed if isinstance(changed, int) else 0
        if len(values) < len(self.rows.fields):
            return _Row(int(str(key)), "", number, None)
        given = dict(zip(self.rows.fields, map(_storable, values), strict=True))
        data = msgspec.json.encode({"table": self.rows.table, **given})
        return _Row(int(str(key)), _identity(identity), number, data if len(data) <= self.max_record else None)


def _check_order(keys: Sequence[int]) -> None:
    """Refuse rows out of order: the pages of a damaged tree may lead back to themselves, and reading never ends."""
    if any(a >= b for a, b in pairwise(keys)):
        raise sqlite3.DatabaseError("its rows are out of order: it is damaged")


def _storable(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
