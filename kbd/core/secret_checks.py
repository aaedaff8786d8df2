"""Whether properties hold what a graph must never hold: forbidden names at any depth, values shaped like secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbd.core.operations import walk
from kbd.core.redact import holds_secret
from kbd.core.schema import plain_name


def forbidden_names(properties: Mapping[str, Any], forbidden: Mapping[str, str]) -> list[str]:
    """Return the paths (`login.password`) of properties that are forbidden, however they are spelled."""
    return [path for path, name, _ in walk(properties) if forbidden and plain_name(name) in forbidden]


def secret_places(properties: Mapping[str, Any]) -> list[str]:
    """Return the paths of values, and of names, that are shaped like a secret; never the secret itself."""
    found = []
    for path, name, value in walk(properties):
        if holds_secret(name):
            found.append("(a property's name)")
        elif isinstance(value, str) and holds_secret(value):
            found.append("(below a property)" if holds_secret(path) else path)
    return list(dict.fromkeys(found))
