"""A knowledge file that kbd replaces, and others who write into it at the worst moments."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kbd.store import temporary

OLD, NEW = b"ref:7\n", b"ref:8\n"


class Watch:
    """A clock that goes when somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def copies(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.kbd-conflict.md"))]


def saved_by_rename(note: Path, text: bytes) -> None:
    (note.parent / "theirs").write_bytes(text)
    (note.parent / "theirs").rename(note)


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on NFS, where a file that is open for reading only cannot be locked exclusively."""

    def refused(_: int) -> bool:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(temporary, "try_flock", refused)
