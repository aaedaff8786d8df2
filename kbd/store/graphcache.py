"""A graph in SQLite, made from its log alone: reading costs the new lines only.

The database says up to which byte the log was read, and what the log looked like then: the file's identity, and a
digest of pieces of its content. If the log has only grown, the new lines are applied; else everything is read anew. It
may be lost or deleted at any time.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kbd import __version__
from kbd.core.graph_state import GraphState
from kbd.core.operations import Fault, Operation
from kbd.errors import FileUnreadable, FileUnwritable
from kbd.store.eventlines import Line
from kbd.store.eventlog import START, Log, Position
from kbd.store.graphtables import FORMAT, GraphTables

_WINDOW_BYTES = 4096
_WINDOWS = 32
_BUSY_SECONDS = 20.0
_FaultRow = tuple[int, str, str, str]


class GraphCache:
    """The graph of one log.

    Attributes:
        view: the graph, up to `end`.
        end: the position up to which the log was read.
        torn_bytes: as `Log.torn_bytes`; tail: as `Log.tail`, not part of the view.
    """

    def __init__(self, db: sqlite3.Connection, indexed: Collection[str]) -> None:
        """Take an open database with its tables; see `opened`."""
        self._db = db
        self.view = GraphTables(db, indexed)
        # Another kbd may read a line in another way.
        self._listed = json.dumps([__version__, *sorted(indexed)])
        self.end, self.torn_bytes = START, 0
        self.tail: Line | None = None
        self._kept_stamp = ""

    def refresh(self, file: IO[bytes] | None) -> None:
        """Read what is new in the log, or all of it if it is not the one that was read. None: there is no log."""
        if self._is_current(file):
            return
        with self._transaction():
            # Another process may have read on meanwhile.
            if self._is_current(file):
                return
            if file is not None and self._has_grown(file):
                self._read_on(file)
            else:
                self._rebuild(file)

    def take_own(self, file: IO[bytes], operations: Sequence[Operation], end: Position) -> None:
        """Take in what was appended under the lock after `self.end`, without reading it again."""
        with self._transaction():
            if self._known().get("offset") == str(self.end.offset):
                for operation in operations:
                    self.view.apply(operation)
                self.end = end
                self._remember(file, _stamp(file))
                return
        self.refresh(file)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Hold the view as it is, whatever other processes read in."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def faults(self, after_line: int = 0) -> list[tuple[int, Fault, str]]:
        """Return what is odd about the log's lines after one: line, fault, who wrote it."""
        rows = self._db.execute("SELECT line, code, detail, who FROM faults WHERE line>? ORDER BY line", (after_line,))
        return [(line, Fault(code, detail), who) for line, code, detail, who in rows]

    def kept(self, key: str) -> str:
        """Return a text that was kept with the graph; "" if there is none, or the log was read anew since."""
        return self._known().get(f"kept.{key}", "")

    def keep(self, key: str, text: str) -> None:
        """Keep a text with the graph, as long as its log only grows."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (f"kept.{key}", text))

    def _known(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT key, value FROM meta"))

    def _is_current(self, file: IO[bytes] | None) -> bool:
        known = self._known()
        if known.get("indexed") != self._listed or known["stamp"] != (_stamp(file) if file else "none"):
            return False
        self.end, self.torn_bytes, self.tail = Position(int(known["offset"]), int(known["line"])), 0, None
        return True

    def _has_grown(self, file: IO[bytes]) -> bool:
        known = self._known()
        if known.get("indexed") != self._listed:
            return False
        self.end = Position(int(known["offset"]), int(known["line"]))
        long_enough = os.fstat(file.fileno()).st_size >= self.end.offset
        return long_enough and known["file"] == _file_of(file) and known["digest"] == _digest(file, self.end.offset)

    def _read_on(self, file: IO[bytes]) -> None:
        faults: list[_FaultRow] = []
        self._read(Log(file, self.end), self.view, faults, _stamp(file))
        self._remember(file, self._kept_stamp)
        self._db.executemany("INSERT INTO faults VALUES (?,?,?,?)", faults)

    def _rebuild(self, file: IO[bytes] | None) -> None:
        """Replay the whole log in memory, then fill the tables at once."""
        state = GraphState()
        faults: list[_FaultRow] = []
        with _without_collector():
            self._kept_stamp, self.end = "none", START
            if file is not None:
                self._read(Log(file), state, faults, _stamp(file))
            self.view.fill(state)
        self._db.execute("DELETE FROM meta WHERE key LIKE 'kept.%'")
        self._db.execute("DELETE FROM faults")
        self._db.executemany("INSERT INTO faults VALUES (?,?,?,?)", faults)
        self._remember(file, self._kept_stamp)

    def _read(self, log: Log, graph: GraphTables | GraphState, faults: list[_FaultRow], stamp: str) -> None:
        for piece in log.pieces():
            operations = piece.operations
            # Of a run each operation has a line of its own, of a single line all have the same.
            step = 0 if isinstance(piece, Line) else 1
            for at, code in graph.apply_all(operations):
                faults.append((piece.number + at * step, code, operations[at].id, operations[at].by))
            if isinstance(piece, Line):
                faults += [(piece.number, *fault, piece.by) for fault in piece.faults]
        self.end, self.torn_bytes, self.tail = log.end, log.torn_bytes, log.tail
        # What stands after the end has to be looked at again next time, so the file counts as changed.
        self._kept_stamp = "" if log.torn_bytes else stamp

    def _remember(self, file: IO[bytes] | None, stamp: str) -> None:
        known = {
            "indexed": self._listed,
            "offset": str(self.end.offset),
            "line": str(self.end.line),
            "stamp": stamp,
            "file": _file_of(file) if file else "",
            "digest": _digest(file, self.end.offset) if file else "",
        }
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", known.items())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


@contextmanager
def opened(state_dir: Path, log_path: str, indexed: Collection[str]) -> Iterator[GraphCache]:
    """Open the cache of a log, made if it is not there, and made anew if it is damaged.

    Raises:
        FileUnwritable: the state directory cannot be written.
        FileUnreadable: the cache was damaged; it is removed, so that the next try succeeds.
    """
    name = hashlib.sha256(os.fsencode(os.path.realpath(log_path))).hexdigest()[:16]
    path = state_dir / "graphs" / f"{name}.db"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        db = _connected(path)
    except (OSError, sqlite3.OperationalError) as error:
        raise FileUnwritable(str(error), where=str(path), hint="mend the state directory") from error
    try:
        yield GraphCache(db, indexed)
    except sqlite3.OperationalError as error:
        raise FileUnwritable(str(error), where=str(path), hint="free the disk, or try again later") from error
    except sqlite3.DatabaseError as error:
        _remove(path)
        what = f"the cache of the graph was damaged ({error}) and is removed"
        raise FileUnreadable(what, where=str(path), hint="try again") from error
    finally:
        db.close()


def _connected(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        # Damaged, or of another kbd: everything in it is in the log.
        _remove(path)
        return _connect(path)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
    with contextlib.ExitStack() as failed:
        failed.callback(db.close)
        db.execute("PRAGMA journal_mode=WAL")
        # A commit lost with the power is read from the log again.
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA temp_store=MEMORY")
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            db.execute("BEGIN IMMEDIATE")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise sqlite3.DatabaseError(f"format {version}")
            if version == 0:
                GraphTables(db, ()).make()
            db.execute("COMMIT")
        failed.pop_all()
    return db


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector from walking through a million new objects again and again; there are no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _stamp(file: IO[bytes]) -> str:
    seen = os.fstat(file.fileno())
    return f"{seen.st_dev}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}"


def _file_of(file: IO[bytes]) -> str:
    seen = os.fstat(file.fileno())
    return f"{seen.st_dev}:{seen.st_ino}"


def _digest(file: IO[bytes], end: int) -> str:
    """Return a digest of the content before `end`: its length, and pieces of it from its beginning to its end.

    A rewrite that keeps all pieces and the file's inode is not noticed; `validate` reads everything.
    """
    digest = hashlib.sha256(str(end).encode())
    step = max((end - _WINDOW_BYTES) // (_WINDOWS - 1), 1)
    for start in sorted({min(number * step, max(end - _WINDOW_BYTES, 0)) for number in range(_WINDOWS)}):
        digest.update(os.pread(file.fileno(), min(_WINDOW_BYTES, end - start), start))
    return digest.hexdigest()
