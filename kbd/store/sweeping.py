"""What killed writers left behind is removed, unless it is a text that a person saved."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

from kbd.errors import FileUnreadable
from kbd.store.conflicts import MAX_BYTES, save_conflict
from kbd.store.descriptors import StrPath, directory, is_utf8, open_regular, read_fd, unwritable
from kbd.store.displaced import DISPLACED, Saved
from kbd.store.temporary import content_mark, mark_in_use, target_mark

_NAME = re.compile(r"\.kbd-(?:[0-9a-f]{32}|[0-9a-f]{16}-([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f]{16}))\.tmp")
# The heartbeat, the ledger's generation, a ledger or a backup being made, with SQLite's files beside it.
_STATE_NAME = re.compile(r"\.(?:ledger\.db\.)?[0-9a-f]{12,16}\.tmp(?:-journal|-wal|-shm)?")
# The private copy of an agent's store, where temporary files go into the state directory (see `sqlitefile`).
_COPY_NAME = re.compile(r"kbd-[a-z0-9_]{8}")
_LOST_NAME = "recovered.md"


def sweep_temporaries(folder: StrPath) -> int:
    """Remove the temporaries of dead writers from a directory and return their number; those in use stay.

    What a person saved while a writer died in the middle of an exchange is moved to a conflict copy first, and told
    by `DISPLACED`.

    Raises:
        FileUnwritable: the directory is there and cannot be listed or written.
    """
    with unwritable(folder), ExitStack() as stack:
        try:
            dir_fd = stack.enter_context(directory(folder))
        except FileNotFoundError:
            return 0
        names = os.listdir(dir_fd)
        found = [match for match in map(_NAME.fullmatch, names) if match]
        targets = {target_mark(name): name for name in names if is_utf8(name)} if any(m[1] for m in found) else {}
        return sum(_swept(match, os.fspath(folder), dir_fd, targets) for match in found)


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
        copies = [p for p in state_dir.glob("kbd-*") if _COPY_NAME.fullmatch(p.name) and not p.is_symlink()]
        for path in copies:
            shutil.rmtree(path)
    return swept + len(copies)


def _swept(match: re.Match[str], folder: str, dir_fd: int, targets: dict[str, str]) -> bool:
    """Remove a temporary if its writer is dead, its text kept if a person wrote it; return whether it is gone."""
    name, target, *marks = match.group(0, 1, 2, 3)
    try:
        fd = open_regular(name, dir_fd=dir_fd)
    except (FileNotFoundError, FileUnreadable, PermissionError):
        return False
    with ExitStack() as stack:
        stack.callback(os.close, fd)
        if not mark_in_use(fd):
            return False
        data = read_fd(fd, MAX_BYTES)
        if len(data) > MAX_BYTES:
            return False
        if target and content_mark(data) not in marks:
            _rescue(fd, data, os.path.join(folder, targets.get(target, _LOST_NAME)))
        # Whoever exchanges names at this moment has another file there by now.
        if _has_name(fd, name, dir_fd):
            os.unlink(name, dir_fd=dir_fd)
            return True
    return False


def _has_name(fd: int, name: str, dir_fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(name, dir_fd=dir_fd, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _rescue(fd: int, data: bytes, path: str) -> None:
    copy = save_conflict(path, data, fd)
    if copy != path:
        DISPLACED.saved.append(Saved(path, copy))
