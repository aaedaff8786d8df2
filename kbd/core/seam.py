"""Titles that are split over two fragments of one message's text."""

from __future__ import annotations

from dataclasses import replace

from kbd.core.cite import Lexicon, Mention, Reading, digest, mentions_of
from kbd.core.match import Matcher
from kbd.core.normal import normalise

SEAM_CHARS = 512
"""Characters looked at on each side of where two fragments meet."""


def read_seam(before: str, text: str, matcher: Matcher, lexicon: Lexicon) -> tuple[Mention, ...]:
    """Return what is named across the seam of two fragments of one message, as mentions at the start of `text`."""
    tail = before[-SEAM_CHARS:]
    joined = tail + text[:SEAM_CHARS]
    matches = [m for m in matcher.find(joined) if m.start < len(tail) < m.end]
    across = mentions_of(matches, normalise(joined), matcher, lexicon) if matches else []
    return tuple(replace(mention, start=0, end=mention.end - len(tail)) for mention in across)


def with_seam(text: str, reading: Reading | None, across: tuple[Mention, ...]) -> Reading:
    """Return the reading of a fragment with what it names together with the fragment before it."""
    if reading is not None:
        return replace(reading, mentions=(*across, *reading.mentions))
    norm = normalise(text)
    return Reading(max(len(norm), 1), digest(norm), len(norm), across)
