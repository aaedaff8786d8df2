"""Whether someone else has a file open, as the system tells by the leases that it gives; and making them wait."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kbd.errors import FileUnreadable
from kbd.store.descriptors import StrPath, open_regular
from kbd.store.filesystem import network_file_system


def is_being_written(fd: int) -> bool | None:
    """Tell whether the file is open for writing anywhere, in this process too.

    Args:
        fd: opened for reading only.

    Returns:
        None where that cannot be told: no leases on this system or file system, or another user's file.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        _take(fd, fcntl.F_RDLCK)
        # Refused alike if a writer who waited for too long has broken the lease.
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        # NFS and SMB give no lease on what the server has not lent them, whether anybody writes or not.
        return True if error.errno == errno.EAGAIN and not _is_remote(fd) else None
    return False


def _is_remote(fd: int) -> bool:
    try:
        return network_file_system(os.readlink(f"/proc/self/fd/{fd}")) is not None
    except (OSError, FileUnreadable):  # nothing can tell
        return False


@contextmanager
def others_waiting(fd: int) -> Iterator[None]:
    """Let whoever opens the file wait until the body is done, where the system can, and nobody has it open already.

    Args:
        fd: opened for writing, and the only one of this process.
    """
    if hasattr(fcntl, "F_SETLEASE"):
        with suppress(OSError):  # none on this file system, another user's file, or somebody reads it
            _take(fd, fcntl.F_WRLCK)
    try:
        yield
    finally:
        if hasattr(fcntl, "F_SETLEASE"):
            with suppress(OSError):  # none was given, or it was broken: this process was stopped meanwhile
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _take(fd: int, kind: int) -> None:
    # Whoever opens the file while the lease stands has the holder told by a signal; this one is ignored by default.
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)


def has_writer(path: StrPath) -> bool:
    """Tell whether a file is open for writing, as far as that can be told; False if it is not there.

    Raises:
        FileUnreadable: it is no regular file.
    """
    try:
        fd = open_regular(os.fspath(path), follow=True)
    except OSError:
        return False
    try:
        return is_being_written(fd) is True
    finally:
        os.close(fd)
