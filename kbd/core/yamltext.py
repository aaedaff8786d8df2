"""YAML text as a tree of text scalars that know their places, for edits that leave every other byte alone.

Strings stay strings: no scalar is resolved, so `no`, `1.10`, `017` and `2026-01-01` are the text they look like.
PyYAML is used for its event parser only, from text to events, without loaders of objects and without I/O; the
tree is built here because the library's composers recurse and expand aliases without bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import yaml

from kbd.errors import FileUnreadable

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 1_000_000
BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_BOM = "\ufeff"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text with its place (`line` is 1-based); an alias has the text of its anchor.

    Attributes:
        style: `"`, `'`, `|`, `>` or "" for plain.
    """

    start: int
    end: int
    line: int
    text: str
    style: str

    @property
    def null(self) -> bool:
        """It stands for no value."""
        return not self.style and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Listing:
    """A sequence. The place of a block one ends with its last child, not where the next token begins."""

    start: int
    end: int
    line: int
    flow: bool
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping in its order, duplicate keys included."""

    start: int
    end: int
    line: int
    flow: bool
    pairs: tuple[tuple[Node, Node], ...]

    def own(self) -> dict[str, tuple[Scalar, Node]]:
        """Return key and value nodes by the text of the key; the last one of a duplicate, as loaders do."""
        return {key.text: (key, value) for key, value in self.pairs if isinstance(key, Scalar)}


Node = Scalar | Listing | Mapping
Plain = str | tuple["Plain", ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A file of one YAML document.

    Attributes:
        name: of the file, for messages.
        text: without the byte order mark; all places are character offsets in it.
        bom: a byte order mark stood before it.
        root: None when there is no document (an empty file, only comments).
    """

    name: str
    text: str
    bom: bool
    root: Node | None

    @property
    def newline(self) -> str:
        """The first line break of the text, a line feed if there is none."""
        found = BREAK.search(self.text)
        return found.group() if found else "\n"

    def line_start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        # The rare breaks are looked for within the line only: a file without them would be walked through each time.
        start = self.text.rfind("\n", 0, offset) + 1
        return max(start, *(self.text.rfind(char, start, offset) + 1 for char in "\r\x85\u2028\u2029"))

    def line_end(self, offset: int) -> int:
        """Return where the line of an offset ends, before its line break."""
        found = BREAK.search(self.text, offset)
        return found.start() if found else len(self.text)

    def next_line(self, offset: int) -> int:
        """Return where the line after that of an offset begins, or the end of the text."""
        found = BREAK.search(self.text, offset)
        return found.end() if found else len(self.text)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of a half-open range of characters."""

    start: int
    end: int
    text: str


def compose(data: bytes, name: str) -> Document:
    """Return the document in `data`.

    Raises:
        FileUnreadable: not UTF-8, not YAML, several documents, or beyond the bounds on size, depth and nodes
            (aliases count as what they stand for).
    """
    if len(data) > MAX_BYTES:
        raise FileUnreadable(f"larger than {MAX_BYTES} bytes", where=name, hint="split the file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileUnreadable(f"byte {error.start} is not UTF-8", where=name, hint="save it as UTF-8") from error
    bom = text.startswith(_BOM)
    text = text.removeprefix(_BOM)
    return Document(name, text, bom, _Builder(name).build(_events(text, name)))


def spliced(document: Document, edits: Sequence[Edit]) -> bytes:
    """Return the file with the edits made; insertions at one place keep their order.

    Raises:
        ValueError: two edits overlap.
    """
    out: list[str] = []
    at = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        if edit.start < at:
            raise ValueError(f"edits overlap at character {edit.start}")
        out += (document.text[at : edit.start], edit.text)
        at = edit.end
    text = "".join(out) + document.text[at:]
    return (_BOM + text if document.bom else text).encode()


def plain(node: Node | None) -> Plain:
    """Return the values of a tree without places, for comparison."""
    match node:
        case Scalar():
            return node.text
        case Listing():
            return ("list", *(plain(item) for item in node.items))
        case Mapping():
            return ("map", *((plain(key), plain(value)) for key, value in node.pairs))
        case None:
            return ()


def _events(text: str, name: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    # Besides its own errors the parser lets those of `chr` and `int` through on wild escapes and directives.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).split("\n")[0]
        where = f"{name}:{mark.line + 1}" if mark else name
        raise FileUnreadable(f"not YAML: {what}", where=where, hint="mend the file") from error


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come, with the sizes of what it holds so far."""

    event: yaml.SequenceStartEvent | yaml.MappingStartEvent
    children: list[Node]
    nodes: int = 1
    height: int = 1


