"""The text a matcher looks through: its normal form, and the way back to the words as they were written.

A long text is normalised in parts, cut before characters that begin anew: neither white space nor dropped, and never
composed with what stands before them. The joined parts equal the normal form of the whole, and no single step holds the
interpreter for long. The way back narrows the part of an offset until a few characters are left, since mapping each
character costs up to a hundred times as much as normalising it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from kbd.core.normal import normalise, normalise_mapped

PART_CHARS = 1024
LEAF_CHARS = 32
# ASCII but space, asterisk and backtick; Greek and Cyrillic letters, kana, ideographs, Hangul syllables.
_SEAM = re.compile(
    r"[!-)+-_a-~\u0370-\u0482\u048a-\u052f\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]"
)
_DROPPED = "`*\u1fef"


class Haystack:
    """A text with its normal form. Not for use by several threads at once.

    Attributes:
        text: as written.
        norm: equal to `normalise(text)`.
    """

    __slots__ = ("_leaf", "_norm_starts", "_text_starts", "norm", "text")

    def __init__(self, text: str) -> None:
        """Normalise `text`; linear in its length."""
        self.text = text
        self._text_starts = _part_starts(text)
        self._norm_starts = [0]
        self._leaf: tuple[int, list[int]] = (0, [])
        norms: list[str] = []
        for start, end in zip(self._text_starts, [*self._text_starts[1:], len(text)], strict=True):
            norms.append(self._normalised(start, end))
            self._norm_starts.append(self._norm_starts[-1] + len(norms[-1]))
        self.norm = "".join(norms)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of `text`, end exclusive, that became `norm[start:end]` (not empty).

        White space and dropped markup at the edges are left out; marks that composed with the last character are in.
        """
        first, last = self._index(start), self._index(end - 1)
        stop = self._index(end) if end < len(self.norm) else len(self.text)
        while stop > last + 1 and (self.text[stop - 1] in _DROPPED or self.text[stop - 1].isspace()):
            stop -= 1
        return first, max(stop, last + 1)

    def lengths_before(self, offsets: Iterable[int]) -> Iterator[int]:
        """Yield for each of these ascending offsets in `text` how many characters of `norm` came from before it."""
        part, low = -1, 0
        origins: list[int] = []
        for offset in offsets:
            at = bisect_right(self._text_starts, offset) - 1
            if at != part:
                part, low = at, self._text_starts[at]
                high = self._part_end(at)
                origins = normalise_mapped(self.text[low:high] + self._sentinel(high))[1]
            yield self._norm_starts[at] + bisect_left(origins, offset - low)

    def _part_end(self, part: int) -> int:
        return self._text_starts[part + 1] if part + 1 < len(self._text_starts) else len(self.text)

    def _index(self, at: int) -> int:
        """Return the index in `text` of the character that `norm[at]` came from."""
        known, origins = self._leaf
        if known <= at < known + len(origins):
            return origins[at - known]
        # An empty part shares its start with the next one: the last of equal starts is the one that holds `at`.
        part = bisect_right(self._norm_starts, at) - 1
        low, known = self._text_starts[part], self._norm_starts[part]
        high = self._part_end(part)
        size = self._norm_starts[part + 1] - known
        # ASCII never grows: where nothing was lost, each character stands for itself.
        while size != high - low or not self.text[low:high].isascii():
            # Aim a little before the place by proportion, then a little after it: two steps instead of five halvings.
            aim = low + (at - known) * (high - low) // size
            cut = aim - LEAF_CHARS // 2 if aim - low > LEAF_CHARS else aim + LEAF_CHARS // 2
            seam = _SEAM.search(self.text, cut, high) if high - low > LEAF_CHARS else None
            if seam is None:
                return self._map_leaf(low, high, known, at)
            left = len(self._normalised(low, seam.start()))
            if at < known + left:
                high, size = seam.start(), left
            else:
                low, known, size = seam.start(), known + left, size - left
        return low + at - known

    def _map_leaf(self, low: int, high: int, known: int, at: int) -> int:
        origins = normalise_mapped(self.text[low:high] + self._sentinel(high))[1]
        self._leaf = known, [low + origin for origin in origins]
        return self._leaf[1][at - known]

    def _normalised(self, start: int, end: int) -> str:
        """Return the share of `norm` of `text[start:end]`; both are seams or the ends of the text."""
        sentinel = self._sentinel(end)
        norm = normalise(self.text[start:end] + sentinel)
        return norm[: len(norm) - len(sentinel)]

    def _sentinel(self, end: int) -> str:
        """Return what keeps white space before a seam from being stripped: the seam is not the end of the text."""
        return "x" if end < len(self.text) else ""


def stands_alone(text: str, start: int, end: int) -> bool:
    """Say whether `text[start:end]` (not empty) has a word boundary on both sides.

    A boundary fails only between two word characters (letter, digit, underscore, combining mark) of which neither is
    CJK: unlike `\\b`, it holds around `.env` and `C++`, and inside running Chinese text.
    """
    return not (
        (start > 0 and _one_word(text[start - 1], text[start]))
        or (end < len(text) and _one_word(text[end - 1], text[end]))
    )


def _one_word(left: str, right: str) -> bool:
    return _is_word(left) and _is_word(right) and not _is_cjk(left) and not _is_cjk(right)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _is_cjk(char: str) -> bool:
    """Say whether `char` lies in a block of Chinese, Japanese or Korean script (Unicode 15 block names)."""
    return (
        "\u2e80" <= char <= "\u9fff"  # radicals, kana, bopomofo, compatibility, unified ideographs and extension A
        or "\uac00" <= char <= "\ud7ff"  # Hangul syllables and Jamo Extended-B
        or "\u1100" <= char <= "\u11ff"  # Hangul Jamo
        or "\ua960" <= char <= "\ua97f"  # Hangul Jamo Extended-A
        or "\uf900" <= char <= "\ufaff"  # compatibility ideographs
        or "\uff66" <= char <= "\uffdc"  # half-width katakana and Hangul
        or "\U0001aff0" <= char <= "\U0001b16f"  # kana extensions and supplement
        or "\U00020000" <= char <= "\U0003ffff"  # the ideographic planes
    )


def _part_starts(text: str) -> list[int]:
    starts = [0]
    while seam := _SEAM.search(text, starts[-1] + PART_CHARS):
        starts.append(seam.start())
    return starts
