"""Which Markdown files of a project look like knowledge: those that hold entries, in places where agents keep them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import escape

from kbd.core.entries import parse
from kbd.core.model import Entry, Problem
from kbd.errors import FileUnreadable
from kbd.store.files import read_regular
from kbd.store.notes import knowledge_files

MAX_DEPTH = 6
MAX_FOLDERS = 20_000
MAX_BYTES = 4 << 20
FEW_ENTRIES = 3
"""So many entries make a file of any other name or place a candidate."""

# Dependencies, build results, and samples.
_SKIPPED = frozenset(
    {
        "__pycache__",
        "__tests__",
        "build",
        "dist",
        "examples",
        "fixtures",
        "node_modules",
        "site-packages",
        "target",
        "test",
        "testdata",
        "tests",
        "vendor",
        "venv",
    }
)
# Hidden folders in which agents keep what they learn; all other hidden ones are tools' own.
_HIDDEN_PLACES = frozenset({".agents", ".claude", ".codex", ".context", ".cursor", ".gemini", ".knowledge", ".memory"})
_PLACES = frozenset({".context", ".knowledge", ".memory", "knowledge", "lessons", "memories", "memory"})
_NAMES = re.compile(r"(memory|lessons?|learnings?|pitfalls?|decisions|gotchas)\.md", re.IGNORECASE)
# Their bullets with bold words are features, changes and rules of conduct.
_DOCUMENTS = re.compile(
    r"(readme|changelog|changes|history|contributing|security|license|code_of_conduct|releases?)"
    r"[^/]*\.md",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that holds entries.

    Attributes:
        path: absolute.
        data: its content.
        entries: at least one.
        in_place: it lies in a folder made for knowledge, so that new files there are knowledge as well.
    """

    path: str
    data: bytes
    entries: tuple[Entry, ...]
    in_place: bool


def find_candidates(root: str, leave_out: Iterable[str] = ()) -> tuple[list[Candidate], list[Problem]]:
    """Return the files below a folder that look like knowledge, in order, and what could not be looked at.

    At most 6 folders deep and 20,000 folders; no links, no hidden folders but agents' own, no dependencies, build
    results, tests and samples.

    Args:
        root: absolute.
        leave_out: folders that hold transcripts or kbd's own files.
    """
    walk = _Walk({os.path.realpath(path) for path in leave_out})
    paths = sorted(walk.files(root))
    real = set(knowledge_files([escape(path) for path in paths]).files)
    found: list[Candidate] = []
    for path in paths:
        if path not in real:  # an archive, a conflict copy, a second name of a file
            continue
        try:
            candidate = _candidate(path)
        except FileNotFoundError:
            continue
        except FileUnreadable as error:
            walk.problems.append(Problem("file_unreadable", path, error.what, error.hint))
        else:
            found += [candidate] if candidate else []
    return found, walk.problems


class _Walk:
    def __init__(self, leave_out: set[str]) -> None:
        self._leave_out = leave_out
        self.problems: list[Problem] = []

    def files(self, root: str) -> Iterator[str]:
        waiting = [(root, 0)]
        seen = 0
        while waiting and seen < MAX_FOLDERS:
            folder, depth = waiting.pop()
            seen += 1
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting += [(entry.path, depth + 1)] if self._enters(entry, depth) else []
                        elif entry.name.lower().endswith(".md") and entry.is_file(follow_symlinks=False):
                            yield entry.path
            except OSError as error:
                what = f"cannot be listed: {error.strerror}"
                self.problems.append(Problem("folder_unreadable", folder, what, "check its permissions"))
        if waiting:
            what = f"more than {MAX_FOLDERS} folders; the rest was not looked at"
            self.problems.append(Problem("too_many_files", root, what, "call kbd init in a smaller folder"))

    def _enters(self, entry: os.DirEntry[str], depth: int) -> bool:
        hidden = entry.name.startswith(".") and entry.name not in _HIDDEN_PLACES
        return depth < MAX_DEPTH and not hidden and entry.name not in _SKIPPED and entry.path not in self._leave_out


def _candidate(path: str) -> Candidate | None:
    data = read_regular(path, MAX_BYTES)
    entries = parse(data).entries
    folders, name = os.path.split(path)
    in_place = os.path.basename(folders).lower() in _PLACES
    if _DOCUMENTS.fullmatch(name):
        entries = tuple(entry for entry in entries if entry.type or entry.ident or entry.meta)
        in_place = False
    needed = 1 if in_place or _NAMES.fullmatch(name) else FEW_ENTRIES
    return Candidate(path, data, entries, in_place) if len(entries) >= needed else None
