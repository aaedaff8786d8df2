"""Brings a ledger of an older kbd up to date where it lies: alone, after a backup, in one transaction."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import datetime
from pathlib import Path

from kbd.errors import LockTimeout
from kbd.store.ledger import database
from kbd.store.ledger.backups import keep_as_it_is
from kbd.store.ledger.database import Ledger, refused
from kbd.store.ledger.migrations import is_older, migrate, version_of
from kbd.store.ledger.schema import SCHEMA_VERSION
from kbd.store.ledger.soundness import fault_of, is_refusal
from kbd.store.locks import Locks

_FALSE_ALARM = "NULL value in holders."
"""What SQLite 3.40 says of a table whose first columns are not those of its key, as holders once was."""


def bring_up(path: Path, now: datetime) -> None:
    """Make an older ledger one of the present schema; that of today among the backups is what it was.

    Raises:
        sqlite3.DatabaseError: it is damaged; it stays as it is.
        LockTimeout: another process has it open, and would go on with tables that are no more.
        FileUnwritable: the disk is full or read-only; it stays as it is.
    """
    # One at a time: of two that have it open, neither is ever alone.
    with Locks(path.parent).hold([path], database.BUSY_SECONDS), contextlib.closing(Ledger(path)) as ledger:
        _be_alone(ledger)
        if not is_older(ledger.db):  # another process was faster
            return
        if fault := _fault(ledger.db):
            raise sqlite3.DatabaseError(fault)
        copy = keep_as_it_is(ledger, path.parent, now.date())
        with ledger.transaction() as db:
            before = version_of(db)
            migrate(db)
            what = f"from schema {before} to {SCHEMA_VERSION}; as it was: {copy.name}"
            ledger.record_event(now, "ledger_migrated", detail=what)
            if fault := fault_of(db):
                raise sqlite3.DatabaseError(fault)


def _be_alone(ledger: Ledger) -> None:
    ledger.db.execute("PRAGMA locking_mode=EXCLUSIVE")
    try:
        ledger.db.execute("BEGIN EXCLUSIVE")
        ledger.db.execute("ROLLBACK")  # the lock is kept
    except sqlite3.OperationalError as exc:
        if not is_refusal(exc):
            raise
        told = refused(exc, ledger.path)
        if isinstance(told, LockTimeout):
            hint = "stop the daemon of the older kbd, then start this one"
            raise LockTimeout("of an older kbd, and another process has it open", where=told.where, hint=hint) from exc
        raise told from exc


def _fault(db: sqlite3.Connection) -> str:
    said = (str(row[0]) for row in db.execute("PRAGMA integrity_check(1000000)"))
    return next((line for line in said if line != "ok" and not line.startswith(_FALSE_ALARM)), "")
