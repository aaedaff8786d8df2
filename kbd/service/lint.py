"""Findings in the knowledge and relations files as they stand on disk now, whatever the ledger knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from kbd.core import entries as markdown
from kbd.core.decay import dates_ahead
from kbd.core.model import Entry, Problem
from kbd.errors import FileUnreadable
from kbd.store import relations
from kbd.store.base_files import MAX_BYTES
from kbd.store.files import read_regular
from kbd.store.notes import archive_of, conflict_copies, is_archive, knowledge_files

YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked through: globs of a base's files, or files named by a person; a relations file, or ""; the day."""

    patterns: Sequence[str]
    relations: str
    types: frozenset[str]
    marker: str
    today: date


@dataclass(frozen=True, slots=True)
class _Read:
    path: str
    entries: tuple[Entry, ...]


def lint_base(scope: Scope) -> list[Problem]:
    """Return the findings in all files of a base, in the order of files and lines; `where` is `file:line`."""
    listing = knowledge_files(scope.patterns)
    findings = [*listing.problems, *conflict_copies([*listing.files, *filter(None, [scope.relations])])]
    archives = [path for path in map(archive_of, listing.files) if os.path.lexists(path)]
    read: list[_Read] = []
    for path in [*listing.files, *archives]:
        problems, entries = _lint_note(path, scope)
        findings += problems
        read += [_Read(path, entries)] if not is_archive(path) else []
    findings += _namesakes(read)
    if scope.relations:
        findings += lint_relations(scope.relations)
    return sorted(findings, key=_place)


def lint_file(path: str, scope: Scope) -> list[Problem]:
    """Return the findings in one file: a relations file if its name ends as YAML, else a knowledge file."""
    findings = lint_relations(path) if path.endswith(YAML) else _lint_note(path, scope)[0]
    return sorted(findings, key=_place)


def lint_relations(path: str) -> list[Problem]:
    """Return the findings in a relations file; none if there is no file."""
    try:
        found = relations.load(path)
    except FileUnreadable as error:
        return [Problem("relations_unreadable", error.where or path, error.what, error.hint or "mend the file")]
    return list(found.problems) if found else []


def _lint_note(path: str, scope: Scope) -> tuple[list[Problem], tuple[Entry, ...]]:
    try:
        data = read_regular(path, MAX_BYTES)
    except (FileUnreadable, FileNotFoundError) as error:
        what, hint = (error.what, error.hint) if isinstance(error, FileUnreadable) else ("there is no such file", "")
        return [Problem("knowledge_unreadable", path, what, hint or "mend its name or permissions")], ()
    parsed = markdown.parse(data, scope.types, scope.marker)
    problems = [replace(p, where=f"{path}:{p.where.removeprefix('line ')}") for p in parsed.problems]
    for entry in parsed.entries:
        last = entry.meta.last if entry.meta else None
        problems += dates_ahead(f"{path}:{entry.line}", entry.created, last, scope.today)
    return problems, parsed.entries


def _namesakes(read: Sequence[_Read]) -> Iterator[Problem]:
    """Yield the entries that have the title or the id of one in another file; within a file the parser tells."""
    titles: dict[str, tuple[str, int]] = {}
    idents: dict[str, tuple[str, int]] = {}
    for file in read:
        for entry in file.entries:
            path, line = titles.setdefault(entry.norm, (file.path, entry.line))
            if path != file.path:
                what = f"the title '{entry.title}' stands in {path}:{line} as well, so both get the credit"
                yield Problem("duplicate_title", f"{file.path}:{entry.line}", what, "rename or merge one of them")
            path, line = idents.setdefault(entry.ident or "", (file.path, entry.line))
            if entry.ident and path != file.path:
                what = f"the id {entry.ident} stands in {path}:{line} as well, so both get the credit"
                yield Problem("duplicate_id", f"{file.path}:{entry.line}", what, "give one of them another id")


def _place(problem: Problem) -> tuple[str, int]:
    path, _, line = problem.where.rpartition(":")
    return (path, int(line)) if line.isdigit() else (problem.where, 0)
