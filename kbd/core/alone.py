"""An entry read by the lines where it stands, without the rest of its file: one counter of ten thousand is changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from kbd.core.entries import parse
from kbd.core.model import Entry, Span
from kbd.core.textlines import BOM

_BEGINS_ANOTHER = re.compile(rb"[-*+][ \t]|#{1,6}[ \t\r\n]")


def line_starts(data: bytes) -> list[int]:
    """Return where the lines of a file begin, and where the last one ends."""
    start = len(BOM) if data.startswith(BOM) else 0
    starts = list(accumulate((len(line) + 1 for line in data[start:].split(b"\n")), initial=start))
    starts[-1] -= 1
    return starts if starts[-1] > starts[-2] else starts[:-1]


def entry_alone(
    data: bytes, starts: Sequence[int], first: int, last: int, types: frozenset[str], marker: str
) -> Entry | None:
    """Return the entry that stands on these lines (from 1) and nothing else, in terms of the file but its section.

    None if that cannot be told without the rest of the file: there is no such block, something is wrong with it, or
    it leaves a fence or a comment open.
    """
    if not 0 < first <= last < len(starts):
        return None
    start, end = starts[first - 1], starts[last]
    parsed = parse(data[start:end], types, marker)
    if parsed.problems or len(parsed.entries) != 1 or parsed.outline.open_line is not None:
        return None
    (entry,) = parsed.entries
    if entry.block != Span(0, end - start):
        return None
    comments = tuple(Span(span.start + start, span.end + start) for span in entry.comments)
    return replace(entry, line=first, block=Span(start, end), comments=comments)


def another_follows(data: bytes, starts: Sequence[int], last: int) -> bool:
    """Tell whether after a line come only blank ones until an item, a heading or the end: no stray text."""
    for start, end in zip(starts[last:], starts[last + 1 :], strict=False):
        if data[start:end].strip():
            return _BEGINS_ANOTHER.match(data, start, end) is not None
    return True
