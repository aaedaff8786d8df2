"""Whether someone else has a file open for writing: the system gives a read lease only where nobody has."""

from __future__ import annotations

import errno
import fcntl
import os
import signal

from kbd.store.descriptors import StrPath, open_regular


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
        # Whoever opens the file while the lease stands has the holder told by a signal; this one is ignored by default.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        # Refused alike if a writer who waited for too long has broken the lease.
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    return False


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
