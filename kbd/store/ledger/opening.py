"""Opening the ledger for writing: made, or checked as a whole, and restored from the newest good backup if damaged."""

from __future__ import annotations

import os
import secrets
import sqlite3
from datetime import datetime
from pathlib import Path

from kbd.errors import FileUnwritable
from kbd.store.filesystem import require_local
from kbd.store.ledger.backups import MARKER_NAME, backups, generation_in, marked_generation, next_generation
from kbd.store.ledger.database import LEDGER_NAME, Ledger, refuse_newer, refused
from kbd.store.ledger.migrations import is_older
from kbd.store.ledger.schema import SCHEMA_VERSION, TABLES
from kbd.store.ledger.soundness import fault_of, is_refusal
from kbd.store.ledger.upgrading import bring_up

DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What opening a damaged ledger raises; the latter where SQLite quotes a schema that is no text."""


def open_ledger(state_dir: Path, now: datetime) -> Ledger:
    """Open the ledger for writing: make it, or restore it from the newest good backup.

    After a restore, or when a ledger is gone that once was, `meta("recovered")` is "1": knowledge files are
    then taken in by the covers rule (SPEC 4). Raises LedgerDamaged for a ledger of a newer kbd, UsageError for a state
    directory on a network file system.
    """
    require_local(state_dir)
    path = state_dir / LEDGER_NAME
    # Read before the ledger, which is always counted up first: a command beside the daemon sees no gap.
    marked = marked_generation(state_dir)
    if path.exists():
        ledger = _sound_or_restored(state_dir, now, marked)
    elif (state_dir / MARKER_NAME).exists() or backups(state_dir):
        ledger = _restore(state_dir, now, "gone")
    else:
        ledger = _create(path)
    next_generation(ledger, state_dir)
    return ledger


def _sound_or_restored(state_dir: Path, now: datetime, marked: int) -> Ledger:
    path = state_dir / LEDGER_NAME
    try:
        ledger = _sound(path, now)
    except DAMAGED as exc:
        _raise_if_refused(exc, path)
        _set_aside(path, now)
        return _restore(state_dir, now, f"damaged ({exc})")
    if generation_in(ledger) < marked:
        _note_recovery(ledger, now, "older than the last one used here: put back by hand")
    return ledger


def _raise_if_refused(exc: Exception, path: Path) -> None:
    if isinstance(exc, sqlite3.OperationalError) and is_refusal(exc):
        raise refused(exc, path) from exc


def _sound(path: Path, now: datetime) -> Ledger:
    """Open a ledger, brought up to date if it is an older one; raises what DAMAGED names if it is damaged."""
    ledger = Ledger(path)
    try:
        refuse_newer(ledger)
        if is_older(ledger.db):
            ledger.close()
            bring_up(path, now)
            ledger = Ledger(path)
        if fault := fault_of(ledger.db):
            raise sqlite3.DatabaseError(fault)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _note_recovery(ledger: Ledger, now: datetime, what: str) -> None:
    """Mark the ledger as behind the knowledge files, loudly."""
    with ledger.transaction():
        ledger.set_meta("recovered", "1")
        ledger.set_meta("recovering", "")
        ledger.set_meta("recovered_on", now.date().isoformat())
        ledger.set_meta("recovered_from", what)
        ledger.record_event(now, "ledger_restored", detail=what)


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
        ledger = _taken_from(copy, path, now)
        if ledger is not None:
            source = copy.name
            break
    if ledger is None:
        ledger = _create(path)
    _note_recovery(ledger, now, f"ledger {why}, restored from {source}")
    return ledger


def _taken_from(copy: Path, path: Path, now: datetime) -> Ledger | None:
    """Put a copy into the ledger's place; None if it is damaged or cannot be read."""
    try:
        data = copy.read_bytes()
    except OSError:
        return None  # an older one may be better; which one it was is told
    fresh = path.with_name(f".{LEDGER_NAME}.{secrets.token_hex(6)}.tmp")
    try:
        fresh.write_bytes(data)
        os.chmod(fresh, 0o600)
        os.rename(fresh, path)
    except OSError as exc:
        raise FileUnwritable(str(exc), where=str(path), hint="free the disk or mend the permissions") from exc
    finally:
        fresh.unlink(missing_ok=True)
    try:
        return _sound(path, now)
    except DAMAGED as exc:
        _raise_if_refused(exc, path)
        path.unlink()
        return None
