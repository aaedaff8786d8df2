"""Finds the source formats: every module of this package that has a `FORMAT`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

import kbd.sources
from kbd.sources.contract import SourceFormat


@functools.cache
def formats() -> Mapping[str, SourceFormat]:
    """Return all formats by agent name, sorted by name."""
    found: dict[str, SourceFormat] = {}
    for module in pkgutil.iter_modules(kbd.sources.__path__, "kbd.sources."):
        declared = getattr(importlib.import_module(module.name), "FORMAT", None)
        if declared is not None:
            found[declared.agent] = declared
    return MappingProxyType(dict(sorted(found.items())))
