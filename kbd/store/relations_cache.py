"""Remembers what a relations file held, so that `status` need not parse thousands of relations at every call.

A copy is good only for the very file it was made of (inode, size, times) and for the same kbd. One made within
moments of the file's last change is not kept: another change could leave the same times.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from kbd import __version__
from kbd.core.model import Problem, Relation
from kbd.errors import FileUnreadable
from kbd.store.files import read_regular

SETTLED_SECONDS = 2.0
_FOLDER = "relations"
_MAX_BYTES = 64 << 20

Identity = tuple[str, str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Copy:
    """What a relations file held, and which file that was."""

    identity: Identity
    relations: tuple[Relation, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Related:
    """A base's relations: those in the file, and what is wrong with it. Unreadable: None, never an empty list."""

    relations: tuple[Relation, ...] | None
    problems: tuple[Problem, ...]


def identity_of(path: str) -> Identity | None:
    """Return what tells the file's present content from any other; None if it cannot be looked at."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return __version__, path, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def is_absent(path: str) -> bool:
    """Tell whether there is no file; one that cannot be looked at is not absent."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def recall(state_dir: Path, path: str) -> Copy | None:
    """Return the copy of the file as it is now; None if there is no good one."""
    try:
        copy = msgspec.json.decode(read_regular(_place(state_dir, path), _MAX_BYTES), type=Copy)
    except (OSError, FileUnreadable, msgspec.DecodeError, UnicodeDecodeError):
        return None  # a cache may be lost at any time
    return copy if copy.identity == identity_of(path) else None


def keep(state_dir: Path, copy: Copy, real_now: datetime) -> bool:
    """Keep a copy, if the file has settled; return whether it was kept. A full disk costs the copy, no more."""
    *_, mtime_ns, ctime_ns = copy.identity
    if real_now.timestamp() - max(mtime_ns, ctime_ns) / 1e9 < SETTLED_SECONDS:
        return False
    target = _place(state_dir, copy.identity[1])
    fresh = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        data = msgspec.json.encode(copy)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
        os.replace(fresh, target)
    except (OSError, UnicodeEncodeError):  # the latter: a path or a text that JSON cannot hold
        fresh.unlink(missing_ok=True)
        return False
    return True


def _place(state_dir: Path, path: str) -> Path:
    return state_dir / _FOLDER / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.json"
