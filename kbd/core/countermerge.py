"""Merging the counters of three versions of a knowledge file, so that git is left with the words.

What two hosts counted since their common version adds up: A + B − O, with the newer `last`. The merged comment is put
into all three versions alike; a text merge then finds no difference there, and conflicts only where words do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbd.core.model import Entry, Metadata, Pair, State
from kbd.core.splice import Edit, apply, edits_for
from kbd.core.undoing import Parse

_LIVELINESS = (State.ACTIVE, State.DORMANT, State.ARCHIVED)
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Versions:
    """Three versions of a file: the common one, ours and theirs."""

    common: bytes
    ours: bytes
    theirs: bytes


def aligned(versions: Versions, parse: Parse) -> Versions:
    """Return the versions with the same counters in the comment of each entry that both sides hold.

    An entry is known by its title, of several with one title by their order. The marker is left to the text merge.
    """
    parsed = [_by_title(parse(data).entries) for data in (versions.common, versions.ours, versions.theirs)]
    common, ours, theirs = parsed
    merged = {
        key: _merged(common.get(key), ours[key], theirs[key])
        for key in ours.keys() & theirs.keys()
        if ours[key].meta or theirs[key].meta
    }
    common_data, ours_data, theirs_data = (
        _with(data, entries, merged)
        for data, entries in zip((versions.common, versions.ours, versions.theirs), parsed, strict=True)
    )
    return Versions(common_data, ours_data, theirs_data)


def _by_title(entries: tuple[Entry, ...]) -> dict[Key, Entry]:
    found: dict[Key, Entry] = {}
    seen: dict[str, int] = {}
    for entry in entries:
        number = seen[entry.norm] = seen.get(entry.norm, 0) + 1
        found[entry.norm, number] = entry
    return found


def _merged(common: Entry | None, ours: Entry, theirs: Entry) -> tuple[Pair, State]:
    old = common.meta if common else None
    base = _ref(old) or 0
    a, b = (base if ref is None else ref for ref in (_ref(ours.meta), _ref(theirs.meta)))
    last = max((m.last for m in (old, ours.meta, theirs.meta) if m and m.last), default=None)
    # An entry that both sides got after they parted, with the same numbers, is a copy of one.
    is_copy = common is None and a == b and _last(ours.meta) == _last(theirs.meta)
    return Pair(a if is_copy else max(a + b - base, 0), last), _state(old, ours.meta, theirs.meta)


def _ref(meta: Metadata | None) -> int | None:
    return meta.ref if meta else None


def _last(meta: Metadata | None) -> object:
    return meta.last if meta else None


def _state(common: Metadata | None, ours: Metadata | None, theirs: Metadata | None) -> State:
    """Return the state that one side set; of two the livelier: fading can be done again, a citation cannot."""
    base = (common.state if common else None) or State.ACTIVE
    changed = {meta.state for meta in (ours, theirs) if meta and meta.state} - {base}
    return min(changed, key=_LIVELINESS.index, default=base)


def _with(data: bytes, entries: Mapping[Key, Entry], merged: Mapping[Key, tuple[Pair, State]]) -> bytes:
    edits: list[Edit] = []
    for key, (pair, state) in merged.items():
        if key in entries:
            edits.extend(edits_for(data, entries[key], pair.ref, pair.last, state, ""))
    return apply(data, edits)
