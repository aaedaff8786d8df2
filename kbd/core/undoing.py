"""Taking a write back: what it changed, and splicing that into a file that others have edited since.

A change knows its neighbours and the entry it lies in, so that it is found again wherever its bytes have moved to.
Bytes that are no longer as they were written are never touched: the whole undo is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kbd.core.entries import Parsed
from kbd.core.model import Entry, Span
from kbd.core.splice import Edit, apply, insert
from kbd.errors import Refused

CONTEXT_BYTES = 48
"""So many bytes on each side tell a place from others; they may be an entry's neighbours as well."""
MADE = -1
"""The offset of the change that made its file: undone, it takes the file away again if nothing else came into it."""
_HEADING = re.compile(rb"\s*(?:#{1,6}(?:\s|\Z)|\Z)")


@dataclass(frozen=True, slots=True)
class Change:
    """One place that a write changed.

    Attributes:
        offset: of the first byte, in the file as it was written; `MADE` if there was no file.
        old: the bytes before; new: the bytes since.
        left, right: the bytes beside it, as they were written.
        title: normalised title of the entry it lies in, or that came or went as a whole; "" for none.
        above: of a whole block that came or went, the normalised title of the entry before it ("" for none); else None.
        section: of such a block, the headings above it.
    """

    offset: int
    old: bytes
    new: bytes
    left: bytes
    right: bytes
    title: str = ""
    above: str | None = None
    section: str = ""


Parse = Callable[[bytes], Parsed]


def of_edits(before: bytes, after: bytes, edits: Sequence[tuple[str, Edit]]) -> tuple[Change, ...]:
    """Return the changes of edits that made `after` of `before`, each with the title of its entry."""
    changes = []
    grown = 0
    for title, edit in sorted(edits, key=lambda one: (one[1].span.start, one[1].span.end)):
        old = before[edit.span.start : edit.span.end]
        if old != edit.replacement:
            changes.append(replace(_change(after, edit.span.start + grown, old, edit.replacement), title=title))
        grown += len(edit.replacement) - len(old)
    return tuple(changes)


def between(before: bytes | None, after: bytes, parse: Parse) -> tuple[Change, ...]:
    """Return the changes that lead from one content to another; `before` is None where there was no file.

    Where both have as many lines, line by line; else as one, from the first byte that differs to the last.
    """
    if before is None:
        return (_change(after, MADE, b"", after),)
    entries = parse(after).entries
    return tuple(_titled(_change(after, *raw), entries) for raw in _raw_changes(before, after))


def moved(before: bytes | None, after: bytes, entry: Entry, parse: Parse) -> tuple[Change, ...]:
    """Return the change that brought an entry's whole block, or took it away (then `entry` is that of `before`)."""
    if before is None:
        return (replace(_change(after, MADE, b"", after), title=entry.norm, above=""),)
    ((offset, old, new),) = _whole_change(before, after)
    if len(after) > len(before):
        return (replace(_change(after, offset, old, new), title=entry.norm, above=""),)
    above = [one for one in parse(before).entries if one.block.end <= entry.block.start]
    within = above[-1].norm if above and above[-1].section == entry.section else ""
    block = Span(entry.block.start, entry.block.end)
    cut = _change(after, block.start, before[block.start : block.end], b"")
    return (replace(cut, title=entry.norm, above=within, section=entry.section),)


def revert(data: bytes, changes: Sequence[Change], parse: Parse, where: str) -> bytes:
    """Return `data` with the changes taken back; every other byte stays.

    Args:
        data: the file as it stands.
        changes: of one write to it.
        parse: reads the file with the types and the marker in force.
        where: the file's name, for the message.

    Raises:
        Refused: bytes that the write left there have changed since, or cannot be told from others.
    """
    entries = parse(data).entries
    edits: list[Edit] = []
    for change in changes:
        at = _place(data, change, entries)
        if at is None and change.above is not None and not change.new:
            at = _gap(data, change, entries)
        if at is None and change.above is not None and not change.new and len(changes) == 1:
            return insert(data, change.old, change.section)
        if at is None:
            what = f"what was written about '{change.title}' has changed since" if change.title else "it changed since"
            raise Refused(what, where=where, hint="nothing was undone; edit the file by hand")
        edits.append(_taken_back(data, change, at, parse))
    try:
        return apply(data, edits)
    except ValueError as error:
        raise Refused("what was written there has changed since", where=where, hint="edit it by hand") from error


