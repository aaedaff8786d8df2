"""A configuration as commented YAML, as short as it can be: what is not in it keeps its default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z~/][\w~/.+-]*", re.ASCII)
_WORDS_OF_YAML = frozenset({"~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class NewBase:
    """A base to write down: its name, its files (globs) and the project folder it belongs to, "" for none."""

    name: str
    files: tuple[str, ...]
    project: str = ""


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source to write down: an agent, or a folder of text logs; `remark` stands behind it as a comment."""

    agent: str = ""
    path: str = ""
    remark: str = ""


def render_config(bases: Sequence[NewBase], sources: Sequence[NewSource]) -> str:
    """Return the text of a configuration; `~` in paths stands for the home."""
    lines = [
        "# Begun by `kbd init`. Every other key has its default; config.example.yaml",
        "# shows all. `kbd doctor` checks this file, SIGHUP makes the daemon take it.",
        "",
        "# Files whose entries live and fade together. kbd writes counters into them.",
        "bases:",
        *(line for base in bases for line in _base(base)),
        "",
        "# Where agents write. kbd only reads there.",
        "sources:",
        *(line for source in sources for line in _source(source)),
    ]
    return "\n".join([*lines, ""])


def _base(base: NewBase) -> Iterable[str]:
    yield f"  - name: {scalar(base.name)}"
    yield "    files:"
    yield from (f"      - {scalar(path)}" for path in base.files)
    if base.project:
        yield f"    # projects: [{scalar(base.project)}]   # only sessions in there"
    yield "    # evergreen: [decision]   # headings or types that never fade"


def _source(source: NewSource) -> Iterable[str]:
    remark = f"   # {source.remark}" if source.remark else ""
    if source.agent:
        yield f"  - agent: {scalar(source.agent)}{remark}"
    else:
        yield f"  - path: {scalar(source.path)}{remark}"
        yield "    format: text"


def scalar(text: str) -> str:
    """Return text as one YAML scalar on one line; JSON's strings are YAML's double-quoted ones."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
