"""Adds a fragment to the text of a schema: new keys and list items are put in, every other byte stays.

What comes out is read again and must say exactly what the two say together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kbd.core import yamltext
from kbd.core.yamltext import Document, Edit, Listing, Node, Scalar, compose, spliced
from kbd.core.yamlvalues import value_of
from kbd.errors import FileUnreadable, Refused

_YAML_WORDS = frozenset({"true", "false", "null", "y", "n", "yes", "no", "on", "off"})


def merged(data: bytes, fragment: Mapping[str, Any], name: str) -> bytes:
    """Return the text of `data` with the fragment added: mappings are merged, lists extended, other values replaced.

    Raises:
        FileUnreadable: `data` is no YAML.
        Refused: its form leaves no place for the fragment.
    """
    document = compose(data, name)
    old = value_of(document.root)
    wanted = united(old if isinstance(old, dict) else {}, fragment)
    if document.root is None or (isinstance(document.root, Scalar) and document.root.null):
        newline = "" if not document.text or document.text.endswith("\n") else "\n"
        return (document.text + newline + "".join(_lines(fragment, ""))).encode()
    text = spliced(document, list(_edits(document, document.root, fragment)))
    try:
        proved = value_of(compose(text, name).root) == wanted
    except FileUnreadable:
        proved = False
    if not proved:
        raise Refused("its form leaves no place for the fragment", where=name, hint="add it by hand")
    return text


def united(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return both together: mappings merged, lists extended by what they lack, other values those of `new`."""
    result = dict(old)
    for key, value in new.items():
        held = result.get(key)
        if isinstance(held, dict) and isinstance(value, Mapping):
            result[key] = united(held, value)
        elif isinstance(held, list) and isinstance(value, list):
            result[key] = held + [item for item in value if item not in held]
        else:
            result[key] = value
    return result


def _edits(document: Document, node: Node, new: Mapping[str, Any]) -> Iterator[Edit]:
    own = node.own() if isinstance(node, yamltext.Mapping) else {}
    missing = {key: value for key, value in new.items() if key not in own}
    for key, value in new.items():
        if key not in own:
            continue
        held = own[key][1]
        if isinstance(held, yamltext.Mapping) and isinstance(value, Mapping):
            yield from _edits(document, held, value)
        elif isinstance(held, Listing) and isinstance(value, list):
            present = value_of(held)
            yield from _extended(document, held, [item for item in value if item not in present])
        elif value_of(held) != value:
            space = " " if held.start == held.end else ""
            yield Edit(held.start, held.end, space + _flow(value))
    if missing and isinstance(node, yamltext.Mapping):
        yield _added(document, node, missing)


def _added(document: Document, node: yamltext.Mapping, missing: Mapping[str, Any]) -> Edit:
    if node.flow or not node.pairs:
        inside = ", ".join(f"{_flow(key)}: {_flow(value)}" for key, value in missing.items())
        return Edit(node.end - 1, node.end - 1, (", " if node.pairs else "") + inside)
    first = node.pairs[0][0].start
    indent = " " * (first - document.line_start(first))
    return _after(document, node.end, "".join(_lines(missing, indent)))


def _extended(document: Document, node: Listing, items: list[Any]) -> Iterator[Edit]:
    if not items:
        return
    if node.flow or not node.items:
        inside = ", ".join(map(_flow, items))
        yield Edit(node.end - 1, node.end - 1, (", " if node.items else "") + inside)
        return
    start = document.line_start(node.items[0].start)
    indent = document.text[start : document.text.index("-", start)]
    yield _after(document, node.end, "".join(f"{indent}- {_flow(item)}\n" for item in items))


def _after(document: Document, offset: int, lines: str) -> Edit:
    at = document.next_line(max(offset - 1, 0))
    ended = document.text[:at].endswith(("\n", "\r"))
    return Edit(at, at, lines if ended else "\n" + lines)


def _lines(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield lines of `key: value`; mappings two levels deep in lines of their own, what lies deeper on one line."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value and len(indent) < 4:
            yield f"{indent}{_flow(key)}:\n"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{_flow(key)}: {_flow(value)}\n"


def _flow(value: Any) -> str:
    """Return a value as YAML on one line: plain words bare, all else as JSON, which YAML reads alike."""
    if isinstance(value, str) and value.isascii() and value.replace("_", "a").isalnum() and value[0].isalpha():
        return (
            value
            if value.lower() not in ("true", "false", "null", "y", "n", "yes", "no", "on", "off")
            else f'"{value}"'
        )
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
