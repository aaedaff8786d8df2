"""Tells when a file was born, where the system knows it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_Statx = ctypes.c_char * 256
_FOUND = struct.Struct("=I76xqI")
"""Its mask, and at byte 80 the birth time."""
_STATX = getattr(ctypes.CDLL(None), "statx", None)  # missing in a C library older than glibc 2.28, and elsewhere
if _STATX is not None:
    _STATX.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, _Statx)


def birth_time_ns(path: str | os.PathLike[str]) -> int | None:
    """Return the birth time in nanoseconds since the epoch; None if the system, file system or file has none.

    Offsets and constants are those of `struct statx` in Linux `include/uapi/linux/stat.h`.
    """
    if sys.platform == "linux":
        return _linux_birth_time_ns(os.fsencode(path))
    return _stat_birth_time_ns(path)


def _stat_birth_time_ns(path: str | os.PathLike[str]) -> int | None:
    try:
        seconds: float | None = getattr(os.stat(path), "st_birthtime", None)
    except OSError:
        return None
    return None if seconds is None else int(seconds * 1_000_000_000)


def _linux_birth_time_ns(path: bytes) -> int | None:
    if _STATX is None or b"\0" in path:
        return None
    found = _Statx()
    if _STATX(_AT_FDCWD, path, 0, _STATX_BTIME, found) != 0:
        return None
    mask, seconds, nanoseconds = _FOUND.unpack_from(found)
    known = mask & _STATX_BTIME and (seconds, nanoseconds) != (0, 0)
    return int(seconds) * 1_000_000_000 + int(nanoseconds) if known else None
