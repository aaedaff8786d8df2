"""Two renames that `os` lacks: exchange two names, and rename only if the new name is free.

Linux has them as `renameat2`, macOS as `renameatx_np`; both exist on some file systems only. Where the system
has none, the functions return False and nothing was done.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable

_CALLS = {"linux": ("renameat2", 1, 2), "darwin": ("renameatx_np", 4, 2)}  # name, no-replace flag, exchange flag
# EPERM comes from sandboxes, ENOTTY and ENOTSUP from network and FUSE file systems, EINVAL from those that know
# other flags only.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY})
_Rename = Callable[[int, bytes, int, bytes, int], int]


def exchange(one: str, other: str, *, dir_fd: int) -> bool:
    """Exchange two names of a directory in one step; return False where that is not supported.

    Raises:
        OSError: as `os.rename`; FileNotFoundError if either name is not there.
    """
    return _rename(one, other, dir_fd, _CALLS.get(sys.platform, ("", 0, 0))[2])


def rename_new(source: str, target: str, *, dir_fd: int) -> bool:
    """Rename within a directory if `target` is not there; return False where that is not supported.

    Raises:
        FileExistsError: `target` is there.
        OSError: as `os.rename`.
    """
    return _rename(source, target, dir_fd, _CALLS.get(sys.platform, ("", 0, 0))[1])


def _rename(source: str, target: str, dir_fd: int, flag: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), source, None, target)


def _system_call() -> _Rename | None:
    name = _CALLS.get(sys.platform, ("", 0, 0))[0]
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        call.restype = ctypes.c_int
    return call
