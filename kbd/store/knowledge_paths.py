"""Telling whether a path that an agent named is a knowledge file, an archive, a relations file or a transcript."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable

from kbd.core.model import ToolCall
from kbd.core.shell import paths_in_code


class KnowledgePaths:
    """The files an agent may write to without citing anything, known by spelling and by real path."""

    def __init__(self, paths: Iterable[str], transcript_roots: Iterable[str], home: str) -> None:
        """Take absolute paths of knowledge files, and the roots of all sources."""
        self.home = home
        self.paths: set[str] = set()
        for path in paths:
            self.paths |= {os.path.normpath(path), os.path.realpath(path)}
        self.names = {os.path.basename(p) for p in self.paths}
        self.other_names = [name for name in self.names if ".md" not in name]
        self.roots = tuple({r for root in transcript_roots for r in (os.path.normpath(root), os.path.realpath(root))})

    def named_by(self, call: ToolCall, cwd: str | None) -> bool:
        """Tell whether a tool call names one of the files, in whatever spelling."""
        for touch in call.touched:
            if self.is_knowledge(touch.path, cwd):
                return True
        for name in call.named:
            if self.is_knowledge(name, cwd):
                return True
        return any(self._stands_in(text, cwd) for text in call.prose if self._could_stand_in(text))

    def _could_stand_in(self, text: str) -> bool:
        """Tell whether a text holds the name of a file, or what could be a pattern of it or a link to it."""
        return ".md" in text or "*" in text or any(name in text for name in self.other_names)

    def _stands_in(self, text: str, cwd: str | None) -> bool:
        return any(self.is_knowledge(path.rstrip("."), cwd) for path in paths_in_code(text))

    def is_knowledge(self, path: str, cwd: str | None) -> bool:
        """Tell whether a path, relative to a working directory, is one of the files.

        Without a working directory a relative path is held against the ends of the known ones.
        """
        name = path.rstrip("/").rpartition("/")[2]
        if not self.names or "\0" in path:
            return False
        if "*" in path or "?" in path or "[" in path:
            full = os.path.normpath(os.path.join(cwd or "/", self._expand(path)))
            return any(fnmatch.fnmatchcase(p, full) for p in self.paths)
        if name not in self.names:
            return self._is_link(path, cwd)
        full = self._expand(path)
        if not os.path.isabs(full):
            if cwd is None:
                tail = os.path.normpath(f"/{full}")
                return any(p.endswith(tail) for p in self.paths)
            full = os.path.join(cwd, full)
        return os.path.normpath(full) in self.paths or os.path.realpath(full) in self.paths

    def _is_link(self, path: str, cwd: str | None) -> bool:
        """Tell whether a path of another name is a link to one of the files."""
        if not path.endswith(".md"):
            return False
        full = os.path.join(cwd or "/", self._expand(path))
        return os.path.islink(full) and os.path.realpath(full) in self.paths

    def _expand(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            return self.home + path[1:]
        return path.replace("$HOME", self.home, 1) if path.startswith("$HOME/") else path

    def is_private(self, path: str, cwd: str | None) -> bool:
        """Tell whether a path must not become a relation: a knowledge file, or inside a transcript root."""
        if self.is_knowledge(path, cwd):
            return True
        full = os.path.normpath(os.path.join(cwd or "/", self._expand(path)))
        return any(full == root or full.startswith(root + "/") for root in self.roots)


def names_of_folder(folder: str) -> frozenset[str]:
    """Return by which paths a working directory may be known: its own, that of its git root, and where links lead."""
    names = {folder, git_root(folder) or folder}
    return frozenset(names | {os.path.realpath(name) for name in names})


def git_root(folder: str) -> str | None:
    """Return the nearest folder at or above that holds `.git`; None if there is none."""
    current = os.path.normpath(folder)
    while os.path.isabs(current):
        if os.path.lexists(os.path.join(current, ".git")):
            return current
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent
    return None
