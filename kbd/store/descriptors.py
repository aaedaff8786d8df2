"""Descriptors of regular files: opened without blocking, read and written whole; the system's words as kbd's errors."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable

StrPath = str | os.PathLike[str]
_CHUNK = 1 << 20
_LEASE_POLLS, _POLL_SECONDS = 50, 0.01
_HINTS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EFBIG: "raise the limit on file sizes",
    errno.EROFS: "make the file system writable; for kbd as a service, `kbd service install` opens the folder to it",
    errno.EACCES: "check the permissions of the file and its directory",
    errno.EPERM: "check the permissions of the file and its directory",
}


def strerror(error: OSError) -> str:
    """Return what the system says."""
    return error.strerror or str(error)


def hint_of(error: OSError) -> str:
    """Return what to do about it; "" if nothing better is known than what the system says."""
    return _HINTS.get(error.errno or 0, "")


def is_utf8(path: str) -> bool:
    """Tell whether a name is UTF-8; the ledger, JSON and YAML can hold no other."""
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)


def shown(path: str) -> str:
    r"""Return a name with the bytes that are no UTF-8 as `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@contextmanager
def unwritable(path: StrPath) -> Iterator[None]:
    """Turn what the system says into kbd's errors.

    Raises:
        ChangedUnderneath: for a name that is not there, since it was a moment ago.
        FileUnwritable: for all else.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise ChangedUnderneath("is not there any more", where=str(path), hint="try again") from error
    except OSError as error:
        hint = hint_of(error) or "see the system's message"
        raise FileUnwritable(strerror(error), where=str(path), hint=hint) from error


@contextmanager
def directory(path: StrPath) -> Iterator[int]:
    """Hold a directory open: names relative to it stay in it, whatever happens to its path."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def open_regular(name: str, *, dir_fd: int | None = None, follow: bool = False, write: bool = False) -> int:
    """Open a regular file; opening anything else could block or set a device in motion, so it is looked at first.

    Raises:
        FileUnreadable: it is something else.
        OSError: as `os.open`.
    """
    seen = os.stat(name, dir_fd=dir_fd, follow_symlinks=follow)
    if stat.S_ISREG(seen.st_mode):
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
        fd = _opened(name, flags, dir_fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    raise FileUnreadable("not a regular file", where=name, hint="kbd opens nothing else")


def _opened(name: str, flags: int, dir_fd: int | None) -> int:
    """Open without blocking; whoever has a lease on the file (a file server, another kbd) is asked, and waited for."""
    for _ in range(_LEASE_POLLS):
        try:
            return os.open(name, flags, dir_fd=dir_fd)
        except BlockingIOError:
            time.sleep(_POLL_SECONDS)
    return os.open(name, flags, dir_fd=dir_fd)


def read_fd(fd: int, max_bytes: int) -> bytes:
    """Return the content from the start, at most one byte more than `max_bytes`."""
    out = bytearray()
    while len(out) <= max_bytes:
        chunk = os.pread(fd, min(_CHUNK, max_bytes + 1 - len(out)), len(out))
        if not chunk:
            break
        out += chunk
    return bytes(out)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write all bytes at the offset; the system may take them in several pieces."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written
