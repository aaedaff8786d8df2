"""The text a matcher looks through: its normal form, and the way back to the words as they were written.

A long text is normalised in parts, cut where no rule of the normal form looks across: between two characters that
are neither white space, dropped, nor able to compose with each other. The joined parts equal the normal form of the
whole, no single step holds the interpreter for long, and the way back is worked out only for parts that have a match.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

from kbd.core.normal import normalise, normalise_mapped

PART_CHARS = 4096
_KEPT_MAPS = 4
# ASCII without space, asterisk and backtick, and the unified ideographs: each a starter that composes with no starter.
_SEAM = re.compile(r"[!-)+-_a-~\u4e00-\u9fff]{2}")
_DROPPED = "`*\u1fef"


class Haystack:
    """A text with its normal form.

    Attributes:
        text: as written.
        norm: equal to `normalise(text)`.
    """

    __slots__ = ("_maps", "_norm_starts", "_text_starts", "norm", "text")

    def __init__(self, text: str) -> None:
        """Normalise `text`; linear in its length."""
        self.text = text
        self._text_starts = _part_starts(text)
        self._norm_starts: list[int] = []
        self._maps: dict[int, list[int]] = {}
        norms: list[str] = []
        length = 0
        for start, end in zip(self._text_starts, [*self._text_starts[1:], len(text)], strict=True):
            norm = normalise(text[start:end])
            self._norm_starts.append(length)
            norms.append(norm)
            length += len(norm)
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

    def _index(self, at: int) -> int:
        part = bisect_right(self._norm_starts, at) - 1
        if part not in self._maps:
            if len(self._maps) >= _KEPT_MAPS:
                del self._maps[next(iter(self._maps))]
            self._maps[part] = self._map_part(part)
        return self._text_starts[part] + self._maps[part][at - self._norm_starts[part]]

    def _map_part(self, part: int) -> list[int]:
        end = self._text_starts[part + 1] if part + 1 < len(self._text_starts) else len(self.text)
        return normalise_mapped(self.text[self._text_starts[part] : end])[1]


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
        starts.append(seam.start() + 1)
    return starts
