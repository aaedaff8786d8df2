"""Properties: the engine says what the definition says, on texts built from the titles' own pieces."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kbd.core.haystack as haystack_module
import kbd.core.match as match_module
from kbd.core.haystack import Haystack, stands_alone
from kbd.core.match import Matcher, Pattern, PatternKind
from kbd.core.normal import normalise, normalise_mapped
from tests.core.match_oracle import expected, has_boundaries

SYLLABLES = [
    *(
        "a",
        "b",
        "ab",
        "aa",
        "cache",
        "lock",
        "_",
        "7",
        " ",
        "  ",
        "\n",
        "-",
        "=",
        "==",
        ".",
        "+",
        "(",
        "'",
        "\x00",
        "K",
    ),
    *(
        "错误",
        "缓",
        "が",
        "か\u3099",
        "각",
        "é",
        "e\u0301",
        "\u0301",
        "İ",
        "Σ",
        "ß",
        "\u212a",
        "’",
        "—",
        "\u00a0",
        "\u200b",
    ),
    *("**", "`", "𝒳", "𠀀", "😀", "\ufe0f", "\u0338", "\ud800", "ＡＢ", "½", "\u1fef", "\u3000", "ᄀ", "ᅡ"),
]
IDENTS = ["KD07", "PIT012", "AB12"]
HANDLES = ["k-7fq2mz", "k-000000"]
pieces = st.lists(st.sampled_from(SYLLABLES), min_size=1, max_size=14).map("".join)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Pattern], str]:
    """Draw patterns, and a text of their whole and broken pieces with noise between."""
    titles = draw(st.lists(pieces, min_size=1, max_size=5))
    for title in list(titles):
        if draw(st.booleans()):
            cut = draw(st.integers(0, len(title)))
            titles.append(draw(st.sampled_from([title[cut:], title[:cut], title + titles[0]])))
    literals = draw(st.lists(st.sampled_from(IDENTS), max_size=2)) + draw(
        st.lists(st.sampled_from(HANDLES), max_size=1)
    )
    kinds = {**dict.fromkeys(IDENTS, PatternKind.IDENT), **dict.fromkeys(HANDLES, PatternKind.HANDLE)}
    patterns = [Pattern(normalise(title), PatternKind.TITLE, (n,)) for n, title in enumerate(titles)]
    patterns += [Pattern(text, kinds[text], (100 + n,)) for n, text in enumerate(literals)]
    parts = st.one_of(
        st.sampled_from(titles),
        st.sampled_from(titles).map(str.upper),
        st.sampled_from(titles).map(lambda title: title[:-1]),
        st.sampled_from(titles).map(lambda title: title.replace(" ", "\n   ")),
        st.sampled_from([*IDENTS, *HANDLES, "kd07", "[k-7fq2mz]", "[K-7FQ2MZ]", "[k-000000", "**KD07**", "K*D07"]),
        pieces,
    )
    return patterns, "".join(draw(st.lists(parts, max_size=12)))


def found(matcher: Matcher, text: str) -> set[tuple[int, int, int]]:
    return {(match.norm_start, match.norm_end, match.pattern) for match in matcher.find(text)}


def check(patterns: Sequence[Pattern], text: str) -> None:
    matcher = Matcher(patterns)
    matches = matcher.find(text)
    assert found(matcher, text) == expected(matcher.patterns, text)
    assert len(set(matches)) == len(matches)
    assert list(matches) == sorted(matches, key=lambda match: (match.start, match.end, match.pattern))
    assert matcher.could_match(text) or not matches


@settings(max_examples=600, deadline=None)
@given(worlds())
@example(
    (
        [Pattern("==========", PatternKind.TITLE, (1,)), Pattern("xx ==========", PatternKind.TITLE, (2,))],
        "xx ===========",
    )
)
@example(
    ([Pattern("ab cd ef", PatternKind.TITLE, (1,)), Pattern("x ab cd ef", PatternKind.TITLE, (2,))], "ax ab cd ef")
)
def test_engine_equals_the_definition(world: tuple[list[Pattern], str]) -> None:
    check(*world)


@settings(max_examples=300, deadline=None)
@given(worlds(), st.integers(1, 40), st.integers(1, 12), st.integers(1, 6))
def test_cutting_texts_into_parts_and_windows_changes_nothing(
    world: tuple[list[Pattern], str], window: int, part: int, repeats: int
) -> None:
    patterns, text = world
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match_module, "WINDOW_CHARS", window)
        patch.setattr(haystack_module, "PART_CHARS", part)
        patch.setattr(haystack_module, "LEAF_CHARS", 2)
        check(patterns, text * repeats)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6), st.lists(st.integers(0, 40), max_size=8), st.integers(1, 9)
)
def test_runs_of_one_character_give_what_the_definition_gives(lengths: list[int], runs: list[int], window: int) -> None:
    patterns = [Pattern("=" * (7 + length), PatternKind.TITLE, (length,)) for length in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match_module, "WINDOW_CHARS", window)
        check(patterns, "x".join("=" * run for run in runs))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(SYLLABLES), st.text(max_size=3))).map("".join), st.integers(1, 9))
def test_normalised_parts_equal_the_whole_and_lead_back_to_their_words(text: str, part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(haystack_module, "PART_CHARS", part)
        patch.setattr(haystack_module, "LEAF_CHARS", 2)
        haystack = Haystack(text)
        norm, origins = normalise_mapped(text)
        assert haystack.norm == norm == normalise(text)
        for at in [*range(len(norm)), *range(len(norm) - 1, -1, -1)]:
            start, end = haystack.origin(at, at + 1)
            assert start == origins[at]
            assert start < end <= len(text)


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_original_spans_hold_the_words_that_match(world: tuple[list[Pattern], str]) -> None:
    matcher = Matcher(world[0])
    for match in matcher.find(world[1]):
        words = world[1][match.start : match.end]
        wanted = matcher.patterns[match.pattern]
        if wanted.kind is PatternKind.TITLE:
            assert wanted.text in normalise(words) or _cut_inside_a_cluster(world[1], match.start, match.end)
        else:
            assert wanted.text in words


def _cut_inside_a_cluster(text: str, start: int, end: int) -> bool:
    """A span that begins or ends amid marks or beside a character that lower-cases to two has no words of its own."""
    edge = text[max(0, start - 1) : start + 1] + text[end - 1 : end + 1]
    return any(not char.isascii() for char in edge)


@settings(max_examples=500, deadline=None)
@given(st.text(min_size=1, max_size=4), st.text(max_size=1), st.text(max_size=1))
def test_boundaries_fail_only_between_two_word_characters_that_are_not_cjk(title: str, left: str, right: str) -> None:
    text = left + title + right
    span = (len(left), len(left) + len(title))
    assert stands_alone(text, *span) == has_boundaries(text, *span)


def test_one_matcher_serves_several_threads() -> None:
    patterns = [Pattern(f"lesson number {n} of the pile", PatternKind.TITLE, (n,)) for n in range(300)]
    matcher = Matcher(patterns)
    texts = [f"as lesson number {n} of the pile says, " * 50 for n in range(40)]
    alone = [matcher.find(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(matcher.find, texts)) == alone
    assert [len(matches) for matches in alone] == [50] * 40
