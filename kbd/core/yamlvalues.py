"""Values of a YAML tree where values are meant: JSON-like, resolved by the core schema of YAML 1.2.

Words such as `no`, `on` or `2026-01-01` stay text, for an enum that lists them means them.
"""

from __future__ import annotations

import math
import re
from typing import Any

from kbd.core.yamltext import Listing, Mapping, Node, Scalar

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def scalar_value(scalar: Scalar) -> str | int | float | bool | None:
    """Return what a scalar stands for; a quoted one is text."""
    text = scalar.text
    if scalar.style:
        return text
    if scalar.null:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and not re.fullmatch(r"[-+]?0[0-9]+", text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def value_of(node: Node | None) -> Any:
    """Return the value of a tree as JSON has it; keys are text, the last of a duplicate holds."""
    match node:
        case Scalar():
            return scalar_value(node)
        case Listing():
            return [value_of(item) for item in node.items]
        case Mapping():
            return {key: value_of(value) for key, (_, value) in node.own().items()}
        case None:
            return None
