"""Foreign text that has no place in a file is kept beside it, as `NAME.kbd-conflict.md`."""

from __future__ import annotations

import os

from kbd.errors import ChangedUnderneath
from kbd.store.descriptors import StrPath
from kbd.store.files import create_file, read_regular

MAX_BYTES = 64 << 20


def save_conflict(path: StrPath, data: bytes) -> str:
    """Save foreign content beside the file as `NAME.kbd-conflict.md` and return its path; idempotent.

    A copy of other content keeps its name: the new one becomes `NAME.2.kbd-conflict.md`, and so on.

    Raises:
        FileUnwritable: the system refused.
    """
    stem, suffix = os.path.splitext(os.path.realpath(path))
    like = path if os.path.exists(path) else None
    number = 1
    while True:
        copy = f"{stem}{'' if number == 1 else f'.{number}'}.kbd-conflict{suffix}"
        try:
            return create_file(copy, data, like)
        except ChangedUnderneath:
            if os.path.lexists(copy) and read_regular(copy, MAX_BYTES) == data:
                return copy
        number += 1
