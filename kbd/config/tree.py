"""YAML read as text with a place for each value, bounded against hostile files.

Scalars stay the text that was written, so `no`, `1.10` and `22:00` mean what the key's type says and not what
YAML 1.1 guesses. A plain empty value, `~` or `null` is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_VALUES = 20_000

Key = tuple[str | int, ...]
Value = None | str | list["Value"] | dict[str, "Value"]

_CORE_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of a configuration file. `line` is 1-based; `key` is dotted, may be empty."""

    line: int
    key: str
    what: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A document as plain values.

    Attributes:
        value: text, lists and mappings; None for an empty document.
        lines: 1-based line of each value by its key path (of the key where there is one).
        faults: duplicate keys, keys that are no text, tags, excess.
    """

    value: Value
    lines: dict[Key, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def line(self, key: Key) -> int:
        """Return the line of `key`, or of its nearest known parent."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)

    def fault(self, key: Key, what: str, hint: str = "") -> None:
        """Add a fault at the place of `key`. Idempotent."""
        fault = Fault(self.line(key), dotted(key), what, hint)
        if fault not in self.faults:
            self.faults.append(fault)

    def is_clean(self, key: Key) -> bool:
        """Tell whether no fault was found in the value at `key`."""
        place = dotted(key)
        return not any(fault.key == place or fault.key.startswith((f"{place}.", f"{place}[")) for fault in self.faults)


def dotted(key: Key) -> str:
    """Return `bases[0].files` for `("bases", 0, "files")`, fit to print whatever the keys hold."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_printable(part)}" for part in key)
    return "".join(parts).removeprefix(".")


def _printable(name: str) -> str:
    return name if name.isprintable() and len(name) <= 80 else repr(name[:80])


def parse_tree(data: bytes) -> Tree:
    """Return the values of one YAML document. Text that is not YAML, or goes over a bound, is a fault on the tree."""
    tree = Tree(None)
    if len(data) > MAX_BYTES:
        tree.fault((), f"the file is over {MAX_BYTES >> 20} MiB", "is this the right file?")
        return tree
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        tree.faults.append(Fault(line, "", "not valid UTF-8", "save the file as UTF-8"))
        return tree
    try:
        _refuse_excess(text)
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except _Excess as error:
        tree.faults.append(error.fault)
        return tree
    except yaml.YAMLError as error:
        tree.faults.append(_syntax_fault(error, text))
        return tree
    return Tree(_Builder(tree).build(node, (), 0), tree.lines, tree.faults) if node else tree


class _Excess(Exception):
    """The document is deeper or larger than any configuration. Carries the fault."""

    def __init__(self, event: yaml.Event, what: str) -> None:
        mark = event.start_mark
        self.fault = Fault(mark.line + 1 if mark else 1, "", what)
        super().__init__(what)


def _refuse_excess(text: str) -> None:
    # The event parser is iterative; compose() recurses, so depth is bounded before it runs.
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.BaseLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _Excess(event, f"nested over {MAX_DEPTH} deep")
        if count > MAX_VALUES:
            raise _Excess(event, f"over {MAX_VALUES} values")


def _syntax_fault(error: yaml.YAMLError, text: str) -> Fault:
    line, what = 1, str(error).partition("\n")[0]
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        line, what = error.problem_mark.line + 1, str(error.problem)
    elif isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"character U+{int(error.character):04X} is not allowed"
    return Fault(line, "", f"not valid YAML: {what}", "mend this line first")


class _Builder:
    """Turns nodes into values. Aliases are followed, so the number of values built is bounded, not the nodes."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.left = MAX_VALUES

    def build(self, node: yaml.Node, key: Key, depth: int) -> Value:
        self.tree.lines.setdefault(key, node.start_mark.line + 1)
        self.left -= 1
        if self.left == 0 or depth > MAX_DEPTH:
            self.tree.fault(key, "aliases make this value too large", "write it out instead")
        if self.left <= 0 or depth > MAX_DEPTH:
            return None
        if node.tag not in _CORE_TAGS:
            self.tree.fault(key, f"the tag {node.tag} has no meaning here", "take it away")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, key, depth)
            case yaml.SequenceNode():
                return [self.build(item, (*key, index), depth + 1) for index, item in enumerate(node.value)]
            case _:
                text = str(node.value)
                plain = isinstance(node, yaml.ScalarNode) and node.style is None
                return None if plain and text in {"", "~", "null"} else text

    def _mapping(self, node: yaml.MappingNode, key: Key, depth: int) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, child in node.value:
            line = name.start_mark.line + 1
            if not isinstance(name, yaml.ScalarNode):
                self.tree.faults.append(Fault(line, dotted(key), "a key must be text"))
                continue
            inner = (*key, str(name.value))
            if name.value in values:
                first = self.tree.line(inner)
                self.tree.faults.append(Fault(line, dotted(inner), f"given twice (first on line {first})", "keep one"))
                continue
            self.tree.lines[inner] = line
            values[name.value] = self.build(child, inner, depth + 1)
        return values
