"""Faults that no single key shows: clashes between bases, between sources, and between the two.

Bases and sources come numbered as in the file (faulty ones are left out) and with absolute paths.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from kbd.config.paths import lies_in_base
from kbd.config.reading import nearest
from kbd.config.sections import AGENTS, ENTRY_TYPES, BaseConfig, Document, SourceConfig
from kbd.config.tree import Key, Tree
from kbd.core.model import Problem
from kbd.store.notes import knowledge_files

Bases = Sequence[tuple[int, BaseConfig]]
Sources = Sequence[tuple[int, SourceConfig]]
RootsOf = Callable[[str], Sequence[str]]


def check_bases(tree: Tree, bases: Bases) -> None:
    """Report doubled names, bases without files, one real file in two bases and one relations file of two bases."""
    names: dict[object, BaseConfig] = {}
    files: dict[object, BaseConfig] = {}
    relations: dict[object, BaseConfig] = {}
    for index, base in bases:
        key: Key = ("bases", index)
        _check_patterns(tree, base, (*key, "files"))
        if names.setdefault(base.name, base) is not base:
            tree.fault((*key, "name"), f"another base is named {base.name}", "rename one")
        shared: dict[str, str] = {}
        for path in _matched(base.files):
            owner = files.setdefault(identity(path), base)
            if owner is not base:
                shared.setdefault(owner.name, path)
        for name, path in shared.items():
            tree.fault((*key, "files"), f"{path} is also in base {name}", "a file belongs to one base")
        owner = relations.setdefault(identity(base.relations), base)
        if base.relations and owner is not base:
            what = f"{base.relations} is also the relations file of base {owner.name}"
            tree.fault((*key, "relations"), what, "give each base its own `relations`")


def _check_patterns(tree: Tree, base: BaseConfig, key: Key) -> None:
    if not base.files and tree.is_clean(key):
        tree.fault(key, "no pattern", "write for example [knowledge/*.md]")
    for number, pattern in enumerate(base.files):
        if os.path.isdir(pattern):
            tree.fault((*key, number), "is a folder", "name the files in it, such as knowledge/*.md")


def _matched(patterns: Sequence[str]) -> Iterator[str]:
    """Yield the patterns themselves (equal ones clash before any file is there) and the files they mean."""
    yield from patterns
    yield from knowledge_files(patterns).files


def identity(path: str) -> object:
    """Return what is equal for two names of one file: its inode if it exists, else its real path."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def check_sources(tree: Tree, sources: Sources, agents: Collection[str]) -> tuple[list[Problem], Sources]:
    """Report sources that say too little or too much, and return those that can be read.

    Args:
        tree: takes the faults.
        sources: as given.
        agents: the agents whose transcripts can be read.

    Returns:
        A problem for each known agent that is not in `agents`, and the other sources, each with a name.
    """
    problems: list[Problem] = []
    supported: list[tuple[int, SourceConfig]] = []
    for index, source in sources:
        key: Key = ("sources", index)
        if tree.is_clean(key):  # a faulty `format` would also look like a missing one
            _check_shape(tree, source, key)
        if source.agent is None or source.agent in agents:
            supported.append((index, source))
        elif source.agent in AGENTS:
            where = f"sources[{index}]"
            problems.append(Problem("agent_unsupported", where, f"{source.agent} is not supported yet", "not read"))
        else:
            known = sorted(AGENTS | set(agents))
            hint = nearest(source.agent, known) or f"known: {', '.join(known)}"
            tree.fault((*key, "agent"), f"unknown agent {source.agent!r}", hint)
    return problems, _named(tree, supported)


def _check_shape(tree: Tree, source: SourceConfig, key: Key) -> None:
    if source.agent is None and source.format is None:
        tree.fault(key, "neither agent nor format", "write `agent: claude-code`, or `path: logs` with `format: text`")
    elif source.agent is not None and source.format is not None:
        tree.fault((*key, "format"), "both agent and format", "an agent has its own format; keep one of the two")
    elif source.agent is not None and source.path is not None:
        tree.fault((*key, "path"), "path belongs to a format", "write `root` for an agent")
    elif source.format is not None and source.root is not None:
        tree.fault((*key, "root"), "root belongs to an agent", "write `path` for a format")
    elif source.format is not None and source.path is None:
        tree.fault(key, "format without path", "add `path`: the folder to read")


def _named(tree: Tree, sources: Sources) -> Sources:
    taken: set[str] = set()
    for index, source in sources:
        if source.name and source.name in taken:
            tree.fault(("sources", index, "name"), f"another source is named {source.name}", "rename one")
        taken.add(source.name)
    named: list[tuple[int, SourceConfig]] = []
    for index, source in sources:
        name = source.name or _free_name(source, taken)
        taken.add(name)
        named.append((index, msgspec.structs.replace(source, name=name)))
    return named


def _free_name(source: SourceConfig, taken: Collection[str]) -> str:
    stem = source.agent or os.path.basename(source.path or "") or "source"
    numbered = (f"{stem}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([stem], numbered) if name not in taken)


def check_overlap(tree: Tree, bases: Bases, sources: Sources, root: Path, roots_of: RootsOf) -> None:
    """Report each source whose folder lies inside a base (see `lies_in_base`)."""
    for index, source in sources:
        folders = [source.folder] if source.folder else roots_of(source.agent) if source.agent else []
        for folder, (_, base) in itertools.product(folders, bases):
            reads_all = source.format is not None
            if any(lies_in_base(folder, pattern, root, reads_every_file=reads_all) for pattern in base.files):
                place: Key = ("sources", index, "path" if source.path else "root")
                tree.fault(place, f"{folder} lies inside base {base.name}", "keep transcripts out of the knowledge")


def check_stages(tree: Tree, document: Document) -> None:
    """Report stages that ask for a type no entry can have."""
    known = ENTRY_TYPES | {name.lower() for name in document.types}
    for stage, wanted in document.stages.items():
        for number, name in enumerate(wanted):
            if name.lower() not in known:
                hint = nearest(name.lower(), known) or "add it under types"
                tree.fault(("stages", stage, number), f"unknown type {name!r}", hint)
