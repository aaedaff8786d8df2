"""Opens an agent's SQLite store for reading only; nothing in its folder is written or made.

A store in WAL mode that nobody has open has no `-wal` and `-shm` beside it, and SQLite would make them even for a
reader (or fail where it may not). Such a store, or one whose writer died, is read from a private copy instead.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from kbd.errors import FileUnreadable
from kbd.store.descriptors import open_regular
from kbd.store.documents import version
from kbd.store.identity import device, inode, modified_ns

Row = tuple[object, ...]

BUSY_SECONDS = 1.0
QUERY_SECONDS = 30.0
_STEPS = 100_000
ATTEMPTS = 3
MAX_COPIED_BYTES = 4 << 30
_WAL_FORMAT = 2
_TRANSIENT = frozenset([sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL])


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a store from another; `-shm` is no part of it, as reading alone moves that.

    Attributes:
        dev, ino: of the database.
        size: of database and `-wal` together.
        moved_ns: when either last moved.
    """

    dev: int
    ino: int
    size: int
    moved_ns: int


def stamp_of(path: str) -> Stamp:
    """Return the present state. Raises FileNotFoundError if there is none, FileUnreadable if it is no regular file."""
    try:
        seen = os.lstat(path)
        wal = _wal_of(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error
    if not stat.S_ISREG(seen.st_mode):
        raise _unreadable(path, "not a regular file")
    size, moved_ns = version(seen)
    if wal is not None:
        # Its inode's time is no sign: SQLite sets the owner of a `-wal` anew whenever root opens it.
        size, moved_ns = size + wal.st_size, max(moved_ns, modified_ns(wal))
    return Stamp(device(seen), inode(seen), size, moved_ns)


def _wal_of(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path + "-wal")
    except FileNotFoundError:
        return None


@contextmanager
def reading(path: str, *, max_value: int) -> Iterator[sqlite3.Connection]:
    """Open a store; no transaction stays open between two queries.

    Args:
        path: the database, a regular file.
        max_value: bytes of the longest value; a row with a longer one raises `sqlite3.DataError` when it is read.

    Raises:
        FileNotFoundError: it is absent.
        FileUnreadable: it is no database, damaged, or in use without pause.
    """
    try:
        with closing(_connect(path, max_value) if _is_in_use_or_plain(path) else _copy_of(path, max_value)) as db:
            yield db
    except sqlite3.Error as error:
        raise _unreadable(path, str(error)) from error


def fetch(db: sqlite3.Connection, sql: str, values: Sequence[object] = (), *, enough: int = 1 << 62) -> list[Row]:
    """Return the rows of a query, no more once they hold `enough` bytes of text.

    What passes by itself (a checkpoint, a short lock) is tried again.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _fetched(db, sql, values, enough)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _TRANSIENT:
                raise
    return _fetched(db, sql, values, enough)


def _fetched(db: sqlite3.Connection, sql: str, values: Sequence[object], enough: int) -> list[Row]:
    rows: list[Row] = []
    deadline = time.monotonic() + QUERY_SECONDS
    # A store whose ids are all the same makes of a join the square of its rows.
    db.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS)
    with closing(db.execute(sql, values)) as cursor:
        for row in cursor:
            rows.append(row)
            enough -= sum(len(value) for value in row if isinstance(value, str | bytes))
            if enough < 0:
                break
    return rows


def columns_of(db: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Return the columns of each real table; views and virtual tables may run anything and are left out."""
    tables = fetch(db, "SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0 LIMIT 1000")
    found = {}
    for (name,) in tables:
        columns = fetch(db, "SELECT name FROM pragma_table_info(?)", (name,))
        found[str(name)] = frozenset(str(column[0]) for column in columns)
    return found


def _connect(path: str, max_value: int) -> sqlite3.Connection:
    uri = f"file:{urllib.parse.quote(os.fspath(path))}?mode=ro"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    db.text_factory = _text
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(max_value, 1 << 20))
    for pragma in ("query_only=1", "trusted_schema=0", "cell_size_check=1"):
        db.execute(f"PRAGMA {pragma}")
    return db


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_in_use_or_plain(path: str) -> bool:
    """Tell whether a reader in place finds all it needs: a rollback journal needs nothing, a WAL both side files."""
    fd = _opened(path)
    try:
        head = os.pread(fd, 20, 0)
    finally:
        os.close(fd)
    in_wal_mode = len(head) == 20 and head[18] == _WAL_FORMAT
    return not in_wal_mode or all(os.path.exists(path + suffix) for suffix in ("-wal", "-shm"))


def _copy_of(path: str, max_value: int) -> sqlite3.Connection:
    """Open a private copy, which has no name any more once it is open: a kill leaves nothing behind."""
    try:
        made = tempfile.TemporaryDirectory(prefix="kbd-")
    except OSError as error:  # without any folder that takes one it is a FileNotFoundError, and the store is not absent
        raise _unreadable(path, f"no copy can be made: {error.strerror}") from error
    with made as folder:
        db = _connect(_copied(path, folder), max_value)
        try:
            fetch(db, "SELECT count(*) FROM sqlite_master")
        except sqlite3.Error:
            db.close()
            raise
        return db


def _copied(path: str, folder: str) -> str:
    """Copy a store that nobody writes; FileUnreadable if somebody began meanwhile."""
    target = os.path.join(folder, "copy.db")
    before = stamp_of(path)
    if before.size > min(MAX_COPIED_BYTES, shutil.disk_usage(folder).free // 2):
        raise _unreadable(path, f"{before.size >> 20:,} MiB are too much for a private copy in {folder}")
    for suffix in ("", "-wal"):
        if suffix and not os.path.exists(path + suffix):
            continue
        fd = _opened(path + suffix)
        try:
            with open(fd, "rb", closefd=False) as source, open(target + suffix, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
        except OSError as error:
            raise _unreadable(path, f"cannot be copied ({error.strerror})") from error
        finally:
            os.close(fd)
    if stamp_of(path) != before:
        raise _unreadable(path, "was written while it was copied")
    return target


def _opened(path: str) -> int:
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error


def _unreadable(path: str, what: str) -> FileUnreadable:
    return FileUnreadable(f"cannot be read as a database ({what})", where=path, hint="kbd tries again at the next pass")
