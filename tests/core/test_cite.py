"""Which occurrences are citations: echo by line, listing by message or by run of lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kbd.core.cite import Known, MatchPolicy, Mention, is_listing, judge_lines, read_block
from kbd.core.match import Matcher, Pattern, PatternKind
from kbd.core.model import Line
from kbd.core.normal import normalise

TITLES = {
    "Backoff must be capped": "thirty seconds are enough for every client we have",
    "Store timestamps in UTC": "why it matters",
    "Lock fd leaked on exception path": "",
}
MATCHER = Matcher([Pattern(normalise(t), PatternKind.TITLE, (i,)) for i, t in enumerate(TITLES)])
LEXICON = {i: Known(i, 1, normalise(own)) for i, own in enumerate(TITLES.values())}


def named(text: str) -> list[int]:
    reading = read_block(text, MATCHER, LEXICON)
    return [] if reading is None else sorted({m.entry for m in reading.mentions})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I follow Backoff must be capped here", [0]),
        ("Backoff must be capped — thirty seconds are enough, they say", []),
        ("Backoff must be capped: thirty seconds are", [0]),  # 18 characters of its own
        ("Backoff must be capped: thirty seconds are e", []),  # 20
        ("**Backoff must be capped** - - thirty seconds are enough", []),
        ("Store timestamps in UTC: why it matters", []),
        ("Store timestamps in UTC: why it matters (2026-05-19)", []),
        ("Store timestamps in UTC: why it mattersX", [1]),
        ("Store timestamps in UTC, why it matters", [1]),
        ("- [guideline] **Store timestamps in UTC** — applied in net.py", []),
        ("- **Store timestamps in UTC** — applied in net.py", [1]),
        ("Store timestamps in UTC <!-- ref:3 | last:none | decay:active -->", []),
        ("Lock fd leaked on exception path", [2]),
        ("k-aygzpx  active  3  Store timestamps in UTC", []),
        ("per [k-aygzpx] Store timestamps in UTC", [1]),
        ("Store timestamps in UTC: why it matters\nbut I apply Store timestamps in UTC", [1]),
        ("Store timestamps\nin UTC: why it matters", []),
        ("<!-- kbd:context -->\nBackoff must be capped\n<!-- /kbd -->\nStore timestamps in UTC", [1]),
    ],
)
def test_a_line_that_repeats_an_entry_is_an_echo(text: str, expected: list[int]) -> None:
    assert named(text) == expected


def mention(entry: int, own: int = 0, span: int = 20) -> Mention:
    return Mention(entry, entry, 1, 0, 1, own, span, b"")


@pytest.mark.parametrize(
    ("entries", "live", "listing"),
    [(9, 9, False), (10, 50, True), (10, 51, False), (11, 51, True), (10, 10, True)],
)
def test_ten_entries_and_a_fifth_of_the_base_make_a_listing(entries: int, live: int, listing: bool) -> None:
    assert is_listing([mention(i) for i in range(entries)], 10_000, live, MatchPolicy()) is listing


@pytest.mark.parametrize(
    ("entries", "own", "length", "listing"),
    [(5, 8, 160, True), (5, 8, 167, False), (4, 8, 100, False), (5, 7, 100, False)],
)
def test_five_entries_with_their_own_text_make_a_listing_if_they_fill_it(
    entries: int, own: int, length: int, listing: bool
) -> None:
    assert is_listing([mention(i, own) for i in range(entries)], length, 1000, MatchPolicy()) is listing


def test_the_same_entry_named_often_is_no_listing() -> None:
    assert not is_listing([mention(1, 9)] * 12, 100, 12, MatchPolicy())


def listed_lines(text: str) -> list[bool]:
    """Judge a paragraph whose policy takes two entries for a listing, line by line of its mentions."""
    starts = [0]
    for line in text.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    lines = [Line(start, datetime(2026, 6, 10, tzinfo=UTC), observed=True, offset=start) for start in starts]
    reading = read_block(text, MATCHER, LEXICON)
    assert reading is not None
    judged = judge_lines(text, reading, lines, {1: 3}, MatchPolicy(listing_min=2))
    return [m.listed for m in judged.mentions]


def test_a_log_is_judged_by_runs_of_led_lines() -> None:
    assert listed_lines("- Backoff must be capped\n- Store timestamps in UTC") == [True, True]
    assert listed_lines("1. Backoff must be capped\n2) Store timestamps in UTC") == [True, True]
    assert listed_lines("I use Backoff must be capped\nand Store timestamps in UTC") == [False, False]
    assert listed_lines("- Backoff must be capped\nthen\n- Store timestamps in UTC") == [False, False]
    assert listed_lines("Backoff must be capped\nStore timestamps in UTC") == [True, True]
    assert listed_lines("we use Backoff must be capped and Store timestamps in UTC") == [True, True]
