"""Which agents have left transcripts on this machine, and where."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kbd.core.model import Problem
from kbd.sources.contract import SourceFormat
from kbd.store.scan import Found, walk

MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class Root:
    """A place where transcripts may lie.

    Attributes:
        agent: whose; or the format of a plain folder.
        path: folder or file.
        exists: something is there.
        files, size: its transcripts and their bytes, up to 200,000 files.
        newest: when the youngest of them changed; None without any.
        problems: what could not be looked into.
    """

    agent: str
    path: str
    exists: bool
    files: int = 0
    size: int = 0
    newest: datetime | None = None
    problems: tuple[Problem, ...] = ()


def look_into(form: SourceFormat, path: str, exclude: Iterable[str] = ()) -> Root:
    """Return what a format finds at a root; no file is opened."""
    found = walk(path, form.file_kind, exclude=exclude, max_files=MAX_FILES)
    if found is None:
        return Root(form.agent, path, exists=os.path.lexists(path))
    files, size, newest, problems = 0, 0, 0, []
    for item in found:
        if isinstance(item, Found):
            files, size, newest = files + 1, size + item.size, max(newest, item.mtime_ns)
        else:
            problems.append(item)
    moved = datetime.fromtimestamp(newest / 1e9, UTC) if files else None
    return Root(form.agent, path, True, files, size, moved, tuple(problems))


def find_agents(formats: Mapping[str, SourceFormat], env: Mapping[str, str], home: str) -> list[Root]:
    """Return the default roots that exist, those of one agent side by side; a folder met twice counts once."""
    roots = ((form, path) for form in formats.values() for path in form.default_roots(env, home))
    found: list[Root] = []
    seen: set[str] = set()
    for form, path in roots:
        real = os.path.realpath(path)
        if real not in seen and os.path.exists(real):
            seen.add(real)
            found.append(look_into(form, path))
    return found


def by_agent(roots: Iterable[Root]) -> dict[str, list[Root]]:
    """Return agent → its roots, in their order."""
    return {agent: list(group) for agent, group in itertools.groupby(roots, lambda root: root.agent)}
