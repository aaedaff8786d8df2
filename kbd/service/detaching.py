"""Taking kbd's comments and markers out of knowledge files, and its own small files away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Protocol

from kbd.core.model import Problem
from kbd.core.splice import apply, bare_edits
from kbd.core.undoing import Parse
from kbd.errors import ChangedUnderneath, Refused
from kbd.store import writers
from kbd.store.base_files import read_base
from kbd.store.files import read_regular
from kbd.store.locks import Locks
from kbd.store.removing import remove_file
from kbd.store.rewrite import Deferred, rewrite
from kbd.store.sidecars import MAX_BYTES, sidecar_of

LOCK_SECONDS = 10.0


class Shelf(Protocol):
    """A base as the configuration describes it."""

    @property
    def files(self) -> tuple[str, ...]:
        """Globs of its knowledge files."""
        ...

    @property
    def relations(self) -> str:
        """Path of its relations file."""
        ...


class Reads(Protocol):
    """How knowledge files are read."""

    @property
    def marker(self) -> str:
        """The dormancy marker."""
        ...

    @property
    def parse(self) -> Parse:
        """The parser."""
        ...


@dataclass(frozen=True, slots=True)
class Detached:
    """A file without what kbd wrote; `after` is None for a file that is kbd's own and goes."""

    path: str
    before: bytes
    after: bytes | None

    def diff(self) -> Iterator[str]:
        """Yield the difference as a unified diff without line ends."""
        before, after = (data.decode("utf-8", "replace").split("\n") for data in (self.before, self.after or b""))
        yield from unified_diff(before, after, self.path, self.path, lineterm="", n=0)


def plan_detach(bases: Sequence[Shelf], reader: Reads) -> tuple[list[Detached], list[Problem]]:
    """Return the files that change, archives and kbd's own files included, and those that cannot be read."""
    found: list[Detached] = []
    problems: list[Problem] = []
    for base in bases:
        files, faults = read_base(base.files, {})
        problems += faults
        for file in files:
            bare = _bare(file.data or b"", reader.parse, reader.marker)
            if bare != file.data:
                found.append(Detached(file.path, file.data or b"", bare))
            if os.path.lexists(beside := sidecar_of(file.path)):
                found.append(Detached(beside, read_regular(beside, MAX_BYTES), None))
        path = writers.path_beside(base.relations)
        if os.path.lexists(path):
            found.append(Detached(path, read_regular(path, writers.MAX_BYTES), None))
    return found, problems


def write_detached(one: Detached, locks: Locks, parse: Parse, real_now: float) -> str:
    """Write what was shown, under the file's lock; return what a person must know of it, "" for nothing.

    Raises:
        ChangedUnderneath: the file is not the one that was shown.
        Refused: git is at work, or conflict markers stand in it.
        LockTimeout, FileUnreadable, FileUnwritable: nothing was written.
    """
    after = one.after
    if after is None:
        with locks.hold([one.path], LOCK_SECONDS):
            remove_file(one.path, one.before)
        return "removed"

    def as_shown(data: bytes) -> bytes:
        if data != one.before:
            raise ChangedUnderneath("changed since it was shown", where=one.path, hint="run `kbd detach` again")
        return after

    outcome = rewrite(one.path, as_shown, locks, quiet_seconds=0, now=real_now)
    if isinstance(outcome, Deferred):
        raise Refused(outcome.reason, where=one.path, hint="try again when that is over")
    return ""


def _bare(data: bytes, parse: Parse, marker: str) -> bytes:
    return apply(data, [edit for entry in parse(data).entries for edit in bare_edits(data, entry, marker)])
