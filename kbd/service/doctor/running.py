"""Checks of what runs: the ledger, the daemon and its sign of life, the clock, the limits of file events."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kbd.errors import FileUnreadable, LedgerDamaged
from kbd.service.doctor.check import Check, finding, fine, note
from kbd.store.filesystem import count_folders, inotify_limit
from kbd.store.heartbeat import Heartbeat, read_heartbeat
from kbd.store.ledger import backups, open_reading
from kbd.store.ledger.soundness import fault_of
from kbd.store.locks import running_pid

EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
"""A clock before the program's own time was never set."""
CLOCK_SLACK_SECONDS = 60.0
WATCHES_SHARE = 0.5
MAX_FOLDERS = 1_000_000


def check_ledger(state: Path) -> Iterator[Check]:
    """Check that the ledger can be read and is whole, and that it was not restored lately."""
    try:
        ledger = open_reading(state)
    except LedgerDamaged as error:
        yield finding("ledger", error.where, error.what, error.hint)
        return
    if ledger is None:
        yield note("ledger", str(state), "nothing was read yet", "`kbd run --once`")
        return
    try:
        fault = fault_of(ledger.db)
        recovered = ledger.meta("recovered_on")
        came_from = ledger.meta("recovered_from")
    except sqlite3.DatabaseError as error:
        fault, recovered, came_from = str(error), None, None
    finally:
        ledger.close()
    copies = len(backups(state))
    if fault:
        hint = f"restart the daemon: it restores the newest of {copies} backups"
        yield finding("ledger", str(ledger.path), f"is damaged: {fault}", hint)
        return
    if recovered:
        yield note("ledger", str(ledger.path), f"was restored on {recovered}: {came_from}")
    yield fine("ledger", str(ledger.path), f"is whole; {copies} of 7 daily backups")


def check_daemon(state: Path, now: datetime, every_seconds: int, version: str) -> Iterator[Check]:
    """Check that a daemon of this version runs and shows signs of life; `now` is the real time."""
    if now < EARLIEST:
        yield finding("clock", "", f"says {now.date()}", "set the clock")
    try:
        pid, beat = running_pid(state), read_heartbeat(state)
    except FileUnreadable as error:
        yield finding("daemon", error.where, error.what, error.hint)
        return
    if beat is not None and (beat.at - now).total_seconds() > CLOCK_SLACK_SECONDS:
        what = f"the daemon's last sign of life lies in the future ({beat.at:%Y-%m-%d %H:%M} UTC)"
        yield finding("clock", str(state), what, "set the clock; entries do not fade on a wild one")
    if pid is None:
        yield finding("daemon", str(state), "no daemon runs", "`kbd service install`, or `kbd run`")
    elif beat is None or beat.pid != pid:
        yield note("daemon", f"pid {pid}", "runs, and has not ended its first pass yet")
    else:
        yield from _check_beat(beat, now, every_seconds, version)


def _check_beat(beat: Heartbeat, now: datetime, every_seconds: int, version: str) -> Iterator[Check]:
    where = f"pid {beat.pid}"
    silent = (now - beat.at).total_seconds()
    if silent > max(600, 3 * every_seconds):
        what = f"gave no sign of life for {silent / 60:.0f} min: a long backlog, or it is stuck"
        yield finding("daemon", where, what, "see `kbd service logs`; restart it if nothing moves")
    if beat.version != version:
        yield finding("daemon", where, f"is of version {beat.version}, kbd here is {version}", "restart it")
    if beat.last_error:
        yield finding("daemon", where, beat.last_error, "see `kbd service logs`")
    if beat.watching.startswith("polling"):
        yield note("watching", where, f"no file events, {beat.watching}", "raise the limits of inotify")
    yield fine("daemon", where, f"runs since {beat.since:%Y-%m-%d %H:%M} UTC")


def check_inotify(folders: Sequence[str], limit: Callable[[str], int | None] = inotify_limit) -> Iterator[Check]:
    """Check that the folders to watch fit into the limits of inotify, which all programs of the user share.

    `limit` gives a limit by its name, None where there is none.
    """
    watches, instances = limit("max_user_watches"), limit("max_user_instances")
    if watches is None:
        return
    needed = count_folders(list(folders), MAX_FOLDERS)
    if needed > watches * WATCHES_SHARE:
        what = f"{needed:,} folders to watch of {watches:,} that the user's programs may watch together"
        remedy = f"`sudo sysctl fs.inotify.max_user_watches={max(watches, needed) * 2}`; until then kbd polls"
        yield finding("inotify", "", what, remedy)
    elif instances is not None and instances <= len(folders):
        what = f"at most {instances} watchers for all programs, kbd needs {len(folders)}"
        yield finding("inotify", "", what, "`sudo sysctl fs.inotify.max_user_instances=512`; until then kbd polls")
    else:
        yield fine("inotify", "", f"{needed:,} folder{'' if needed == 1 else 's'} to watch, {watches:,} may be watched")
