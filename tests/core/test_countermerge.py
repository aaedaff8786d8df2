"""Counters of three versions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.countermerge import Versions, aligned
from kbd.core.entries import parse

NUMBERS = st.integers(0, 99)
DAYS = st.sampled_from(["none", "2026-01-01", "2026-02-03", "2025-12-31"])
STATES = st.sampled_from(["active", "dormant"])


def block(ref: int, last: str, state: str) -> bytes:
    return f"- **A title of some length** — x\n  <!-- ref:{ref} | last:{last} | decay:{state} -->\n".encode()


@given(NUMBERS, NUMBERS, NUMBERS, st.tuples(DAYS, DAYS, DAYS), st.tuples(STATES, STATES, STATES))
def test_counters_merge_as_a_plus_b_less_o(
    o: int, a: int, b: int, days: tuple[str, str, str], states: tuple[str, str, str]
) -> None:
    pieces = [block(*one) for one in zip((o, a, b), days, states, strict=True)]
    even = aligned(Versions(*pieces), parse)
    assert even.common == even.ours == even.theirs
    meta = parse(even.ours).entries[0].meta
    assert meta is not None
    assert meta.ref == max(a + b - o, 0)
    assert str(meta.last).lower() == max((day for day in days if day != "none"), default="none")
    swapped = aligned(Versions(pieces[0], pieces[2], pieces[1]), parse)
    assert swapped.ours == even.ours


def test_missing_comment_says_nothing() -> None:
    bare = b"- **A title of some length** \xe2\x80\x94 x\n"
    even = aligned(Versions(block(5, "none", "active"), bare, block(7, "none", "active")), parse)
    assert even.ours == even.theirs == block(7, "none", "active")
    untouched = Versions(bare, bare, bare)
    assert aligned(untouched, parse) == untouched


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_versions_without_comments_stay_as_they_are(common: bytes, ours: bytes, theirs: bytes) -> None:
    versions = Versions(common, ours, theirs)
    assert aligned(versions, parse) == versions
