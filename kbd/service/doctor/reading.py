"""Checks of what kbd reads and writes: knowledge files, relations, sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbd.core.entries import parse
from kbd.core.model import Problem
from kbd.errors import FileUnreadable
from kbd.service.doctor.check import Check, finding, fine, note
from kbd.store.files import read_regular
from kbd.store.gitstate import at_work, in_git
from kbd.store.notes import knowledge_files

MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """A source as it was found: its name, one of its roots, and what lies there."""

    name: str
    root: str
    exists: bool
    files: int
    problems: tuple[Problem, ...]


def check_base(name: str, patterns: Sequence[str], types: frozenset[str], marker: str) -> Iterator[Check]:
    """Check the knowledge files of a base: that there are some, with entries, and that kbd can write them."""
    listing = knowledge_files(patterns)
    yield from (finding("knowledge", problem.where, problem.what, problem.hint) for problem in listing.problems)
    if not listing.files and not listing.problems:
        yield finding("knowledge", name, f"no file matches {', '.join(patterns)}", "mend `files` in the configuration")
    entries = 0
    for path in listing.files:
        try:
            data = read_regular(path, MAX_BYTES)
            entries += len(parse(data, types, marker).entries)
            yield from _check_file(path)
        except FileNotFoundError:
            continue
        except FileUnreadable as error:
            yield finding("knowledge", path, error.what, error.hint)
    if listing.files and not entries:
        yield finding(
            "knowledge",
            name,
            f"no entry in {_files(len(listing.files))}",
            "an entry is `- **Title** — text`; see `kbd lint`",
        )
    elif entries:
        yield fine("knowledge", name, f"{_entries(entries)} in {_files(len(listing.files))}")
    yield from _about_git(name, listing.files)


def _check_file(path: str) -> Iterator[Check]:
    real = os.path.realpath(path)
    if not os.access(real, os.W_OK) or not os.access(os.path.dirname(real), os.W_OK | os.X_OK):
        what = "cannot be written" if not os.access(real, os.W_OK) else "lies in a folder that cannot be written"
        yield finding("knowledge", path, what, "mend the permissions, or counters wait")
    if os.path.islink(path):
        yield note("knowledge", path, f"is a link; kbd writes {real}")
    if (work := at_work(path)) is not None:
        yield note(
            "knowledge",
            path,
            f"git is at work ({work}): kbd does not write until it is done",
            "end the merge or rebase, or remove a lock left behind",
        )


def _about_git(name: str, files: Iterable[str]) -> Iterator[Check]:
    try:
        tracked = sum(map(in_git, files))
    except FileUnreadable as error:
        yield finding("git", error.where, error.what, error.hint)
        return
    if tracked:
        yield note("git", name, f"{_files(tracked)} in git: written less often, never committed by kbd")


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


def check_sources(sources: Sequence[Seen]) -> Iterator[Check]:
    """Check that every source has something to read; of several roots of a source, one is enough."""
    if not sources:
        yield finding("sources", "", "none is configured: nothing can be counted", "`kbd init` finds agents")
    for name in dict.fromkeys(source.name for source in sources):
        mine = [source for source in sources if source.name == name]
        files = sum(source.files for source in mine)
        for source in mine:
            yield from (finding("sources", problem.where, problem.what, problem.hint) for problem in source.problems)
        roots = ", ".join(source.root for source in mine if source.exists or not any(other.exists for other in mine))
        if files:
            yield fine("sources", name, f"{_files(files)} in {roots}")
        elif not any(source.exists for source in mine):
            yield finding("sources", name, f"there is no {roots}", "mend `root` or `path`, or start the agent once")
        else:
            yield finding("sources", name, f"0 files in {roots}", "check the folder; is it that of this agent?")
