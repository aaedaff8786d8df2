"""The pause: a file in the state directory that keeps the daemon from running passes until a time, or until told."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kbd.errors import FileUnwritable

PAUSE_NAME = "paused"
_MAX_BYTES = 64


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in force; `until` is None if it lasts until somebody ends it."""

    until: datetime | None

    def words(self) -> str:
        """Return `until 2026-06-11 14:00 UTC`."""
        return f"until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else "until `kbd resume`"


def begin_pause(state_dir: Path, until: datetime | None) -> None:
    """Begin a pause, or change its end; `until` in UTC.

    Raises:
        FileUnwritable: the state directory is full or cannot be written.
    """
    target, fresh = state_dir / PAUSE_NAME, state_dir / f".{secrets.token_hex(8)}.tmp"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(until.isoformat() if until else "")
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        what = error.strerror or str(error)
        raise FileUnwritable(what, where=str(target), hint="free the disk or mend the permissions") from error


def end_pause(state_dir: Path) -> bool:
    """End a pause; False if there was none. Raises FileUnwritable."""
    target = state_dir / PAUSE_NAME
    try:
        target.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        what = error.strerror or str(error)
        raise FileUnwritable(what, where=str(target), hint="mend the permissions") from error
    return True


def pause_in_force(state_dir: Path, real_now: datetime) -> Pause | None:
    """Return the pause in force; one whose time is over is none.

    A file that says no time, or cannot be read, is a pause without end: whoever made it wanted kbd to keep still.
    """
    path = state_dir / PAUSE_NAME
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            text = file.read(_MAX_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError:
        return Pause(None)
    until = _time(text)
    return Pause(until) if until is None or until > real_now else None


def _time(text: str) -> datetime | None:
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        return None
    return until if until.tzinfo is not None else None
