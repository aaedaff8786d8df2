"""Opening the ledger: one SQLite file, checked at start, backed up daily, restored when damaged.

WAL with `synchronous=FULL`: a committed batch survives a power loss. Writers hold one `transaction()` at a
time; readers open with `readonly=True` and never write.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

from kbd.errors import FileUnreadable, FileUnwritable, KbdError, LedgerDamaged, LockTimeout
from kbd.store.filesystem import require_local
from kbd.store.ledger.schema import SCHEMA_VERSION, TABLES

LEDGER_NAME = "ledger.db"
MARKER_NAME = "ledger-generation"
BACKUPS_KEPT = 7
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
        if not readonly:
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.execute("PRAGMA wal_autocheckpoint=2000")
        self.db.execute("PRAGMA temp_store=MEMORY")

    def close(self) -> None:
        """Close the connection; the ledger is whole at any moment, so nothing is flushed here."""
        self.db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all or nothing. A full disk or a read-only one raises FileUnwritable, nothing written."""
        if self._is_together:
            with self._part():
                yield self.db
            return
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
            raise _refused(exc, self.path) from exc

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Commit the transactions within as one, as each commit waits for the disk; one that fails is undone alone."""
        with self.transaction():
            self._is_together = True
            try:
                yield
            finally:
                self._is_together = False

    @contextlib.contextmanager
    def _part(self) -> Iterator[None]:
        self.db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.db.in_transaction:  # a full disk has undone the whole
                self.db.execute("ROLLBACK TO part")
                self.db.execute("RELEASE part")
            raise
        self.db.execute("RELEASE part")

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


def _uri(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def open_ledger(state_dir: Path, now: datetime) -> Ledger:
    """Open the ledger for writing: make it, migrate it, or restore it from the newest good backup.

    After a restore, or when a ledger is gone that once was, `meta("recovered")` is "1": knowledge files are
    then taken in by the covers rule (SPEC 4). Raises LedgerDamaged for a ledger of a newer kbd, UsageError for a state
    directory on a network file system.
    """
    require_local(state_dir)
    path = state_dir / LEDGER_NAME
    # Read before the ledger, which is always counted up first: a command beside the daemon sees no gap.
    marked = _marked_generation(state_dir)
    if path.exists():
        ledger = _open_checked(path)
        if ledger is None:
            _set_aside(path, now)
            ledger = _restore(state_dir, now, "damaged")
        elif _generation(ledger) < marked:
            _note_recovery(ledger, now, "older than the last one used here: put back by hand")
    elif (state_dir / MARKER_NAME).exists() or backups(state_dir):
        ledger = _restore(state_dir, now, "gone")
    else:
        ledger = _create(path)
    next_generation(ledger, state_dir)
    return ledger


def _generation(ledger: Ledger) -> int:
    return int(ledger.meta("generation") or 0)


def _marked_generation(state_dir: Path) -> int:
    """Return the generation noted beside the ledger; 0 where nothing readable stands there."""
    try:
        text = (state_dir / MARKER_NAME).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return 0
    except OSError as exc:
        where = str(state_dir / MARKER_NAME)
        raise FileUnreadable(str(exc.strerror), where=where, hint="check its permissions") from exc
    return int(text) if re.fullmatch(r"\s*[0-9]{1,18}\s*", text) else 0


def next_generation(ledger: Ledger, state_dir: Path) -> None:
    """Count up at every start and after every backup, so that any older copy put back by hand is known as one."""
    generation = max(_generation(ledger), _marked_generation(state_dir)) + 1
    with ledger.transaction():
        ledger.set_meta("generation", str(generation))
    marker = state_dir / MARKER_NAME
    fresh = state_dir / f".{secrets.token_hex(6)}.tmp"
    try:
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(str(generation))
            os.replace(fresh, marker)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as exc:
        raise FileUnwritable(str(exc), where=str(marker), hint="free the disk or mend the permissions") from exc


def _note_recovery(ledger: Ledger, now: datetime, what: str) -> None:
    """Mark the ledger as behind the knowledge files, loudly."""
    with ledger.transaction():
        ledger.set_meta("recovered", "1")
        ledger.set_meta("recovering", "")
        ledger.set_meta("recovered_on", now.date().isoformat())
        ledger.set_meta("recovered_from", what)
        ledger.record_event(now, "ledger_restored", detail=what)


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
        return _readable(Ledger(path, readonly=True))
    except sqlite3.OperationalError as exc:
        if path.with_name(path.name + "-wal").exists():
            hint = "free the disk or mend the permissions"
            raise FileUnreadable(str(exc), where=str(path), hint=hint) from exc
    except sqlite3.DatabaseError as exc:
        raise _damaged(exc, path) from exc
    try:
        return _readable(Ledger(path, readonly=True, at_rest=True))
    except sqlite3.DatabaseError as exc:
        raise _damaged(exc, path) from exc


def _readable(ledger: Ledger) -> Ledger:
    try:
        ledger.db.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.DatabaseError:
        ledger.close()
        raise
    _refuse_newer(ledger)
    return ledger


def _schema(ledger: Ledger) -> int:
    return int(ledger.db.execute("PRAGMA user_version").fetchone()[0])


def _refuse_newer(ledger: Ledger) -> None:
    if (version := _schema(ledger)) > SCHEMA_VERSION:
        ledger.close()
        raise LedgerDamaged(f"ledger of a newer kbd (schema {version})", where=str(ledger.path), hint="upgrade kbd")


def _refused(exc: sqlite3.OperationalError, path: Path) -> KbdError:
    """Return what SQLite says as kbd's own error: another process holds the ledger, or the disk takes no writes."""
    if exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockTimeout("locked by another process", where=str(path), hint="try again when it has ended")
    return FileUnwritable(str(exc), where=str(path), hint="free the disk or mend the permissions")


