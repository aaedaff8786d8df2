"""Reads the parts of a schema's text and gathers every fault with its line, instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbd.core import yamltext
from kbd.core.model import Problem
from kbd.core.schema import near
from kbd.core.yamltext import Listing, Node, Scalar
from kbd.core.yamlvalues import scalar_value, value_of


@dataclass(slots=True)
class SchemaText:
    """One schema file being read.

    Attributes:
        name: of the file, for messages.
        problems: the faults so far.
        lines: 1-based line of each place that was read.
    """

    name: str
    problems: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def fault(self, code: str, where: str, what: str, hint: str, line: int | None = None) -> None:
        """Add a fault at a place of the schema."""
        at = line or self.lines.get(where, 0)
        self.problems.append(Problem(code, f"{self.name}:{at}" if at else self.name, f"{where}: {what}", hint))

    def mapping(
        self, node: Node | None, where: str, keys: Collection[str], suffixes: Collection[str] = ()
    ) -> dict[str, Node]:
        """Return the values of a mapping by key; keys that are not known (or end in no suffix) are faults, left out."""
        found = self.named(node, where)
        for key in list(found):
            if key not in keys and not any(key.endswith(one) and key != one for one in suffixes):
                line = self.lines.get(f"{where}.{key}" if where else key)
                hint = near(key, [*keys, *(f"<property>{one}" for one in suffixes)])
                self.fault("schema_key", where or "schema", f"kbd enforces no key '{key}'", hint, line)
                del found[key]
        return found

    def named(self, node: Node | None, where: str) -> dict[str, Node]:
        """Return the values of a mapping with any keys; another shape is a fault and gives none, null gives none."""
        if node is None or (isinstance(node, Scalar) and node.null):
            return {}
        if not isinstance(node, yamltext.Mapping):
            self.fault("schema_value", where or "schema", "is no mapping", "write `key: value` lines", node.line)
            return {}
        found: dict[str, Node] = {}
        for key, value in node.pairs:
            text = key.text if isinstance(key, Scalar) else ""
            if not text.strip() or text in found:
                what = f"the key '{text}' stands there twice" if text.strip() else "a key that is no text"
                self.fault("schema_key", where or "schema", what, "keep one of them", key.line)
                continue
            found[text] = value
            self.lines[f"{where}.{text}" if where else text] = key.line
        return found

    def names(self, node: Node | None, where: str) -> tuple[str, ...]:
        """Return a list of names; a single one is a list of one."""
        if node is None:
            return ()
        items = node.items if isinstance(node, Listing) else (node,)
        named = [
            item.text.strip() for item in items if isinstance(item, Scalar) and not item.null and item.text.strip()
        ]
        if len(named) != len(items):
            self.fault("schema_value", where, "is no list of names", "write [one, two]", node.line)
        return tuple(dict.fromkeys(named))

    def words(self, node: Node | None, where: str) -> str:
        """Return a text; "" if there is none."""
        if node is None:
            return ""
        if isinstance(node, Scalar) and not node.null:
            return node.text.strip()
        self.fault("schema_value", where, "is no text", "write one line of text", node.line)
        return ""

    def flag(self, node: Node | None, where: str) -> bool:
        """Return true or false; false if there is none."""
        if node is None:
            return False
        value = value_of(node)
        if not isinstance(value, bool):
            self.fault("schema_value", where, "is neither true nor false", "write true or false", node.line)
        return value is True

    def count(self, node: Node | None, where: str) -> int | None:
        """Return a number of things; None if there is none."""
        value = value_of(node)
        if node is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.fault("schema_value", where, "is no whole number", "write 0, 1, 2 …", node.line)
            return None
        return value if node is not None else None

    def values(self, node: Node | None, where: str) -> tuple[Any, ...] | None:
        """Return the values of a list of scalars; None if there is no list."""
        if node is None:
            return None
        if not isinstance(node, Listing) or not node.items or not all(isinstance(item, Scalar) for item in node.items):
            self.fault("schema_value", where, "is no list of values", "write [open, done]", node.line)
            return None
        return tuple(scalar_value(item) for item in node.items if isinstance(item, Scalar))

    def pairs(self, node: Node | None, where: str) -> Mapping[str, Any]:
        """Return the values of a mapping whose values are scalars."""
        found = self.named(node, where)
        for key, value in found.items():
            if not isinstance(value, Scalar):
                self.fault("schema_value", f"{where}.{key}", "is no single value", "write one value", value.line)
        return {key: scalar_value(value) for key, value in found.items() if isinstance(value, Scalar)}
