"""What tells a file from others: numbers of its status as SQLite can hold them, and whether it still has its name.

Inode numbers take all 64 bits on some (mergerfs and others hash them); times are limited by the kernel only.
"""

from __future__ import annotations

import os

_LIMIT = 1 << 63


def device(seen: os.stat_result) -> int:
    """Return the device number as a signed integer of 64 bits; different numbers stay different."""
    return _signed(seen.st_dev)


def inode(seen: os.stat_result) -> int:
    """Return the inode number as a signed integer of 64 bits; different numbers stay different."""
    return _signed(seen.st_ino)


def modified_ns(seen: os.stat_result) -> int:
    """Return the modification time in ns, cut to 64 bits (the years 1677 to 2262)."""
    return max(-_LIMIT, min(seen.st_mtime_ns, _LIMIT - 1))


def has_name(seen: os.stat_result, path: str | os.PathLike[str]) -> bool:
    """Tell whether the file that was seen still has this name; where that cannot be looked at, it is taken to have."""
    try:
        return os.path.samestat(seen, os.stat(path, follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _signed(number: int) -> int:
    return (number + _LIMIT) % (2 * _LIMIT) - _LIMIT