def _damaged(exc: sqlite3.DatabaseError, path: Path) -> LedgerDamaged:
    return LedgerDamaged(str(exc), where=str(path), hint="start the daemon, it restores the newest backup")


def _create(path: Path) -> Ledger:
    """Make the ledger whole or not at all: it is built aside and renamed."""
    fresh = path.with_name(f".{LEDGER_NAME}.{secrets.token_hex(6)}.tmp")
    db = sqlite3.connect(fresh, isolation_level=None)
    try:
        db.executescript(TABLES)
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        db.execute("INSERT INTO meta VALUES ('id', ?)", (secrets.token_hex(8),))
    except sqlite3.OperationalError as exc:
        raise FileUnwritable(str(exc), where=str(path), hint="free the disk or mend the permissions") from exc
    finally:
        db.close()
        if not fresh.exists() or fresh.stat().st_size == 0:
            fresh.unlink(missing_ok=True)
    os.chmod(fresh, 0o600)
    os.rename(fresh, path)
    return Ledger(path)


def _open_checked(path: Path) -> Ledger | None:
    """Return the ledger if SQLite vouches for it, None if it is damaged."""
    ledger: Ledger | None = None
    try:
        ledger = Ledger(path)
        version = _schema(ledger)
        sound = ledger.db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok" and ledger.meta("id") is not None
    except sqlite3.OperationalError as exc:
        if ledger is not None:
            ledger.close()
        if "no such table" in str(exc):
            return None
        raise _refused(exc, path) from exc
    except sqlite3.DatabaseError:
        if ledger is not None:
            ledger.close()
        return None
    _refuse_newer(ledger)
    if not sound or version == 0:
        ledger.close()
        return None
    return ledger


def _set_aside(path: Path, now: datetime) -> None:
    stamp = now.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            os.rename(part, path.with_name(f"{path.name}{suffix}.damaged-{stamp}"))


def _restore(state_dir: Path, now: datetime, why: str) -> Ledger:
    path = state_dir / LEDGER_NAME
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    source = "nothing: no good backup"
    ledger: Ledger | None = None
    for copy in reversed(backups(state_dir)):
        fresh = path.with_name(f".{LEDGER_NAME}.{secrets.token_hex(6)}.tmp")
        fresh.write_bytes(copy.read_bytes())
        os.chmod(fresh, 0o600)
        os.rename(fresh, path)
        ledger = _open_checked(path)
        if ledger is not None:
            source = copy.name
            break
        path.unlink()
    if ledger is None:
        ledger = _create(path)
    _note_recovery(ledger, now, f"ledger {why}, restored from {source}")
    return ledger


def backups(state_dir: Path) -> list[Path]:
    """Return the backups, oldest first.

    Their generation tells, as a day may be one of a wild clock or of `--now`; damaged ones come first, by their names.
    """
    copies = sorted(copy for copy in (state_dir / "backups").glob("ledger-????-??-??.db") if copy.is_file())
    return sorted(copies, key=_generation_of)


def _generation_of(copy: Path) -> int:
    try:
        with contextlib.closing(Ledger(copy, readonly=True, at_rest=True)) as ledger:
            return _generation(ledger)
    except (sqlite3.DatabaseError, ValueError):
        return -1


def back_up(ledger: Ledger, state_dir: Path, today: date) -> Path | None:
    """Copy the ledger once a day with SQLite's own backup, keep seven; None if today's copy exists.

    Raises:
        FileUnwritable: the system refused; the copies that were there stay.
    """
    folder = state_dir / "backups"
    target = folder / f"ledger-{today.isoformat()}.db"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if target.exists():
            return None
        _copy_to(target, ledger)
        for old in backups(state_dir)[:-BACKUPS_KEPT]:
            old.unlink()
    except (sqlite3.OperationalError, OSError) as exc:
        raise FileUnwritable(str(exc), where=str(target), hint="free the disk or mend the permissions") from exc
    next_generation(ledger, state_dir)
    return target


def _copy_to(target: Path, ledger: Ledger) -> None:
    fresh = target.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with contextlib.closing(sqlite3.connect(fresh)) as copy:
            ledger.db.backup(copy)
        os.chmod(fresh, 0o600)
        with open(fresh, "rb") as written:
            os.fsync(written.fileno())
        os.rename(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
