"""What the paths of a configuration mean: made absolute, and the folder a pattern belongs to."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path, PurePath

import msgspec

from kbd.config.sections import BaseConfig, SourceConfig

RELATIONS_NAME = ".knowledge-graph.yaml"


def absolute(root: Path, path: str) -> str:
    """Return `path` with `~` expanded, taken against `root`, without `.` and `..`. Symlinks are not followed."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(path)))


def is_pattern(path: str) -> bool:
    """Tell whether `path` has a wildcard."""
    return any(sign in path for sign in "*?[")


def fixed_folder(pattern: str) -> str:
    """Return the folder of a pattern up to its first wildcard: `/kb/**/*.md` → `/kb`, `/kb/a.md` → `/kb`."""
    folder = os.path.dirname(pattern)
    while is_pattern(folder):
        folder = os.path.dirname(folder)
    return folder


def resolve_base(base: BaseConfig, root: Path) -> BaseConfig:
    """Return the base with absolute paths and its default relations file."""
    files = tuple(absolute(root, pattern) for pattern in base.files)
    relations = base.relations or (os.path.join(fixed_folder(files[0]), RELATIONS_NAME) if files else "")
    graph = base.graph and msgspec.structs.replace(
        base.graph, log=absolute(root, base.graph.log), schema=absolute(root, base.graph.schema)
    )
    return msgspec.structs.replace(
        base,
        files=files,
        relations=relations and absolute(root, relations),
        projects=tuple(absolute(root, project) for project in base.projects),
        graph=graph,
    )


def resolve_source(source: SourceConfig, root: Path) -> SourceConfig:
    """Return the source with absolute folders; globs of `exclude` have `~` expanded."""
    return msgspec.structs.replace(
        source,
        root=source.root and absolute(root, source.root),
        path=source.path and absolute(root, source.path),
        exclude=tuple(os.path.expanduser(glob) for glob in source.exclude),
    )


def lies_in_base(folder: str, pattern: str, root: Path, *, reads_every_file: bool) -> bool:
    """Tell whether a source's folder lies inside a base.

    A pattern with a wildcard owns the folders it names and all below: `kb/*.md` owns `kb`, `p/*/memory/*.md` owns
    each `p/X/memory`. A pattern for single files (`lessons.md`), or for the configuration's own folder (`*.md`),
    owns only its files, so that `logs/` may stand beside them; there a source that reads every file must not start.

    Args:
        folder: the source's folder, absolute.
        pattern: a pattern of the base, absolute.
        root: the configuration's folder.
        reads_every_file: the source takes any file for a log, also a knowledge file.
    """
    real, owner = os.path.realpath(folder), os.path.dirname(pattern)
    owner = os.path.join(os.path.realpath(fixed_folder(pattern)), os.path.relpath(owner, fixed_folder(pattern)))
    owner = os.path.normpath(owner)
    if not is_pattern(pattern) or owner == os.path.realpath(root):
        return reads_every_file and real == owner
    return any(_folder_matches(str(part), owner) for part in (real, *PurePath(real).parents))


def _folder_matches(folder: str, pattern: str) -> bool:
    """Match a folder part by part; `**` takes any number of parts."""
    return _parts_match(PurePath(folder).parts, PurePath(pattern).parts)


def _parts_match(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_parts_match(parts[skip:], patterns[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], patterns[0]) and _parts_match(parts[1:], patterns[1:])
