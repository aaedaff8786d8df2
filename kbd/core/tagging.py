"""Putting a type tag into an entry that has none; every other byte stays."""

from __future__ import annotations

import re

from kbd.core.entries import parse
from kbd.core.headline import marker_end
from kbd.core.model import Entry, Span
from kbd.core.splice import Edit, apply

_BULLET = re.compile(rb"[-*+][ \t]+")
_IDENTS = re.compile(r"(?:\[[A-Z]{2,5}[0-9]{2,9}\]:?[ \t]*)*")


def tag_edit(data: bytes, entry: Entry, type_: str, types: frozenset[str], marker: str) -> Edit | None:
    """Return the edit that puts `[type] ` after an entry's bullet, marker and id.

    None if the entry would not come out the same but for its type: it has one, or what stands there is read otherwise.
    """
    block = data[entry.block.start : entry.block.end]
    bullet = _BULLET.match(block)
    if bullet is None or entry.type is not None or entry.tag is not None:
        return None
    line = block[bullet.end() :].split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    lead = marker_end(line, marker, is_entry=True) if marker else 0
    found = _IDENTS.match(line, lead)
    lead = found.end() if found else lead
    at = bullet.end() + len(line[:lead].encode("utf-8", "surrogateescape"))
    tag = f"[{type_}] ".encode()
    tagged = parse(apply(block, [Edit(Span(at, at), tag)]), types, marker).entries
    if len(tagged) != 1 or _identity(tagged[0]) != _identity(entry) or tagged[0].type != type_:
        return None
    return Edit(Span(entry.block.start + at, entry.block.start + at), tag)


def _identity(entry: Entry) -> tuple[object, ...]:
    return entry.norm, entry.ident, entry.meta, entry.marker, entry.created, entry.body
