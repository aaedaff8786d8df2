"""What killed writers left behind is removed, unless it is a text that a person saved."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path

from kbd.errors import FileUnreadable
from kbd.store.conflicts import MAX_BYTES, save_conflict
from kbd.store.descriptors import StrPath, directory, open_regular, read_fd, unwritable
from kbd.store.displaced import DISPLACED, Saved
from kbd.store.locks import try_flock
from kbd.store.temporary import content_mark, target_mark

_NAME = re.compile(r"\.kbd-(?:[0-9a-f]{32}|[0-9a-f]{16}-([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f]{16}))\.tmp")
# The heartbeat, the ledger's generation, a ledger or a backup being made, with SQLite's files beside it.
_STATE_NAME = re.compile(r"\.(?:ledger\.db\.)?[0-9a-f]{12,16}\.tmp(?:-journal|-wal|-shm)?")
_LOST_NAME = "recovered.md"


def sweep_temporaries(folder: StrPath) -> int:
    """Remove the temporaries of dead writers from a directory and return their number; those in use stay.

    What a person saved while a writer died in the middle of an exchange is moved to a conflict copy first, and told
    by `DISPLACED`.

    Raises:
        FileUnwritable: the directory is there and cannot be listed or written.
    """
    swept = 0
    with unwritable(folder), ExitStack() as stack:
        try:
            dir_fd = stack.enter_context(directory(folder))
        except FileNotFoundError:
            return 0
        names = os.listdir(dir_fd)
        for name in names:
            found = _NAME.fullmatch(name)
            data = _abandoned(name, dir_fd) if found else None
            if found is None or data is None:
                continue
            if found[1] and content_mark(data) not in (found[2], found[3]):
                _rescue(os.fspath(folder), data, [other for other in names if target_mark(other) == found[1]])
            with suppress(FileNotFoundError):  # its writer finished just now
                os.unlink(name, dir_fd=dir_fd)
                swept += 1
    return swept


def sweep_state(state_dir: Path) -> int:
    """Remove what a killed daemon left half made in its state directory and return their number.

    For the holder of the instance lock only.

    Raises:
        FileUnwritable: the directory cannot be listed or written.
    """
    swept = 0
    with unwritable(state_dir):
        for folder in (state_dir, state_dir / "backups"):
            left = [p for p in folder.iterdir() if _STATE_NAME.fullmatch(p.name)] if folder.is_dir() else []
            for path in left:
                path.unlink()
            swept += len(left)
    return swept


def _abandoned(name: str, dir_fd: int) -> bytes | None:
    """Return the content of a temporary whose writer is dead; None for any other, and for what cannot be one."""
    try:
        fd = open_regular(name, dir_fd=dir_fd)
    except (FileNotFoundError, FileUnreadable):
        return None
    try:
        data = read_fd(fd, MAX_BYTES) if try_flock(fd) else None
    finally:
        os.close(fd)
    return data if data is not None and len(data) <= MAX_BYTES else None


def _rescue(folder: str, data: bytes, names: list[str]) -> None:
    path = os.path.join(folder, names[0] if names else _LOST_NAME)
    DISPLACED.saved.append(Saved(path, save_conflict(path, data)))
