"""From a YAML tree to typed structs, with every fault collected instead of the first.

msgspec checks each single value (its message stops at the first fault); the walk over mappings and lists is here,
so that each fault has its own line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from kbd.config.tree import Key, Tree, Value

S = TypeVar("S", bound=msgspec.Struct)


def read_struct(
    tree: Tree,
    value: Value,
    struct: type[S],
    key: Key = (),
    *,
    given: Mapping[str, object] = MappingProxyType({}),
    owners: Mapping[str, str] = MappingProxyType({}),
) -> S | None:
    """Return `value` as a `struct`; faults go onto the tree and a faulty key takes its default.

    Args:
        tree: gives the lines and takes the faults.
        value: the mapping to read.
        struct: its fields are the keys, of structs, tuples, dicts, and what msgspec converts from text.
        key: where `value` stands.
        given: fields that were read before.
        owners: key → section that has it, for a key written at the wrong place.

    Returns:
        None if `value` is no mapping or a required key is missing or faulty.
    """
    if not isinstance(value, dict):
        tree.fault(key, f"expected a mapping, got {shown(value)}")
        return None
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for name in value.keys() - fields.keys():
        tree.fault((*key, name), "unknown key", _unknown_key_hint(name, fields, owners))
    got = dict(given)
    for name in fields.keys() - got.keys():
        raw = value.get(name)
        read = None if raw is None else _read(tree, raw, fields[name].type, (*key, name))
        if read is not None:
            got[name] = read
        elif raw is None and fields[name].required:
            tree.fault((*key, name), "is missing")
    complete = all(name in got for name, field in fields.items() if field.required)
    return struct(**got) if complete else None


def read_items(tree: Tree, value: Value, struct: type[S], key: Key) -> list[tuple[int, S]]:
    """Return the good items of a list of mappings, each with its number in the list."""
    if not isinstance(value, list):
        tree.fault(key, f"expected a list, got {shown(value)}")
        return []
    read = ((index, _read_item(tree, item, struct, (*key, index))) for index, item in enumerate(value))
    return [(index, item) for index, item in read if isinstance(item, struct)]


def _read(tree: Tree, value: Value, kind: object, key: Key) -> object | None:
    kind = _without_none(kind)
    origin = get_origin(kind)
    if origin is tuple:
        return _read_list(tree, value, get_args(kind)[0], key)
    if origin is dict:
        return _read_mapping(tree, value, get_args(kind), key)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return read_struct(tree, value, kind, key)
    try:
        read: object = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        tree.fault(key, f"expected {expectation(kind)}, got {shown(value)}", _choice_hint(kind, value))
        return None
    return read


def _read_list(tree: Tree, value: Value, kind: object, key: Key) -> tuple[object, ...] | None:
    if not isinstance(value, list):
        hint = f"write [{value}]" if isinstance(value, str) else ""
        tree.fault(key, f"expected a list, got {shown(value)}", hint)
        return None
    items = (_read_item(tree, item, kind, (*key, index)) for index, item in enumerate(value))
    return tuple(item for item in items if item is not None)


def _read_mapping(tree: Tree, value: Value, kinds: tuple[object, ...], key: Key) -> dict[str, object] | None:
    if not isinstance(value, dict):
        tree.fault(key, f"expected a mapping, got {shown(value)}")
        return None
    read: dict[str, object] = {}
    for name, item in value.items():
        inner = (*key, name)
        good = _read(tree, name, kinds[0], inner) is not None
        content = _read_item(tree, item, kinds[1], inner)
        if good and content is not None:
            read[name] = content
    return read


def _read_item(tree: Tree, value: Value, kind: object, key: Key) -> object | None:
    if value is None:
        tree.fault(key, "is empty")
        return None
    return _read(tree, value, kind, key)


def _without_none(kind: object) -> object:
    if get_origin(kind) in {Union, UnionType}:
        return next(arg for arg in get_args(kind) if arg is not type(None))
    return kind


def expectation(kind: object) -> str:
    """Say in words what a leaf type takes: `a whole number from 1 to 1024`."""
    if get_origin(kind) is Literal:
        *first, last = get_args(kind)
        return f"{', '.join(first)} or {last}"
    noun = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if get_origin(kind) is Annotated:
        leaf, meta = get_args(kind)
        if meta.extra:
            return str(meta.extra["expects"])
        return f"{noun[leaf]} from {meta.ge} to {meta.le}"
    return noun[kind] if isinstance(kind, type) else str(kind)


def shown(value: Value) -> str:
    """Name a value in a message, cut to 40 characters."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value) if len(value) <= 40 else repr(value[:40]) + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean X?` for the known word most like `word`, else ""."""
    import difflib  # noqa: PLC0415 - of use only where the configuration is at fault

    close = difflib.get_close_matches(word[:100], sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def _unknown_key_hint(name: str, fields: Iterable[str], owners: Mapping[str, str]) -> str:
    if name in owners:
        return f"it belongs under {owners[name]}"
    return nearest(name, fields) or f"known: {', '.join(fields)}"


def _choice_hint(kind: object, value: Value) -> str:
    return nearest(value, get_args(kind)) if get_origin(kind) is Literal and isinstance(value, str) else ""
