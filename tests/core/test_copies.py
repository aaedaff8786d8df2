"""Which part of a session is a copy of another's."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.copies import Saying, Telling, copied_beginning


def telling(text: str) -> Telling:
    """Read `a1 b2`: words and time each; `a` alone has no time."""
    said = text.split()
    return Telling([Saying(one[:1].encode(), int(one[1:]) if one[1:] else None, i) for i, one in enumerate(said)])


ROWS = {
    "the old times": ("a1 b2 c9", "a1 b2 c3", {0: 0, 1: 1}),
    "the time of the copying": ("a7 b7 x8 c9", "a1 b2 c3", {0: 0, 1: 1}),
    "said again after the copy": ("a7 x8 a9", "a1 b2", {0: 0}),
    "parts left out": ("b7 d7 x8 a9", "a1 b2 c3 d4", {0: 1, 1: 3}),
    "another order": ("b7 a7", "a1 b2", {0: 1}),
    "no beginning in common": ("x7 a8", "a1", {}),
    "said after the copying": ("a7 b7 c8", "a1 b2 c9", {0: 0, 1: 1}),
    "the same words twice": ("a7 a7 a8", "a1 a2", {0: 0, 1: 1}),
    "the same words before what was kept": ("a2 b3", "a1 a2 b3", {0: 1, 1: 2}),
    "no times": ("a b c", "a b d c", {0: 0, 1: 1}),
    "no times and a part left out": ("b c", "a b c", {}),
    "a time and none": ("a", "a1", {}),
    "nothing said": ("", "a1", {}),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_copy_is_the_beginning_that_has_equals_in_order(name: str) -> None:
    copy, origin, copied = ROWS[name]
    assert copied_beginning(telling(copy), telling(origin), is_declared=True) == copied


@pytest.mark.parametrize(
    ("copy", "copied"), [("a7 c7", {0: 0}), ("a1 c3", {0: 0, 1: 2}), ("b7 c7", {}), ("a7 b7", {0: 0, 1: 1})]
)
def test_a_session_that_names_no_origin_leaves_out_only_what_times_tell(copy: str, copied: dict[int, int]) -> None:
    assert copied_beginning(telling(copy), telling("a1 b2 c3"), is_declared=False) == copied


def test_words_said_thousands_of_times_are_told_apart_in_linear_time() -> None:
    said = [Saying(b"ok", at, at) for at in range(50_000)]
    as_copied = [Saying(one.words, 60_000, one.place) for one in said]
    for copy in (said, as_copied):
        copied = copied_beginning(Telling(copy), Telling(said), is_declared=True)
        assert copied == {index: index for index in range(50_000)}


def test_a_message_is_found_by_its_place_then_its_time_then_its_words() -> None:
    said = Telling([Saying(b"a", 1, 0), Saying(b"a", 2, 9), Saying(b"b", None, 20), Saying(b"b", None, 30)])
    assert [said.saying(b"a", 2, 7), said.saying(b"b", None, 30), said.saying(b"a", 5, 5)] == [1, 3, 0]
    assert said.saying(b"c", 1, 0) is None


SAID = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=8).map(
    lambda s: sorted(s, key=lambda t: t[1])
)


@given(SAID, SAID, st.integers(0, 8), st.booleans())
def test_what_is_appended_to_either_session_takes_no_copy_back(
    copy: Sequence[tuple[str, int]], origin: Sequence[tuple[str, int]], cut: int, is_declared: bool
) -> None:
    def of(said: Sequence[tuple[str, int]]) -> Telling:
        return Telling([Saying(words.encode(), at, i) for i, (words, at) in enumerate(said)])

    def copied(one: Sequence[tuple[str, int]], other: Sequence[tuple[str, int]]) -> dict[int, int]:
        return copied_beginning(of(one), of(other), is_declared=is_declared)

    whole = copied(copy, origin)
    assert copied(copy[:cut], origin).items() <= whole.items()
    if len({words for words, _ in origin}) == len(origin):  # else the time of a copy may tell a later one to be it
        assert copied(copy, origin[:cut]).items() <= whole.items()
    assert list(whole) == list(range(len(whole)))
    assert list(whole.values()) == sorted(set(whole.values()))
