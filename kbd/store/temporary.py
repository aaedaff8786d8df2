"""Temporary files beside a person's file: unpredictable, hidden from every glob, never left behind (see `sweeping`)."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kbd.store.descriptors import write_all
from kbd.store.locks import try_flock

_SHORT = 8
# Editors written in JavaScript compare modification times in milliseconds.
_MTIME_STEP_NS = 1_000_000
# EBADF comes from NFS, where only a file that is open for writing can be locked exclusively.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})

# EINVAL: an owner that the user namespace does not know.
_MAY_NOT_BE_GIVEN = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL})
_OVERFLOW_ID = 65534


@dataclass(slots=True)
class Temporary:
    """A new file with a name that nobody else knows.

    Attributes:
        name: its name in the directory.
        carried: it has owner, access list, user attributes and mode of the file that it was to have them of.
        known: the numbers of the inodes that may go with the name: its own, and those that were looked at.
    """

    name: str
    carried: bool
    known: set[int] = field(default_factory=set)


@contextmanager
def temporary(dir_fd: int, data: bytes, pattern: int | None, *, carry_all: bool = False) -> Iterator[Temporary]:
    """Hold a new, synced file with `data` in the directory; it is removed if it still has its name at the end.

    Args:
        dir_fd: the directory.
        data: the content.
        pattern: an open file whose owner, access list, user attributes and mode it gets; None for the defaults.
        carry_all: write nothing if it may not have them all.
    """
    made = Temporary(f".kbd-{secrets.token_hex(16)}.tmp", carried=True)
    mode = 0o666 if pattern is None else 0o600
    fd = os.open(made.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=dir_fd)
    try:
        made.known.add(os.fstat(fd).st_ino)
        mark_in_use(fd)
        made.carried = pattern is None or _carry(pattern, fd)
        if made.carried or not carry_all:
            write_all(fd, data, 0)
            if pattern is not None:
                if made.carried:
                    _carry_mode(pattern, fd)  # writing takes set-user-id away from all but root
                step_mtime(fd, os.fstat(pattern).st_mtime_ns)
            os.fsync(fd)
        yield made
    finally:
        try:
            _remove(made, dir_fd)
        finally:
            os.close(fd)


def _remove(made: Temporary, dir_fd: int) -> None:
    """Remove what has the name, unless it may be a text that somebody saved and kbd has not seen: a sweep finds it."""
    with suppress(FileNotFoundError):  # renamed
        if os.stat(made.name, dir_fd=dir_fd, follow_symlinks=False).st_ino in made.known:
            os.unlink(made.name, dir_fd=dir_fd)


def label(made: Temporary, dir_fd: int, target: str, contents: tuple[bytes, bytes]) -> None:
    """Give a temporary a name that tells whose name it is about to take, and what kbd knows of both contents.

    After a crash in the middle of an exchange the temporary's name may be that of a text which a person saved at the
    same moment: what is neither of the two contents is no rubbish.
    """
    marks = [target_mark(target), *map(content_mark, contents)]
    name = f".kbd-{secrets.token_hex(8)}-{'-'.join(marks)}.tmp"
    os.rename(made.name, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    made.name = name


def target_mark(name: str) -> str:
    """Return what stands for a file's name in the name of a temporary: 8 hexadecimal digits."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:_SHORT]


def content_mark(data: bytes) -> str:
    """Return what stands for a content there: 16 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:16]


def mark_in_use(fd: int) -> bool:
    """Lock a temporary, for the sweep to tell it from those of dead writers; return False if another has it locked."""
    try:
        return try_flock(fd)
    except OSError as error:
        # Without locks a sweep takes it for abandoned; this write then fails as changed underneath and is repeated.
        if error.errno in _NO_LOCKS:
            return True
        raise


def step_mtime(fd: int, before_ns: int) -> None:
    """Move the modification time away from `before_ns`, which a fast rewrite may share."""
    status = os.fstat(fd)
    if abs(status.st_mtime_ns - before_ns) < _MTIME_STEP_NS:
        os.utime(fd, ns=(status.st_atime_ns, before_ns + _MTIME_STEP_NS))


def _carry(source: int, target: int) -> bool:
    """Give `target` owner, access list, user attributes and mode of `source`; return False if it may not have them."""
    wanted, own = os.fstat(source), os.fstat(target)
    if _is_unknown(wanted.st_uid, os.geteuid()) or _is_unknown(wanted.st_gid, os.getegid()):
        return False
    try:
        if (wanted.st_uid, wanted.st_gid) != (own.st_uid, own.st_gid):
            os.fchown(target, wanted.st_uid, wanted.st_gid)
        _carry_attributes(source, target)
    except OSError as error:
        if error.errno in _MAY_NOT_BE_GIVEN:
            return False
        raise
    # Last: a change of owner or access list touches the mode.
    _carry_mode(source, target)
    return True


def _is_unknown(shown: int, own: int) -> bool:
    """Tell whether a user or group is hidden: in the walls of a service all but the daemon's own look like one."""
    return shown == _OVERFLOW_ID != own and _in_user_namespace()


@lru_cache(1)
def _in_user_namespace() -> bool:
    try:
        first, *more = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    except (OSError, ValueError):
        return False
    return bool(more) or first.split() != ["0", "0", str(2**32 - 1)]


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
