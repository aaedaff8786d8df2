"""The metadata comment: read in any spelling, merged, written in one that nothing can break out of."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.metadata import merge, parse_comment, render
from kbd.core.model import Metadata, State

DAY = date(2026, 5, 18)
CANONICAL = Metadata(3, DAY, True, State.ACTIVE)


def meaning(text: str) -> Metadata:
    comment = parse_comment(text)
    assert comment is not None
    return comment.meta


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("<!-- ref:3 | last:2026-05-18 | decay:active -->", CANONICAL),
        ("  <!--ref: 3|last :2026-05-18 |decay:  Active-->\t", CANONICAL),
        ("<!-- DECAY:ACTIVE | Ref:3 | Last:2026-05-18 | -->", CANONICAL),
        ('<!-- ref:3 | last:"2026-05-18T10:00:00" | decay:active -->', CANONICAL),
        ("<!-- ref:3 | last:'2026-05-18' | decay:active -->", CANONICAL),
        ("<!-- ref:3 | last:2026-05-18 23:59 | decay:active -->", CANONICAL),
        (
            "<!-- ref:3 | last:2026-05-18T23:00:00-05:00 | decay:active -->",
            Metadata(3, date(2026, 5, 19), True, State.ACTIVE),
        ),
        ("<!-- ref:0 | last:none | decay:dormant -->", Metadata(0, None, True, State.DORMANT)),
        ("<!-- ref:4 -->", Metadata(4, None, False, None)),
        ("<!-- last:none -->", Metadata(None, None, True, None)),
        ("<!-- ref:1 | decay:archived -->", Metadata(1, None, False, State.ARCHIVED)),
        (
            "<!-- sessions:4 | ref:1 | superseded_by:Use a: b | last:none | x-y: z -->",
            Metadata(1, None, True, None, (("sessions", "4"), ("superseded_by", "Use a: b"), ("x-y", "z"))),
        ),
        ("<!-- ref:1 | last:none | evergreen -->", Metadata(1, None, True, None, (("", "evergreen"),))),
    ],
)
def test_old_spellings_parse(text: str, meta: Metadata) -> None:
    assert meaning(text) == meta


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!---->",
        "<!-->",
        "<!-- -->",
        "<!-- | -->",
        "ref:3 | last:none",
        "<!-- ref:3 | last:none",
        "<!-- a note -->",
        "<!-- maturity: seed | used: 3 -->",
        "<!-- maturity: seed | last: 2026-05-18 | ref: 3 -->",
        "<!-- ref: see docs -->",
        "<!-- ref: docs/a.md | note: read this -->",
        "<!-- last: paragraph -->",
        "<!-- sessions:4 | source:manual -->",
        "<!-- MEMORY_INDEX_START -->",
        "<!-- decay: of the tooth | maybe -->",
        "<!-- ref:3 | and some prose -->",
    ],
)
def test_other_comments_are_none(text: str) -> None:
    assert parse_comment(text) is None


@pytest.mark.parametrize(
    ("pair", "kept"),
    [
        ("ref:-1", None),
        ("ref:many", None),
        ("ref:", None),
        ("ref:\u0663", None),
        ("ref:99999999999", None),
        ("ref:1010", 1010),
        ("last:yesterday", None),
        ("last:2026-02-30", None),
        ("last:0001-01-01T00:00+05:00", None),
        ("last:", None),
        ("decay:zombie", None),
    ],
)
def test_odd_values_are_missing_and_reported(pair: str, kept: int | None) -> None:
    others = [other for other in ("ref:2", "last:2026-05-18", "decay:active") if other[:3] != pair[:3]]
    comment = parse_comment(f"<!-- {' | '.join([pair, *others])} -->")
    assert comment is not None
    assert comment.faults == (pair,)
    assert pair[:3] != "ref" or comment.meta.ref == kept
    assert pair[:3] != "las" or (comment.meta.last, comment.meta.last_given) == (None, False)
    assert pair[:3] != "dec" or comment.meta.state is None


def test_a_real_day_beats_none_in_either_order() -> None:
    real = Metadata(1, DAY, True, State.DORMANT)
    none = Metadata(9, None, True, State.ACTIVE)
    assert merge([real, none]) == merge([none, real]) == real


def test_the_newer_day_wins_then_the_higher_count() -> None:
    old, low, high = (
        Metadata(9, date(2026, 1, 1), True, None),
        Metadata(2, DAY, True, None),
        Metadata(5, DAY, True, None),
    )
    assert merge([old, low]).ref == 2
    assert merge([high, old, low]).ref == 5


def test_the_winner_is_completed_by_the_next() -> None:
    assert merge([Metadata(None, DAY, True, None), Metadata(4, None, True, State.DORMANT)]) == Metadata(
        4, DAY, True, State.DORMANT
    )


def test_further_keys_are_merged_in_order_with_the_winners_value() -> None:
    old = Metadata(1, None, True, None, (("a", "1"), ("b", "1"), ("", "word")))
    new = Metadata(1, DAY, True, None, (("c", "2"), ("b", "2"), ("", "word")))
    assert merge([old, new]).extra == (("a", "1"), ("b", "2"), ("", "word"), ("c", "2"))


def test_one_comment_stands_as_it_is() -> None:
    meta = meaning("<!-- ref:1 | last:none | k:1 | k:2 -->")
    assert merge([meta]) is meta
    assert meta.extra == (("k", "1"), ("k", "2"))


def test_comment_is_written_in_one_spelling() -> None:
    assert render(3, date(2026, 5, 19), State.ACTIVE, [("sessions", "4")]) == (
        "<!-- ref:3 | last:2026-05-19 | decay:active | sessions:4 -->"
    )
    assert render(0, None, State.DORMANT) == "<!-- ref:0 | last:none | decay:dormant -->"


values = st.text(alphabet=st.sampled_from("ab-><!|:\n\r\u2028\x00 \t\udc80\ud800"), max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["k", "sessions", "", "a-"]), values), max_size=4))
def test_no_value_can_break_out_of_the_comment(extra: list[tuple[str, str]]) -> None:
    text = render(3, DAY, State.ACTIVE, extra)
    assert text.index("-->") == len(text) - 3
    assert "--!>" not in text
    assert len(text.encode("utf-8", "surrogateescape").splitlines()) == 1
    assert text.count("|") == 2 + len(extra)
    meta = meaning(text)
    assert (meta.ref, meta.last, meta.state) == (3, DAY, State.ACTIVE)


simple = st.text(alphabet="abc:-_ 12\u4e0d", min_size=1, max_size=9).map(str.strip).filter(bool)
extras = st.lists(st.tuples(st.sampled_from(["sessions", "source", "k_1"]), simple), max_size=4).map(tuple)
metas = st.builds(Metadata, st.integers(0, 999), st.none() | st.dates(), st.just(True), st.sampled_from(State), extras)


@given(metas)
def test_reading_what_was_written_gives_the_same(meta: Metadata) -> None:
    assert meta.ref is not None
    assert meta.state is not None
    text = render(meta.ref, meta.last, meta.state, meta.extra)
    assert meaning(text) == meta
    assert render(meta.ref, meta.last, meta.state, meaning(text).extra) == text


@given(st.lists(metas, min_size=1, max_size=4))
def test_merging_keeps_every_key_and_is_settled(stacked: list[Metadata]) -> None:
    merged = merge(stacked)
    assert {key for key, _ in merged.extra} == {key for meta in stacked for key, _ in meta.extra}
    assert merge([merged]) == merged
    assert merged.last == max((meta.last for meta in stacked if meta.last), default=None)


@given(st.text(alphabet=st.sampled_from("<!->|:ref lastdecay0129 \n"), max_size=60))
def test_any_text_is_read_without_failing(text: str) -> None:
    comment = parse_comment(f"<!--{text}-->")
    assert comment is None or comment.meta is not None
