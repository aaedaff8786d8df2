"""How much of a message names no entry."""

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.normal import normalise
from kbd.core.silence import REMEMBERED_MESSAGES, Silence, SilentBlock, measured


def test_echo_lines_are_no_part_of_a_message() -> None:
    assert measured([SilentBlock("One  two"), SilentBlock("three\n- an echo", 10)]) == len("one two") + len("three")


def test_a_streamed_partial_and_a_block_read_twice_count_once() -> None:
    silence = Silence()
    silence.take("m", [SilentBlock("I look"), SilentBlock("I look at the loop"), SilentBlock("I look at the loop")], ())
    assert silence.length("m") == len("I look at the loop")


def test_a_partial_that_goes_on_to_name_an_entry_is_silent_no_more() -> None:
    silence = Silence()
    silence.take("m", [SilentBlock("Per Back"), SilentBlock("aside")], ())
    assert silence.length("m") == len("Per Backaside")
    silence.take("m", (), ["Per Backoff must be capped"])
    assert silence.length("m") == len("aside")


def test_the_newest_messages_are_remembered() -> None:
    silence = Silence()
    for number in range(REMEMBERED_MESSAGES + 9):
        silence.take(str(number), [SilentBlock("words")], ())
    saved = Silence(silence.saved())
    assert [saved.length(one) for one in ("0", "9", str(REMEMBERED_MESSAGES + 8))] == [0, 5, 5]


@given(st.lists(st.sampled_from(["alpha", "beta two", "Gamma  ray"]), max_size=6), st.integers(0, 6))
def test_a_message_read_in_pieces_is_as_long_as_one_read_at_once(texts: list[str], cut: int) -> None:
    whole, pieces = Silence(), Silence()
    whole.take("m", map(SilentBlock, texts), ())
    pieces.take("m", map(SilentBlock, texts[:cut]), ())
    pieces = Silence(pieces.saved())
    pieces.take("m", map(SilentBlock, texts[cut:]), ())
    assert pieces.length("m") == whole.length("m") == sum(len(normalise(text)) for text in set(texts))
