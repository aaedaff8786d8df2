"""The way between a text and its normal form."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.haystack import PART_CHARS, Haystack
from kbd.core.normal import normalise_mapped

PIECES = st.sampled_from([" ", "  ", "\n", "a", "E\u0301", "**", "`", "锁", "𝔸", "é", "\u0301", "x" * 300, " y" * 300])
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS, st.lists(st.integers(0, 4 * PART_CHARS), max_size=8))
def test_lengths_before_offsets_are_those_of_the_whole_text_mapped(text: str, numbers: list[int]) -> None:
    origins = normalise_mapped(text)[1]
    offsets = sorted(min(number, len(text)) for number in [*numbers, 0, len(text)])
    assert list(Haystack(text).lengths_before(offsets)) == [bisect_left(origins, offset) for offset in offsets]
