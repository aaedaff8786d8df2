"""Loads a configuration: read, checked as a whole, with every fault in one message."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

import msgspec

from kbd.config.checks import (
    Bases,
    RootsOf,
    Sources,
    check_bases,
    check_overlap,
    check_sources,
    check_stages,
)
from kbd.config.paths import resolve_base, resolve_source
from kbd.config.reading import read_items, read_struct, shown
from kbd.config.sections import AGENTS, BaseConfig, Config, Document, SourceConfig, default_stages
from kbd.config.tree import MAX_BYTES, Fault, Tree, Value, parse_tree
from kbd.errors import UsageError

_NO_BASE = "write for example `bases: [{name: lessons, files: [knowledge/*.md]}]`"


def _no_roots(_agent: str) -> tuple[str, ...]:
    return ()


def load_config(path: Path, agents: Collection[str] = AGENTS, roots_of: RootsOf = _no_roots) -> Config:
    """Return the checked configuration in `path`.

    Args:
        path: the file; relative paths in it are relative to its folder.
        agents: agents whose transcripts can be read; sources of other known agents become a problem.
        roots_of: agent → its default roots, to find one that lies inside a base.

    Raises:
        UsageError: the file cannot be read, or has faults; all of them, one a line, as `path:line: key: what; hint`.
    """
    return parse_config(_read(path), path, agents, roots_of)


def parse_config(data: bytes, path: Path, agents: Collection[str] = AGENTS, roots_of: RootsOf = _no_roots) -> Config:
    """Return the checked configuration in `data`, as `load_config` does for the bytes of `path`."""
    tree = parse_tree(data)
    value = {} if tree.value is None else tree.value
    if not isinstance(value, dict):
        tree.fault((), f"expected a mapping, got {shown(value)}", "a configuration begins with `bases:`")
    if not isinstance(value, dict) or (tree.faults and not value):
        raise _faulty(path, tree.faults)
    root = path.parent.absolute()
    document, bases, sources = _read_document(tree, value, root)
    check_bases(tree, bases)
    problems, sources = check_sources(tree, sources, agents)
    check_overlap(tree, bases, sources, root, roots_of)
    check_stages(tree, document)
    if tree.faults:
        raise _faulty(path, tree.faults)
    fields = msgspec.structs.asdict(document) | {
        "bases": tuple(base for _, base in bases),
        "sources": tuple(source for _, source in sources),
        "types": {name.lower(): phrases for name, phrases in document.types.items()},
        "stages": default_stages() | {stage: _lower(names) for stage, names in document.stages.items()},
    }
    if document.write.counters == "sidecar":
        # A marker would be a change of the Markdown, which is left alone then.
        fields["decay"] = msgspec.structs.replace(document.decay, marker="")
    digest = hashlib.sha256(os.fsencode(path.absolute()) + b"\0" + data).hexdigest()[:16]
    return Config(**fields, root=root, path=path.absolute(), digest=digest, problems=tuple(problems))


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _read(path: Path) -> bytes:
    try:
        _refuse_special(os.stat(path), path)  # opening a device may act on it
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            _refuse_special(os.fstat(descriptor), path)
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=str(path), hint="`kbd init` writes one") from error
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=str(path), hint="mend its permissions") from error


def _refuse_special(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError("is not a regular file", where=str(path), hint="name a YAML file")


def _read_document(tree: Tree, value: dict[str, Value], root: Path) -> tuple[Document, Bases, Sources]:
    """Read the sections; bases and sources keep their numbers, so that later faults find their lines."""
    if not value.get("bases"):
        tree.fault(("bases",), "no base", "write for example `bases: [{name: lessons, files: [knowledge/*.md]}]`")
    bases = read_items(tree, value.get("bases") or [], BaseConfig, ("bases",))
    sources = read_items(tree, value.get("sources") or [], SourceConfig, ("sources",))
    document = read_struct(tree, value, Document, given={"bases": (), "sources": ()}, owners=_owners())
    return (
        document or Document(bases=()),
        [(index, resolve_base(base, root)) for index, base in bases],
        [(index, resolve_source(source, root)) for index, source in sources],
    )


def _owners() -> dict[str, str]:
    """Return key → section for keys that stand in one section only."""
    owners: dict[str, str] = {}
    for section in msgspec.structs.fields(Document):
        if isinstance(section.type, type) and issubclass(section.type, msgspec.Struct):
            for key in section.type.__struct_fields__:
                owners[key] = "" if key in owners else section.name
    return {key: section for key, section in owners.items() if section}


def _faulty(path: Path, faults: list[Fault]) -> UsageError:
    return UsageError("\n".join(_line(path, fault) for fault in sorted(faults)))


def _line(path: Path, fault: Fault) -> str:
    parts = (f"{path}:{fault.line}", fault.key, fault.what)
    return ": ".join(part for part in parts if part) + (f"; {fault.hint}" if fault.hint else "")
