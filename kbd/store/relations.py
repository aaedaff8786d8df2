"""The relations file on disk: read whole or not at all, changed under its lock by splice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kbd.core import relyaml, yamltext
from kbd.core.model import Problem, Relation
from kbd.store.descriptors import StrPath
from kbd.store.files import read_regular
from kbd.store.locks import Locks
from kbd.store.rewrite import Deferred, Outcome, Quiet, rewrite_held

_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RelationsFile:
    """A relations file as read; `data` is its bytes, the rest as `kbd.core.relyaml.Parsed`."""

    relations: tuple[Relation, ...]
    problems: tuple[Problem, ...]
    data: bytes


def load(path: StrPath) -> RelationsFile | None:
    """Return what the file holds, None if there is no file.

    Raises:
        FileUnreadable: it is there and cannot be read or is no relations file. Never taken for empty.
    """
    try:
        data = read_regular(path, yamltext.MAX_BYTES)
    except FileNotFoundError:
        return None
    parsed = relyaml.parse(data, os.fspath(path))
    return RelationsFile(parsed.relations, parsed.problems, data)


def write(path: StrPath, changes: Sequence[Relation], locks: Locks, quiet: Quiet) -> Outcome:
    """Change or add relations as `kbd.core.relyaml.upsert`; the file is made if it is not there. Idempotent.

    Raises:
        Refused: see `upsert`; nothing was written.
        LockTimeout, FileUnreadable, FileUnwritable, ChangedUnderneath: nothing was written.
    """
    with locks.hold([path], _TIMEOUT_SECONDS):
        return write_held(path, changes, locks, quiet)


def move_to_archive(path: StrPath, relations: Sequence[Relation], locks: Locks, quiet: Quiet) -> Outcome:
    """Move relations into the archive beside the file: appended and synced there, then cut here. Idempotent.

    What a crash leaves in both is cut by the next move.

    Raises:
        as `write`; what was not cut is still in the file.
    """
    archive = archive_of(path)
    with locks.hold([path, archive], _TIMEOUT_SECONDS):
        moved = write_held(archive, relations, locks, quiet)
        if isinstance(moved, Deferred):
            return moved
        name = os.fspath(path)
        return rewrite_held(path, lambda data: relyaml.remove(data, relations, name), locks, quiet)


def archive_of(path: StrPath) -> str:
    """Return the path of the archive: `.knowledge-graph-archive.yaml` beside `.knowledge-graph.yaml`."""
    folder, name = os.path.split(os.fspath(path))
    stem, dot, suffix = name.rpartition(".")
    return os.path.join(folder, f"{stem}-archive{dot}{suffix}" if stem else f"{name}-archive")


def write_held(path: StrPath, changes: Sequence[Relation], locks: Locks, quiet: Quiet) -> Outcome:
    """Do what `write` does, for a caller who holds the lock."""
    name = os.fspath(path)
    return rewrite_held(path, lambda data: relyaml.upsert(data, changes, name), locks, quiet, create=True)
