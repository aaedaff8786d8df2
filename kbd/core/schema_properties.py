"""Types of properties as a schema writes them: `string`, `ref(Person)[]?`, `enum(low, high)`, `list(url)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = ("any", "string", "integer", "number", "boolean", "date", "datetime", "url", "email", "list", "object", "ref")
FORMATS = {
    "date": "date",
    "date-time": "datetime",
    "datetime": "datetime",
    "uri": "url",
    "url": "url",
    "email": "email",
}
_CALL = re.compile(r"(ref|enum|list)\s*\((.*)\)", re.DOTALL)
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """A type of values: as the fields of `PropertyRule`."""

    kind: str
    targets: tuple[str, ...] = ()
    items: Shape | None = None
    enum: tuple[str, ...] | None = None
    optional: bool = False


class ShapeFault(ValueError):
    """The text names no type of values; the message is one clause."""


def parse_shape(text: str, depth: int = 0) -> Shape:
    """Return the type of values that a text names.

    Raises:
        ShapeFault: it names none.
    """
    text = text.strip()
    if depth > _MAX_DEPTH:
        raise ShapeFault("nested too deep")
    if text.endswith("?"):
        inner = parse_shape(text[:-1], depth + 1)
        return Shape(inner.kind, inner.targets, inner.items, inner.enum, optional=True)
    if text.endswith("[]"):
        return Shape("list", items=parse_shape(text[:-2], depth + 1))
    call = _CALL.fullmatch(text)
    if call is not None:
        return _called(call[1], call[2], depth)
    if text not in KINDS:
        raise ShapeFault(f"unknown type of values {text!r}")
    return Shape(text)


def _called(function: str, inside: str, depth: int) -> Shape:
    if function == "list":
        return Shape("list", items=parse_shape(inside, depth + 1))
    parts = tuple(part.strip().strip("'\"") for part in re.split(r"[,|]", inside))
    if not all(parts):
        raise ShapeFault(f"{function}(…) names nothing")
    return Shape("ref", targets=parts) if function == "ref" else Shape("any", enum=parts)
