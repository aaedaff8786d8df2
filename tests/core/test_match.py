"""Rows of (name, patterns, text, matches), each named by what it is about; then the limits on hostile input."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

import kbd.core.match as match_module
from kbd.core.match import Match, Matcher, Pattern, PatternKind, is_matchable
from kbd.core.normal import normalise

TITLE, IDENT, HANDLE = PatternKind.TITLE, PatternKind.IDENT, PatternKind.HANDLE


class Row(NamedTuple):
    """`patterns`: `#KD07` is an id, `@k-7fq2mz` a handle, all else a title. `words`: matched text, in order."""

    name: str
    patterns: list[str]
    text: str
    words: list[str]


ROWS = [
    # Tiers by width.
    Row("seven wide never matches", ["Builder"], "Builder. (builder)", []),
    Row("eight wide needs boundaries", ["Exactly8"], "Exactly8x xExactly8 (Exactly8)", ["Exactly8"]),
    Row("twenty wide needs boundaries", ["twenty wide title ab"], "xtwenty wide title ab", []),
    Row(
        "twenty wide between punctuation",
        ["twenty wide title ab"],
        "and twenty wide title ab.",
        ["twenty wide title ab"],
    ),
    Row(
        "twenty-one wide is a substring",
        ["twenty one wide title"],
        "preTWENTY ONE WIDE TITLEpost",
        ["TWENTY ONE WIDE TITLE"],
    ),
    Row("two ideographs are four wide", ["缓存"], "缓存 缓存", []),
    Row("four ideographs are eight wide", ["数据库锁"], "我们的数据库锁很慢", ["数据库锁"]),
    Row("combining marks add no width", ["a\u0308\u0323b\u0323c\u0323d\u0323e"], "ạ̈ḅc̣ḍe", []),
    # Boundaries.
    Row("inside a longer word", ["Build cache"], "we rebuild caches, the build caches", []),
    Row("underscore joins words", ["Build cache"], "the build cache_v2", []),
    Row("digit joins words", ["Build cache"], "the build cache2", []),
    Row("hyphen parts words", ["Build cache"], "pre-build cache-2", ["build cache"]),
    Row("possessive parts words", ["Build cache"], "the build cache's size", ["build cache"]),
    Row("combining mark joins words", ["Build cache"], "the build cache\u0332 x", []),
    Row("title that begins with a dot", [".env leaked"], "the.env leaked, again", [".env leaked"]),
    Row("title that begins with dashes", ["--force push"], "a --force push did it", ["--force push"]),
    Row("title that ends in signs", ["ABI break in C++"], "an ABI break in C++17 header", ["ABI break in C++"]),
    Row(
        "title that begins with a word and signs",
        ["C++ ABI break"],
        "the C++ ABI break; C++ ABI breaks",
        ["C++ ABI break"],
    ),
    Row("letter before a word edge of it", ["C++ ABI break"], "MSVC++ ABI break", []),
    Row("latin title in running Chinese", ["retry cap"], "我们给retry cap加了上限", ["retry cap"]),
    Row("latin title in running Japanese", ["retry cap"], "このretry capは必要", ["retry cap"]),
    Row("latin title with a Korean particle", ["retry cap"], "retry cap은 필요", ["retry cap"]),
    Row("Chinese title beside latin letters", ["不要信任缓存"], "rule不要信任缓存v2", ["不要信任缓存"]),
    Row("Cyrillic words have boundaries", ["блокировка"], "разблокировка", []),
    Row("Greek final sigma at the end only", ["λόγος λόγος"], "ΛΌΓΟΣ ΛΌΓΟΣ!", ["ΛΌΓΟΣ ΛΌΓΟΣ"]),
    Row("astral letters are letters", ["𝒳-ray cache"], "a𝒳-ray cache", []),
    Row("astral ideograph as a neighbour", ["ray cache"], "𠀀ray cache𠀀", ["ray cache"]),
    Row("emoji is no letter", ["ray cache"], "😀ray cache😀", ["ray cache"]),
    Row("lone surrogate as a neighbour", ["ray cache"], "\ud800ray cache\udfff", ["ray cache"]),
    Row("NUL as a neighbour and inside", ["ray\x00 cache"], "\x00ray\x00 cache\x00", ["ray\x00 cache"]),
    # B22: short words in longer ones; the same words as longer titles, with their neighbours.
    Row("B22 go, CI, her never match", ["go", "CI", "her"], "mongodb CIRCLE here go. (CI) her", []),
    Row("B22 inside words", ["go build", "CI runs on", "her name"], "mongo build, aCI runs onto, other names", []),
    Row("B22 beside punctuation", ["go build", "CI runs on"], "go build. (CI runs on)", ["go build", "CI runs on"]),
    # Normal form.
    Row("case", ["Lock fd leaked"], "LOCK FD LEAKED", ["LOCK FD LEAKED"]),
    Row(
        "split over lines",
        ["Lock fd leaked on exception path"],
        "x lock fd\n   leaked\r\n\ton exception path",
        ["lock fd\n   leaked\r\n\ton exception path"],
    ),
    Row("markup inside", ["Use `subprocess.run` well"], "**use subprocess`.run` well**", ["use subprocess`.run` well"]),
    Row(
        "markup at the edges is not of the words",
        ["Lock fd leaked"],
        "**Lock fd leaked** and `Lock fd leaked`",
        ["Lock fd leaked"] * 2,
    ),
    Row(
        "typographic quote and dash",
        ["Don't trust mtime – compare"],
        "don’t trust mtime - compare",
        ["don’t trust mtime - compare"],
    ),
    Row("decomposed accents", ["Café names"], "the Cafe\u0301 names", ["Cafe\u0301 names"]),
    Row(
        "composing mark after the last letter is of the words",
        ["the old café"],
        "the old cafe\u0301.",
        ["the old cafe\u0301"],
    ),
    Row("composing mark makes another letter", ["the old cafe"], "the old cafe\u0301.", []),
    Row("no-break space", ["Lock fd leaked"], "Lock\u00a0fd\u3000leaked", ["Lock\u00a0fd\u3000leaked"]),
    Row("dotted capital I before", ["Lock fd leaked"], "İİİ Lock fd leaked", ["Lock fd leaked"]),
    Row("dotted capital I inside", ["İstanbul lock"], "an İSTANBUL LOCK", ["İSTANBUL LOCK"]),
    Row("dotted capital I at the end", ["the lock İ"], "the lock İ.", ["the lock İ"]),
    Row("Kelvin sign is the letter k", ["kelvin lock"], "\u212aelvin lock", ["\u212aelvin lock"]),
    # Nesting (B25).
    Row(
        "B25 the longest of nested titles", ["Redis ha", "Redis ha cluster"], "a Redis ha cluster", ["Redis ha cluster"]
    ),
    Row(
        "B25 short one elsewhere counts",
        ["Redis ha", "Redis ha cluster"],
        "Redis ha, Redis ha cluster",
        ["Redis ha", "Redis ha cluster"],
    ),
    Row("nested at the end", ["ha cluster", "Redis ha cluster"], "a Redis ha cluster", ["Redis ha cluster"]),
    Row(
        "nested in the middle",
        ["the lock", "fd of the lock leaked"],
        "fd of the lock leaked",
        ["fd of the lock leaked"],
    ),
    Row("nested three deep", ["the lock", "of the lock", "fd of the lock"], "fd of the lock", ["fd of the lock"]),
    Row(
        "longer one without its boundary hides nothing",
        ["Redis ha", "Redis ha cluster"],
        "Redis ha clusters",
        ["Redis ha"],
    ),
    Row(
        "overlap is no nesting",
        ["lock leaked", "leaked on exit"],
        "lock leaked on exit",
        ["lock leaked", "leaked on exit"],
    ),
    Row(
        "nested at one place, overlapping at the next",
        ["=" * 10, "xx " + "=" * 10],
        "xx " + "=" * 11,
        ["xx " + "=" * 10, "=" * 10],
    ),
    Row("title inside a handle's span", ["-7fq2mz]", "@k-7fq2mz"], "see [k-7fq2mz]", ["[k-7fq2mz]"]),
    Row(
        "id inside a title",
        ["KD07 migration plan", "#KD07"],
        "KD07 migration plan; KD07",
        ["KD07 migration plan", "KD07"],
    ),
    Row("id inside a title that does not stand alone", ["KD07 migration", "#KD07"], "KD07 migrations", ["KD07"]),
    Row("equal spans both match", ["ABCDE123", "#ABCDE123"], "ABCDE123", ["ABCDE123", "ABCDE123"]),
    Row("repeats match each time", ["Lock fd leaked"], "Lock fd leaked Lock fd leaked", ["Lock fd leaked"] * 2),
    # Ids.
    Row("id as a word", ["#KD07"], "see KD07, [KD07] and **KD07**", ["KD07"] * 3),
    Row("id in other case", ["#KD07"], "kd07 Kd07 KD07", ["KD07"]),
    Row("id in a longer word", ["#KD07"], "KD071 XKD07 KD07_x _KD07 KD07a KD07é", []),
    Row("id in running Chinese", ["#KD07"], "按KD07的规则", ["KD07"]),
    Row("id before a hyphen", ["#KD07"], "KD07-follow-up", ["KD07"]),
    Row("id broken by markup is not the word", ["#KD07"], "K*D07 KD`07 KD07", ["KD07"]),
    Row("id in full-width letters", ["#KD07"], "ＫＤ07 \u212aD07", []),
    Row("one id is the beginning of another", ["#PIT01", "#PIT012"], "PIT012 PIT01", ["PIT012", "PIT01"]),
    # Handles.
    Row("handle in brackets", ["@k-7fq2mz"], "as [k-7fq2mz] says", ["[k-7fq2mz]"]),
    Row("handle beside letters", ["@k-7fq2mz"], "as[k-7fq2mz]says", ["[k-7fq2mz]"]),
    Row("handle in markup", ["@k-7fq2mz"], "`[k-7fq2mz]` **[k-7fq2mz]**", ["[k-7fq2mz]"] * 2),
    Row("handle without brackets", ["@k-7fq2mz"], "k-7fq2mz (k-7fq2mz) [k-7fq2mz", []),
    Row("handle in other case or with other dashes", ["@k-7fq2mz"], "[K-7FQ2MZ] [k–7fq2mz] [ k-7fq2mz ]", []),
    Row("long handle", ["@k-7fq2mz", "@k-7fq2mz0000"], "[k-7fq2mz0000]", ["[k-7fq2mz0000]"]),
    # Degenerate sets and texts.
    Row("no patterns", [], "Lock fd leaked", []),
    Row("only patterns that cannot match", ["", "short", "x" * 100_000], "x" * 200_000, []),
    Row("empty text", ["Lock fd leaked"], "", []),
    Row("text of white space and markup", ["Lock fd leaked"], " \n*`* ", []),
    Row("title is the text", ["Lock fd leaked"], "Lock fd leaked", ["Lock fd leaked"]),
]


def pattern(number: int, spelled: str) -> Pattern:
    if spelled.startswith(("#", "@")):
        return Pattern(spelled[1:], IDENT if spelled[0] == "#" else HANDLE, (number,))
    return Pattern(normalise(spelled), TITLE, (number,))


def matcher_of(*spelled: str) -> Matcher:
    return Matcher([pattern(number, text) for number, text in enumerate(spelled)])


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row_matches_as_it_says(row: Row) -> None:
    matcher = matcher_of(*row.patterns)
    matches = matcher.find(row.text)
    assert [row.text[match.start : match.end] for match in matches] == row.words
    assert matcher.could_match(row.text) or not row.words
    norm = normalise(row.text)
    for match in matches:
        found = matcher.patterns[match.pattern]
        assert found.text in norm[match.norm_start : match.norm_end] or found.kind is IDENT


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row_matches_the_same_far_into_a_long_text(row: Row) -> None:
    matcher = matcher_of(*row.patterns)
    before = "Some prose, 一些文字, with no lesson in it. " * 900
    text = f"{before}\n{row.text}\n"
    assert [text[match.start : match.end] for match in matcher.find(text)] == row.words
    assert all(match.start > len(before) for match in matcher.find(text))


def test_titles_that_normalise_alike_are_one_pattern_with_all_refs() -> None:
    matcher = Matcher(
        [
            Pattern("lock fd leaked", TITLE, (7,)),
            Pattern("Lock  `fd` leaked", TITLE, (9, 7)),
            Pattern("KD07", IDENT, (7,)),
            Pattern("KD07", IDENT, (8,)),
            Pattern("lock fd leaked", TITLE, (3,)),
        ]
    )
    assert matcher.patterns == (Pattern("lock fd leaked", TITLE, (7, 9, 3)), Pattern("KD07", IDENT, (7, 8)))
    assert matcher.find("Lock fd leaked") == (Match(0, 14, 0, 0, 14),)


def test_unmatchable_patterns_keep_their_index() -> None:
    matcher = matcher_of("short", "Lock fd leaked")
    assert [found.text for found in matcher.patterns] == ["short", "lock fd leaked"]
    assert [match.pattern for match in matcher.find("short lock fd leaked")] == [1]


def test_offsets_differ_where_the_normal_form_is_shorter() -> None:
    text = "**A**  `b`\n\nİ Lock  fd leaked"
    (match,) = matcher_of("Lock fd leaked").find(text)
    assert text[match.start : match.end] == "Lock  fd leaked"
    assert normalise(text)[match.norm_start : match.norm_end] == "lock fd leaked"


def test_text_without_hits_need_not_be_asked() -> None:
    matcher = matcher_of("Lock fd leaked", "#KD07", "@k-7fq2mz")
    assert not matcher.could_match("nothing of that kind " * 5_000)
    assert matcher.could_match("nothing " * 5_000 + "lock fd leaked")
    assert not Matcher([]).could_match("lock fd leaked")


@pytest.mark.parametrize(
    ("title", "matchable"),
    [("", False), ("seven w", False), ("eight wi", True), ("数据库", False), ("数据库锁", True)]
    + [("x" * 4096, True), ("x" * 4097, False), ("e\u0332" * 7, False)],
)
def test_title_is_matchable_from_8_wide_to_4096_long(title: str, matchable: bool) -> None:
    assert is_matchable(title) is matchable
    assert bool(matcher_of(title).find(f" {title} ")) is matchable


@pytest.mark.parametrize("length", [match_module.WINDOW_CHARS + 1, match_module.WINDOW_CHARS * 2 + 1])
def test_title_that_ends_one_past_a_window_is_found(length: int) -> None:
    title = "the lock of the last window"
    for shift in range(-len(title) - 1, 2):
        text = "-" * (length - len(title) + shift) + title
        assert [match.start for match in matcher_of(title).find(text)] == [len(text) - len(title)]


def test_window_with_the_same_text_but_other_fresh_part_is_scanned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_module, "WINDOW_CHARS", 8)
    assert len(matcher_of("=" * 9).find("=" * 9)) == 1


HOSTILE = [
    ("title of 200 signs on a line of 2 MB", ["=" * 200], "=" * 2_000_000, 10_000),
    ("a hundred nested titles", ["=" * (101 + n) for n in range(100)], "=" * 1_000_000, 5_000),
    ("a hundred nested Chinese titles", ["错" * (101 + n) for n in range(100)], "错" * 300_000, 1_500),
    ("nested titles of period two", ["=-" * (20 + n) for n in range(80)], "=-" * 500_000, 1_000_000 // 198),
    ("id in small letters all over", ["#KD07"], "kd07 " * 200_000 + "KD07", 1),
    ("same title more often than is reported", ["lock leak"], "lock leak " * 12_000, 10_000),
    ("4 MB of white space inside a title", ["lock leak"], "lock" + " " * 1_000_000 + "leak", 1),
    ("marks without end", ["lock leak"], "a" + "\u0301" * 300_000 + " lock leak", 1),
]


@pytest.mark.parametrize(("name", "titles", "text", "count"), HOSTILE, ids=[row[0] for row in HOSTILE])
def test_hostile_text_takes_seconds_at_most_and_hides_no_pattern(
    name: str, titles: list[str], text: str, count: int
) -> None:
    matcher = matcher_of(*titles)
    begun = time.process_time()
    matches = matcher.find(text)
    assert time.process_time() - begun < 8, name
    assert len(matches) == count
    assert {match.pattern for match in matches} == {len(titles) - 1}


def test_pattern_after_many_matches_of_another_is_still_found() -> None:
    matcher = matcher_of("lock leak", "the other lesson")
    assert {match.pattern for match in matcher.find("lock leak " * 20_000 + "the other lesson")} == {0, 1}
