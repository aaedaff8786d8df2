"""What git is doing to the repository a file lies in: while it works on the tree, nobody else should."""

from __future__ import annotations

import os
import stat

from kbd.errors import FileUnreadable
from kbd.store.descriptors import StrPath, strerror
from kbd.store.files import read_regular

_AT_WORK = (
    "index.lock",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",  # several commits are picked or reverted, and one of them was just committed by hand
)
_POINTER_BYTES = 64 * 1024


def git_dir(path: StrPath) -> str | None:
    """Return the git directory of the work tree that holds the file, links resolved; None outside of one.

    For a linked work tree or a submodule it is its own directory, where its index and its merge state lie.

    Raises:
        FileUnreadable: a `.git` is there and cannot be read.
    """
    folder = os.path.dirname(os.path.realpath(path))
    while True:
        found = _git_dir_in(folder)
        if found is not None or folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)


def in_git(path: StrPath) -> bool:
    """Tell whether the file lies in a git work tree; raises as `git_dir`."""
    return git_dir(path) is not None


def at_work(path: StrPath) -> str | None:
    """Return the name of what shows git at work in the file's repository (`index.lock`, `MERGE_HEAD`, …), or None.

    Raises:
        FileUnreadable: as `git_dir`; or the git directory cannot be looked into.
    """
    directory = git_dir(path)
    if directory is None:
        return None
    return next((name for name in _AT_WORK if _mode(os.path.join(directory, name)) is not None), None)


def _git_dir_in(folder: str) -> str | None:
    candidate = os.path.join(folder, ".git")
    mode = _mode(candidate)
    if mode is not None and stat.S_ISLNK(mode):
        candidate = os.path.realpath(candidate)
        mode = _mode(candidate)
    if mode is not None and stat.S_ISREG(mode):
        pointer = os.fsdecode(read_regular(candidate, _POINTER_BYTES))
        if not pointer.startswith("gitdir:"):
            return None
        candidate = os.path.join(folder, pointer.removeprefix("gitdir:").strip())
    return os.path.normpath(candidate) if _mode(os.path.join(candidate, "HEAD")) is not None else None


def _mode(path: str) -> int | None:
    """Return the mode of what has this name, None if nothing has."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileUnreadable(strerror(error), where=path, hint="check its permissions") from error
