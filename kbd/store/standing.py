"""The entries of a base as they stand in its files now, whatever the ledger knows: what a writer decides on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kbd.core import entries as markdown
from kbd.core.drafting import resolve
from kbd.core.handles import handle
from kbd.core.model import Entry
from kbd.errors import FileUnreadable, UsageError
from kbd.store.base_files import read_base
from kbd.store.notes import is_archive

NAMED_IN_MESSAGES = 5


@dataclass(frozen=True, slots=True)
class Shelving:
    """Where a base keeps its entries and how they are read.

    Attributes:
        base: its name.
        patterns: absolute globs of its knowledge files.
        relations: path of its relations file.
        types: known entry types.
        marker: the dormancy marker.
    """

    base: str
    patterns: Sequence[str]
    relations: str
    types: frozenset[str]
    marker: str


@dataclass(frozen=True, slots=True)
class Standing:
    """An entry with the file it stands in and its handle (the short one: a collision is not looked for)."""

    path: str
    entry: Entry
    handle: str

    @property
    def archived(self) -> bool:
        """It stands in an archive."""
        return is_archive(self.path)


@dataclass(frozen=True, slots=True)
class Stand:
    """All files of a base, archives included.

    Attributes:
        contents: path → content.
        entries: path → what stands there, in order.
    """

    contents: dict[str, bytes]
    entries: dict[str, tuple[Standing, ...]]

    @property
    def live_files(self) -> list[str]:
        """The files that are no archives, in order."""
        return sorted(path for path in self.contents if not is_archive(path))

    def all(self) -> list[Standing]:
        """Return all entries."""
        return [one for path in sorted(self.entries) for one in self.entries[path]]

    def find(self, name: str) -> list[Standing]:
        """Return the entries that a handle, an id, a title or a part of one names; live ones before archived ones."""
        everyone = self.all()
        found = {id(entry) for entry in resolve(name, [(one.handle, one.entry) for one in everyone])}
        meant = [one for one in everyone if id(one.entry) in found]
        return [one for one in meant if not one.archived] or meant

    def one(self, name: str) -> Standing:
        """Return the entry that a name means; raises UsageError if it is none, or may be several."""
        meant = self.find(name)
        if not meant:
            raise UsageError(f"no entry is named {name!r}", hint="`kbd search` finds it")
        if len({one.entry.norm for one in meant}) > 1:
            named = ", ".join(f"[{one.handle}] {one.entry.title}" for one in meant[:NAMED_IN_MESSAGES])
            raise UsageError(f"{name!r} may be any of {len(meant)} entries: {named}", hint="give the handle")
        return meant[0]


def read_stand(shelving: Shelving, before: Stand | None = None) -> Stand:
    """Return the files of a base; those that are as they were `before` are not parsed again.

    Raises:
        FileUnreadable: one of them, or a folder, is there and cannot be read. Never taken for empty.
    """
    files, problems = read_base(shelving.patterns, {})
    lost = [problem for problem in problems if os.path.lexists(problem.where)]
    if lost:
        raise FileUnreadable(lost[0].what, where=lost[0].where, hint="mend it first: an entry may stand there already")
    contents = {file.path: file.data or b"" for file in files}
    old = before or Stand({}, {})
    entries = {
        path: old.entries[path] if old.contents.get(path) == data else _parsed(shelving, path, data)
        for path, data in contents.items()
    }
    return Stand(contents, entries)


def _parsed(shelving: Shelving, path: str, data: bytes) -> tuple[Standing, ...]:
    parsed = markdown.parse(data, shelving.types, shelving.marker)
    return tuple(Standing(path, entry, handle(entry.norm)) for entry in parsed.entries)
