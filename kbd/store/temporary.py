"""Temporary files beside a person's file: unpredictable, hidden from every glob, never left behind."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kbd.errors import FileUnreadable
from kbd.store.descriptors import StrPath, directory, open_regular, unwritable, write_all
from kbd.store.locks import try_flock

_NAME = re.compile(r"\.kbd-[0-9a-f]{32}\.tmp")
# The heartbeat, the ledger's generation, a ledger or a backup being made, with SQLite's files beside it.
_STATE_NAME = re.compile(r"\.(?:ledger\.db\.)?[0-9a-f]{12,16}\.tmp(?:-journal|-wal|-shm)?")
# Editors written in JavaScript compare modification times in milliseconds.
_MTIME_STEP_NS = 1_000_000


@contextmanager
def temporary(dir_fd: int, data: bytes, pattern: int | None, *, carry_all: bool = True) -> Iterator[str | None]:
    """Hold a new, synced file with `data` in the directory; what has its name at the end is removed.

    Args:
        dir_fd: the directory.
        data: the content.
        pattern: an open file whose owner, access list, user attributes and mode it gets; None for the defaults.
        carry_all: yield None, and write nothing, if it may not have them all.

    Yields:
        Its name.
    """
    name = f".kbd-{secrets.token_hex(16)}.tmp"
    mode = 0o666 if pattern is None else 0o600
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=dir_fd)
    try:
        mark_in_use(fd)
        has_all = pattern is not None and _carry(pattern, fd)
        carried = pattern is None or has_all or not carry_all
        if carried:
            write_all(fd, data, 0)
            if pattern is not None:
                if has_all:
                    _carry_mode(pattern, fd)  # writing takes set-user-id away from all but root
                step_mtime(fd, os.fstat(pattern).st_mtime_ns)
            os.fsync(fd)
        yield name if carried else None
    finally:
        with suppress(FileNotFoundError):  # renamed
            os.unlink(name, dir_fd=dir_fd)
        os.close(fd)


def sweep_temporaries(folder: StrPath) -> int:
    """Remove the temporaries of dead writers from a directory and return their number; those in use stay.

    Raises:
        FileUnwritable: the directory is there and cannot be listed or written.
    """
    swept = 0
    with unwritable(folder), ExitStack() as stack:
        try:
            dir_fd = stack.enter_context(directory(folder))
        except FileNotFoundError:
            return 0
        for name in os.listdir(dir_fd):
            if _NAME.fullmatch(name) and _is_abandoned(name, dir_fd):
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


def mark_in_use(fd: int) -> bool:
    """Lock a temporary, for the sweep to tell it from those of dead writers; return whether that was possible."""
    try:
        return try_flock(fd)
    except OSError as error:
        # Without locks a sweep takes it for abandoned; this write then fails as changed underneath and is repeated.
        if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}:
            return False
        raise


def _is_abandoned(name: str, dir_fd: int) -> bool:
    try:
        fd = open_regular(name, dir_fd=dir_fd)
    except (FileNotFoundError, FileUnreadable):
        return False
    try:
        return try_flock(fd)
    finally:
        os.close(fd)


def step_mtime(fd: int, before_ns: int) -> None:
    """Move the modification time away from `before_ns`, which a fast rewrite may share."""
    status = os.fstat(fd)
    if abs(status.st_mtime_ns - before_ns) < _MTIME_STEP_NS:
        os.utime(fd, ns=(status.st_atime_ns, before_ns + _MTIME_STEP_NS))


def _carry(source: int, target: int) -> bool:
    """Give `target` owner, access list, user attributes and mode of `source`; return False if it may not have them."""
    wanted, own = os.fstat(source), os.fstat(target)
    try:
        if (wanted.st_uid, wanted.st_gid) != (own.st_uid, own.st_gid):
            os.fchown(target, wanted.st_uid, wanted.st_gid)
        _carry_attributes(source, target)
    except PermissionError:
        return False
    # Last: a change of owner or access list touches the mode.
    _carry_mode(source, target)
    return True


def _carry_mode(source: int, target: int) -> None:
    wanted = stat.S_IMODE(os.fstat(source).st_mode)
    if stat.S_IMODE(os.fstat(target).st_mode) != wanted:
        os.fchmod(target, wanted)


def _carry_attributes(source: int, target: int) -> None:
    wanted = _attributes(source)
    for name in _attributes(target).keys() - wanted.keys():
        os.removexattr(target, name)
    for name, value in wanted.items():
        os.setxattr(target, name, value)


def _attributes(fd: int) -> dict[str, bytes]:
    """Return user attributes and access list; security labels are the system's to set."""
    if not hasattr(os, "listxattr"):
        return {}
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}:
            return {}
        raise
    kept = [name for name in names if name.startswith("user.") or name == "system.posix_acl_access"]
    return {name: os.getxattr(fd, name) for name in kept}
