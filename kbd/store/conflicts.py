"""Foreign text that has no place in a file is kept beside it, as `NAME.kbd-conflict.md`."""

from __future__ import annotations

import os

from kbd.errors import ChangedUnderneath, FileUnreadable
from kbd.store.descriptors import StrPath, unwritable, write_all
from kbd.store.files import create_file, read_regular

MAX_BYTES = 64 << 20
_LONGEST_NAME = 255


def save_conflict(path: StrPath, data: bytes, like: int) -> str:
    """Save foreign content beside the file as `NAME.kbd-conflict.md` and return where it stands; idempotent.

    A copy of other content keeps its name: the new one becomes `NAME.2.kbd-conflict.md`, and so on. What the file
    itself says, and what has no words, needs no copy: `path` is returned.

    Args:
        path: the file; it need not be there.
        data: the content.
        like: the open file in which it was found, whose mode, owner and attributes the copy gets.

    Raises:
        ChangedUnderneath: the folder is not there any more.
        FileUnwritable: the system refused.
    """
    if not data.strip() or _says(os.fspath(path), data):
        return os.fspath(path)
    folder, name = os.path.split(os.path.realpath(path))
    number = 1
    while True:
        copy = os.path.join(folder, _name_of(name, "" if number == 1 else f".{number}"))
        if _says(copy, data):
            return copy
        if not os.path.lexists(copy):
            try:
                return create_file(copy, data, like)
            except ChangedUnderneath:
                if not os.path.lexists(copy):  # it is the folder that went
                    raise
        number += 1


def _name_of(name: str, number: str) -> str:
    """Return the name of a copy; that of the file is cut where the two together are longer than a name may be."""
    stem, suffix = os.path.splitext(name)
    ending = f"{number}.kbd-conflict{suffix}"
    while stem and len(os.fsencode(stem + ending)) > _LONGEST_NAME:
        stem = stem[:-1]
    return stem + ending


def extend_conflict(copy: str, before: bytes, data: bytes) -> bool:
    """Append to a copy what its text has become longer by; return False if it is another text, or no longer `before`.

    Raises:
        FileUnwritable: the system refused.
    """
    if not data.startswith(before) or not _says(copy, before):
        return False
    try:
        fd = os.open(copy, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # made a link or read-only since
        return False
    with unwritable(copy):
        try:
            write_all(fd, data[len(before) :], len(before))
            os.fsync(fd)
        finally:
            os.close(fd)
    return True


def _says(path: str, data: bytes) -> bool:
    """Tell whether a file says just that; whatever else is there, and cannot be read, does not."""
    try:
        return os.path.getsize(path) == len(data) and read_regular(path, MAX_BYTES) == data
    except (OSError, FileUnreadable):
        return False
