"""The files beside Markdown files that hold counters: `NAME.kbd.yaml`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from kbd.core import sidecar
from kbd.core.model import Metadata, Problem
from kbd.errors import FileUnreadable
from kbd.store.base_files import NoteFile
from kbd.store.files import read_regular
from kbd.store.identity import inode, modified_ns

MAX_BYTES = 8 << 20
Stamp = tuple[int, int, int]


def sidecar_of(path: str) -> str:
    """Return the path of the file that holds the counters of a knowledge file."""
    return f"{os.path.splitext(path)[0]}.kbd.yaml"


def stamp_of(path: str) -> Stamp | None:
    """Return what tells the present counters of a knowledge file from others; None if there are none."""
    try:
        seen = os.stat(sidecar_of(path))
    except OSError:
        return None
    return seen.st_size, modified_ns(seen), inode(seen)


def read_values(path: str) -> dict[str, Metadata]:
    """Return what is said of the entries of a knowledge file; nothing if there is no such file.

    Raises:
        FileUnreadable: it is there and cannot be read.
    """
    beside = sidecar_of(path)
    try:
        return sidecar.parse(read_regular(beside, MAX_BYTES), beside)
    except FileNotFoundError:
        return {}


def with_values(files: Iterable[NoteFile]) -> tuple[list[NoteFile], list[Problem]]:
    """Return files with their counters; one whose counters cannot be read is itself unread (`where` is its path)."""
    done: list[NoteFile] = []
    problems: list[Problem] = []
    for file in files:
        try:
            done.append(file if file.data is None else replace(file, values=read_values(file.path)))
        except FileUnreadable as exc:
            what = f"its counters cannot be read: {exc.what}"
            problems.append(
                Problem("knowledge_unreadable", file.path, what, exc.hint or f"mend {sidecar_of(file.path)}")
            )
    return done, problems
