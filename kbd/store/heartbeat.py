"""The daemon's sign of life: a small file that `status` reads, replaced whole after each pass.

It says how the daemon fares, never whether one runs: that is the instance lock's to tell.
"""

from __future__ import annotations

import errno
import os
import secrets
from datetime import datetime
from pathlib import Path

import msgspec

from kbd.errors import FileUnreadable, FileUnwritable

HEARTBEAT_NAME = "heartbeat.json"
_MAX_BYTES = 1 << 16


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """How the daemon fares; times are aware UTC of the real clock.

    Attributes:
        pid: its process.
        since: when it started.
        version: its version of kbd.
        at: when this was written.
        watching: how changes are noticed, such as `inotify`; `polling: WHY` where events do not flow.
        scan_every_seconds: all files are looked at so often, whether events tell of them or not; 0 if not known.
        last_pass_at: end of the last pass; None before the first.
        last_error: what stopped the last pass; "" if nothing did.
        lag_bytes: bytes of transcripts still to be read.
        next_decay: when the next decay pass is due; None if not known.
        config: the digest of the configuration it runs on; "" if it does not say.
    """

    pid: int
    since: datetime
    version: str
    at: datetime
    watching: str
    scan_every_seconds: float = 0.0
    last_pass_at: datetime | None = None
    last_error: str = ""
    lag_bytes: int = 0
    next_decay: datetime | None = None
    config: str = ""


def write_heartbeat(state_dir: Path, heartbeat: Heartbeat) -> None:
    """Replace the heartbeat; a reader sees the old one or the new one.

    Not synced to the disk: after a power cut no daemon runs, and the next one writes its own. On a full disk the old
    one is overwritten where it stands, so that the daemon can still say what is wrong.

    Raises:
        FileUnwritable: the state directory is full or cannot be written.
    """
    target = state_dir / HEARTBEAT_NAME
    fresh = state_dir / f".{secrets.token_hex(8)}.tmp"
    data = msgspec.json.encode(heartbeat)
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and _overwritten(target, data):
            return
        hint = "free the disk or mend the permissions"
        raise FileUnwritable(error.strerror or str(error), where=str(target), hint=hint) from error


def _overwritten(target: Path, data: bytes) -> bool:
    """Write over the old heartbeat in one go, within the block it has; False if that is not possible."""
    try:
        fd = os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        padded = data.ljust(os.fstat(fd).st_size)
        return os.pwrite(fd, padded, 0) == len(padded)
    except OSError:
        return False
    finally:
        os.close(fd)


def read_heartbeat(state_dir: Path) -> Heartbeat | None:
    """Return the newest heartbeat, None if there never was one.

    Raises:
        FileUnreadable: it is there and cannot be read or understood.
    """
    path = state_dir / HEARTBEAT_NAME
    hint = "the next pass of the daemon replaces it"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            data = file.read(_MAX_BYTES)
        return msgspec.json.decode(data, type=Heartbeat)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnreadable(error.strerror or str(error), where=str(path), hint=hint) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileUnreadable(f"no heartbeat ({error})", where=str(path), hint=hint) from error
