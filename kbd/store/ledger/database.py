"""The ledger: one SQLite file, and how it is opened for reading.

WAL with `synchronous=FULL`: a committed batch survives a power loss. Writers hold one `transaction()` at a
time; readers open with `readonly=True` and never write.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from kbd.errors import FileUnreadable, FileUnwritable, KbdError, LedgerDamaged, LockTimeout
from kbd.store.identity import has_name
from kbd.store.ledger.migrations import is_older, migrated_copy
from kbd.store.ledger.schema import SCHEMA_VERSION
from kbd.store.ledger.soundness import UNTRUSTED, fault_of, is_refusal

LEDGER_NAME = "ledger.db"
MAX_VERSION = 1000
"""No schema comes so far: what says so is damaged."""
RESTORING = "restart the daemon, it restores the newest backup"
BUSY_SECONDS = 20.0


class Ledger:
    """The only truth: facts in, numbers out.

    Attributes:
        path: the database file.
        db: its connection, in autocommit mode outside `transaction()`.
    """

    def __init__(self, path: Path, *, readonly: bool = False, at_rest: bool = False) -> None:
        """Open an existing ledger, for reading `at_rest` without any file beside it.

        Raises:
            sqlite3.DatabaseError: it is none.
            FileUnreadable: it is no regular file; opening it could wait for ever.
        """
        if path.exists() and not path.is_file():
            hint = "remove it; kbd restores the newest backup"
            raise FileUnreadable("not a regular file", where=str(path), hint=hint)
        _require_regular_beside(os.path.realpath(path))
        self.path, self._is_together = path, False
        mode = "rw" if not readonly else "ro&immutable=1" if at_rest else "ro"
        self.db = sqlite3.connect(
            f"file:{_uri(path)}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
        )
        self.db.row_factory = sqlite3.Row
        try:
            self._seen = os.lstat(path)
            self._set_up(readonly=readonly)
        except BaseException:
            self.db.close()
            raise

    def _set_up(self, *, readonly: bool) -> None:
        if not readonly:
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.execute("PRAGMA wal_autocheckpoint=2000")
        self.db.execute("PRAGMA temp_store=MEMORY")

    def close(self) -> None:
        """Close the connection; the ledger is whole at any moment, so nothing is flushed here."""
        self.db.close()

    def transaction(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Commit all or nothing. A full disk or a read-only one raises FileUnwritable, nothing written."""
        return self._part() if self._is_together else self._whole()

    def single(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """As `transaction`, for one statement: that is all or nothing by itself, and no part of what is together."""
        return contextlib.nullcontext(self.db) if self._is_together else self._whole()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[sqlite3.Connection]:
        try:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
            except BaseException:
                self.db.execute("ROLLBACK") if self.db.in_transaction else None
                raise
            self.db.execute("COMMIT")
        except sqlite3.OperationalError as exc:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if not is_refusal(exc):
                raise
            raise refused(exc, self.path) from exc

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Commit the transactions within as one, as each commit waits for the disk; one that fails is undone alone."""
        with self._whole():
            self._is_together = True
            try:
                yield
            finally:
                self._is_together = False

    @contextlib.contextmanager
    def _part(self) -> Iterator[sqlite3.Connection]:
        self.db.execute("SAVEPOINT part")
        try:
            yield self.db
        except BaseException:
            if self.db.in_transaction:  # a full disk has undone the whole
                self.db.execute("ROLLBACK TO part")
                self.db.execute("RELEASE part")
            raise
        self.db.execute("RELEASE part")

    def stands(self) -> bool:
        """Tell whether the file still has its name: what is written into one that was replaced is lost."""
        return has_name(self._seen, self.path)

    def version(self) -> int:
        """Return a number that changes when another process has written; what was written here does not change it."""
        return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def meta(self, key: str) -> str | None:
        """Return the value of a key, None if it was never set."""
        row = self.db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Set a key."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def record_event(
        self,
        at: datetime,
        kind: str,
        *,
        base: int | None = None,
        entry: int | None = None,
        title: str = "",
        detail: str = "",
    ) -> None:
        """Add a line to the log of what happened."""
        self.db.execute(
            "INSERT INTO events(at, day, kind, base, entry, title, detail) VALUES (?,?,?,?,?,?,?)",
            (at.isoformat(), at.date().isoformat(), kind, base, entry, title, detail),
        )


def _require_regular_beside(path: str) -> None:
    """Raise FileUnreadable for what SQLite would open beside a database and might wait for, for ever."""
    for suffix in ("-wal", "-shm", "-journal"):
        if os.path.lexists(path + suffix) and not stat.S_ISREG(os.lstat(path + suffix).st_mode):
            raise FileUnreadable("not a regular file", where=path + suffix, hint="remove it")


def _uri(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def open_reading(state_dir: Path) -> Ledger | None:
    """Open the ledger for reading; None if there is none yet.

    Where nothing can be written, on a full disk or a read-only one, a ledger that nobody has open is read as it stands.

    Raises:
        LedgerDamaged: it cannot be read.
        FileUnreadable: the disk is full or read-only, and the ledger was not closed.
    """
    path = state_dir / LEDGER_NAME
    if not path.exists():
        return None
    try:
        try:
            return _readable(Ledger(path, readonly=True))
        except sqlite3.OperationalError as exc:
            if is_refusal(exc) and path.with_name(path.name + "-wal").exists():
                hint = "free the disk or mend the permissions"
                raise FileUnreadable(str(exc), where=str(path), hint=hint) from exc
        return _readable(Ledger(path, readonly=True, at_rest=True))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as exc:
        raise LedgerDamaged(str(exc), where=str(path), hint=RESTORING) from exc


def _readable(ledger: Ledger) -> Ledger:
    try:
        ledger.db.execute("SELECT count(*) FROM meta").fetchone()
        refuse_newer(ledger)
        if is_older(ledger.db):
            ledger.db = migrated_copy(ledger.db)
    except BaseException:
        ledger.close()
        raise
    return ledger


@contextlib.contextmanager
def distrusting(ledger: Ledger) -> Iterator[None]:
    """Look into the ledger when something went wrong within that it may be to blame for.

    Raises:
        LedgerDamaged: it is to blame.
    """
    try:
        yield
    except UNTRUSTED as exc:
        if isinstance(exc, sqlite3.OperationalError) and is_refusal(exc):
            raise refused(exc, ledger.path) from exc
        if fault := fault_of(ledger.db):
            raise LedgerDamaged(fault, where=str(ledger.path), hint=RESTORING) from exc
        raise


def refuse_newer(ledger: Ledger) -> None:
    """Raise LedgerDamaged for a ledger of a newer kbd, sqlite3.DatabaseError if its version is none."""
    version = int(ledger.db.execute("PRAGMA user_version").fetchone()[0])
    if not 0 < version < MAX_VERSION:
        raise sqlite3.DatabaseError(f"is of no version that there may be: {version}")
    if version > SCHEMA_VERSION:
        raise LedgerDamaged(f"ledger of a newer kbd (schema {version})", where=str(ledger.path), hint="upgrade kbd")


def refused(exc: sqlite3.OperationalError, path: Path) -> KbdError:
    """Return what SQLite says as kbd's own error: another process holds the ledger, or the disk takes no writes."""
    if exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockTimeout("locked by another process", where=str(path), hint="try again when it has ended")
    return FileUnwritable(str(exc), where=str(path), hint="free the disk or mend the permissions")