class _Builder:
    """Builds the tree with a stack of its own: no depth of the text can exhaust that of the interpreter."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._documents = 0
        self._nodes = 0
        self._root: Node | None = None

    def build(self, events: Iterator[yaml.Event]) -> Node | None:
        for event in events:
            match event:
                case yaml.DocumentStartEvent():
                    self._documents += 1
                    self._check(self._documents == 1, "more than one document", event)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._check(len(self._open) < MAX_DEPTH, f"nested more than {MAX_DEPTH} deep", event)
                    self._open.append(_Open(event, []))
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    closed = self._open.pop()
                    self._add_anchored(_collection(closed, event), closed.nodes, closed.height, closed.event)
                case yaml.AliasEvent():
                    self._add_alias(event)
                case yaml.ScalarEvent():
                    self._add_anchored(_scalar(event), 1, 0, event)
                case _:
                    pass
        return self._root

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        self._check(event.anchor in self._anchors, f"alias *{event.anchor} has no anchor before it", event)
        node, nodes, height = self._anchors[event.anchor or ""]
        self._check(len(self._open) + height <= MAX_DEPTH, f"nested more than {MAX_DEPTH} deep", event)
        self._nodes += nodes - 1
        start, end, line = _place(event)
        self._add(replace(node, start=start, end=end, line=line), nodes, height, event)

    def _add_anchored(self, node: Node, nodes: int, height: int, event: yaml.NodeEvent) -> None:
        if event.anchor:
            self._anchors[event.anchor] = (node, nodes, height)
        self._add(node, nodes, height, event)

    def _add(self, node: Node, nodes: int, height: int, event: yaml.NodeEvent) -> None:
        self._nodes += 1
        self._check(self._nodes <= MAX_NODES, f"more than {MAX_NODES} nodes", event)
        if self._open:
            holder = self._open[-1]
            holder.children.append(node)
            holder.nodes += nodes
            holder.height = max(holder.height, height + 1)
        else:
            self._root = node

    def _check(self, holds: bool, what: str, event: yaml.Event) -> None:
        if not holds:
            raise FileUnreadable(what, where=f"{self._name}:{_place(event)[2]}", hint="mend the file")


def _place(event: yaml.Event) -> tuple[int, int, int]:
    """Return start, end and 1-based line of an event."""
    # The library types them as optional because events can be made for emitting; those of the parser have both.
    assert event.start_mark is not None and event.end_mark is not None  # noqa: S101 - for the type checker
    return event.start_mark.index, event.end_mark.index, event.start_mark.line + 1


def _scalar(event: yaml.ScalarEvent) -> Scalar:
    return Scalar(*_place(event), event.value, event.style or "")


def _collection(closed: _Open, last: yaml.Event) -> Node:
    event, children = closed.event, closed.children
    flow = bool(event.flow_style)
    start, end, line = _place(event)
    end = _place(last)[1] if flow else max((child.end for child in children), default=end)
    if isinstance(event, yaml.SequenceStartEvent):
        return Listing(start, end, line, flow, tuple(children))
    return Mapping(start, end, line, flow, tuple(zip(children[::2], children[1::2], strict=True)))