def _taken_back(data: bytes, change: Change, at: int, parse: Parse) -> Edit:
    """Return the edit that takes a change back: of a block that came under headings of its own, if need be only it.

    The headings stay if anything else came under them since.
    """
    end = at + len(change.new)
    whole = Edit(Span(at, end), change.old)
    if change.above is None or not parse(change.new).outline.headings:
        return whole
    entries = parse(data).entries
    own = [one.block for one in entries if at <= one.block.start and one.block.end <= end]
    others = [(one.norm, one.section) for one in entries if one.block not in own]
    left = [(one.norm, one.section) for one in parse(apply(data, [whole])).entries]
    if len(own) != 1 or (others == left and _HEADING.match(data, end)):
        return whole
    return Edit(own[0], b"")


def _change(after: bytes, offset: int, old: bytes, new: bytes) -> Change:
    start = max(offset, 0)
    end = start + len(new)
    return Change(offset, old, new, after[max(start - CONTEXT_BYTES, 0) : start], after[end : end + CONTEXT_BYTES])


def _titled(change: Change, entries: Sequence[Entry]) -> Change:
    at = bisect_right(entries, change.offset, key=lambda entry: entry.block.start) - 1
    end = change.offset + len(change.new)
    return replace(change, title=entries[at].norm) if at >= 0 and end <= entries[at].block.end else change


def _raw_changes(before: bytes, after: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    old, new = before.split(b"\n"), after.split(b"\n")
    if len(old) != len(new):
        yield from _whole_change(before, after)
        return
    offset = 0
    for was, now in zip(old, new, strict=True):
        if was != now:
            start = _common(was, now)
            end = _common(was[start:][::-1], now[start:][::-1])
            yield offset + start, was[start : len(was) - end], now[start : len(now) - end]
        offset += len(now) + 1


def _whole_change(before: bytes, after: bytes) -> list[tuple[int, bytes, bytes]]:
    if before == after:
        return []
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return [(start, before[start : len(before) - end], after[start : len(after) - end])]


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning, halving: far quicker than byte by byte."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _place(data: bytes, change: Change, entries: Sequence[Entry]) -> int | None:
    """Return where the bytes of a change stand now; None if they do not, or may be any of several."""
    region = _region(data, change, entries)
    if region is None:
        return None
    framed = change.left + change.new + change.right
    exact = change.offset - len(change.left)
    if exact >= 0 and data.startswith(framed, exact) and region.start <= change.offset <= region.end:
        return change.offset
    found = [at + len(change.left) for at in _occurrences(data, framed)]
    inside = [at for at in found if region.start <= at and at + len(change.new) <= region.end]
    if len(inside) == 1 and framed:
        return inside[0]
    if inside or not change.new:
        return None
    alone = list(_occurrences(data[region.start : region.end], change.new))
    return region.start + alone[0] if len(alone) == 1 else None


def _region(data: bytes, change: Change, entries: Sequence[Entry]) -> Span | None:
    """Return where to look: from the entry to the next one, all for what is no part of one; None if it is gone."""
    if change.above is not None or not change.title:
        return Span(0, len(data))
    ends = [entry.block.start for entry in entries[1:]] + [len(data)]
    found = [
        Span(entry.block.start, end) for entry, end in zip(entries, ends, strict=False) if entry.norm == change.title
    ]
    if len(found) == 1:
        return found[0]
    return next((region for region in found if region.start <= change.offset < region.end), None)


def _occurrences(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _gap(data: bytes, change: Change, entries: Sequence[Entry]) -> int | None:
    """Return where a block that was cut out goes when its surroundings have changed: after the entry it followed."""
    followed = [one for one in entries if one.norm == change.above and one.section == change.section]
    at = followed[0].block.end if len(followed) == 1 else None
    return at if at is not None and data[:at].endswith(b"\n") else None
