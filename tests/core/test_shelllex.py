"""Shell text as commands: many plain words are taken at once, and mean what they do one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.shelllex import MAX_PIECES, read_script

WORDS = st.text(st.sampled_from("ab#2=./*-~!\x0b\xa0\u2028é不"), min_size=1, max_size=6)


@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\t", " \r", ";", "\n", " | ", "|| "])), max_size=12))
def test_plain_words_read_as_the_same_words_in_quotes_do(pieces: list[tuple[str, str]]) -> None:
    kept = [(word.lstrip("#") or "x", blank) for word, blank in pieces]  # before a quote it would not begin a word
    plain = read_script("".join(word + blank for word, blank in kept))
    quoted = read_script("".join(f"'{word}'{blank}" for word, blank in kept))
    assert [one.words for one in plain.segments] == [one.words for one in quoted.segments]


def test_a_digit_is_a_descriptor_only_right_before_its_sign() -> None:
    script = read_script("make all 2>err 3 >out")
    assert [(one.words, one.redirects) for one in script.segments] == [
        (["make", "all", "3"], [(">", "err"), (">", "out")])
    ]


def test_a_comment_begins_where_a_word_would() -> None:
    script = read_script("make a#b #all of it\nmake c")
    assert ([one.words for one in script.segments], script.comments) == (
        [["make", "a#b"], ["make", "c"]],
        ("all of it",),
    )


def test_words_taken_at_once_count_as_pieces_each() -> None:
    script = read_script("a " * MAX_PIECES + "end")
    assert [len(one.words) for one in script.segments] == [MAX_PIECES // 2]
    assert script.unread == "a " * (MAX_PIECES // 2 - 1) + "a end"
