"""Backups of the ledger, one a day and seven kept, and the number that tells an older state from the last one used."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from kbd.errors import FileUnwritable, LedgerDamaged
from kbd.store.files import read_regular
from kbd.store.ledger.database import Ledger
from kbd.store.ledger.soundness import fault_of

MARKER_NAME = "ledger-generation"
BACKUPS_KEPT = 7
_STEPS, _PAGES = 1_000_000, 4096
"""So many steps of SQLite, or pages copied, are progress: each takes some ten milliseconds."""
_MARKER_BYTES = 1 << 16


def generation_in(ledger: Ledger) -> int:
    """Return the generation of a ledger; ValueError if it holds none that is a number."""
    return int(ledger.meta("generation") or 0)


def marked_generation(state_dir: Path) -> int:
    """Return the generation noted beside the ledger; 0 where nothing readable stands there."""
    try:
        text = read_regular(str(state_dir / MARKER_NAME), _MARKER_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return 0
    return int(text) if re.fullmatch(r"\s*[0-9]{1,18}\s*", text) else 0


def next_generation(ledger: Ledger, state_dir: Path) -> None:
    """Count up at every start and after every backup, so that any older copy put back by hand is known as one."""
    generation = max(generation_in(ledger), marked_generation(state_dir)) + 1
    with ledger.transaction():
        ledger.set_meta("generation", str(generation))
    _mark(state_dir, generation)


@contextlib.contextmanager
def promise(ledger: Ledger) -> Iterator[sqlite3.Connection]:
    """Commit what a file is to say from now on, counted up: a ledger that has lost this is known as an older one.

    Else the numbers in the file would be taken for a person's once its WAL is lost or cut short.
    """
    with ledger.transaction() as db:
        yield db
        generation = generation_in(ledger) + 1
        ledger.set_meta("generation", str(generation))
    _mark(ledger.path.parent, generation)


def _mark(state_dir: Path, generation: int) -> None:
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


def backups(state_dir: Path) -> list[Path]:
    """Return the backups, oldest first.

    Their generation tells, as a day may be one of a wild clock or of `--now`; damaged ones come first, by their names.
    """
    copies = sorted(copy for copy in (state_dir / "backups").glob("ledger-????-??-??.db") if copy.is_file())
    return sorted(copies, key=_generation_of)


def _generation_of(copy: Path) -> int:
    try:
        with contextlib.closing(Ledger(copy, readonly=True, at_rest=True)) as ledger:
            return generation_in(ledger)
    except (sqlite3.DatabaseError, ValueError):
        return -1


def back_up(ledger: Ledger, state_dir: Path, today: date, beat: Callable[[], None] = lambda: None) -> Path | None:
    """Copy the ledger once a day with SQLite's own backup, keep seven; None if today's copy exists.

    `beat` is called as it gets on: that of a million transcripts has a gigabyte, which is checked, copied and synced.

    Raises:
        LedgerDamaged: it is damaged, and no good copy gives way to one of it.
        FileUnwritable: the system refused; the copies that were there stay.
    """
    with _placing(state_dir, today) as target:
        if target.exists():
            return None
        with _beating(ledger.db, beat):
            fault = fault_of(ledger.db)
        if fault:
            raise LedgerDamaged(fault, where=str(ledger.path), hint="restart the daemon, it restores the newest backup")
        _copy_to(target, ledger, beat)
        for old in backups(state_dir)[:-BACKUPS_KEPT]:
            old.unlink()
    next_generation(ledger, state_dir)
    return target


def keep_as_it_is(ledger: Ledger, state_dir: Path, today: date) -> Path:
    """Let the day's backup be the ledger as it is now, unchecked: it is about to be changed as a whole.

    Raises:
        FileUnwritable: the system refused; the copies that were there stay.
    """
    with _placing(state_dir, today) as target:
        _copy_to(target, ledger, lambda: None)
    return target


@contextlib.contextmanager
def _placing(state_dir: Path, day: date) -> Iterator[Path]:
    """Give the place of a day's backup; what the system refuses within is FileUnwritable."""
    target = state_dir / "backups" / f"ledger-{day.isoformat()}.db"
    try:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        yield target
    except (sqlite3.OperationalError, OSError) as exc:
        raise FileUnwritable(str(exc), where=str(target), hint="free the disk or mend the permissions") from exc


@contextlib.contextmanager
def _beating(db: sqlite3.Connection, beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` while SQLite works."""
    db.set_progress_handler(beat, _STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None, 0)


def _copy_to(target: Path, ledger: Ledger, beat: Callable[[], None]) -> None:
    fresh = target.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with contextlib.closing(sqlite3.connect(fresh)) as copy:
            ledger.db.backup(copy, pages=_PAGES, progress=lambda *_: beat())
        os.chmod(fresh, 0o600)
        with open(fresh, "rb") as written:
            os.fsync(written.fileno())
        os.rename(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
