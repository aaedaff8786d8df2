"""How much of a message names no entry."""

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.normal import normalise
from kbd.core.silence import REMEMBERED_MESSAGES, Silence, SilentBlock, measured


def test_echo_lines_are_no_part_of_a_message() -> None:
    assert measured([SilentBlock("One  two"), SilentBlock("three\n- an echo", 10)]) == len("one two") + len("three")


def test_a_streamed_partial_and_a_block_read_twice_count_once() -> None:
    said = [SilentBlock("I look"), SilentBlock("I look at the loop"), SilentBlock("I look at the loop")]
    assert measured(said) == len("I look at the loop")


def test_a_partial_that_goes_on_to_name_an_entry_is_silent_no_more() -> None:
    silence = Silence()
    silence.take("m", [SilentBlock("Per Back"), SilentBlock("aside")], ["Store timestamps in UTC"])
    assert silence.length("m") == (len("Per Backaside"), 0)
    silence.take("m", (), ["Per Backoff must be capped"])
    assert silence.length("m") == (len("aside"), len("Per Backaside"))


def test_a_message_that_names_nothing_and_one_that_only_names_have_no_length() -> None:
    silence = Silence()
    silence.take("m", [SilentBlock("aside")], ())
    silence.take("n", (), ["Store timestamps in UTC"])
    assert (silence.length("m"), silence.length("n"), silence.length("o")) == (None, None, None)


def test_the_newest_messages_are_remembered() -> None:
    silence = Silence()
    for number in range(REMEMBERED_MESSAGES + 9):
        silence.take(str(number), [SilentBlock("words")], ["Store timestamps in UTC"])
    saved = Silence(silence.saved())
    assert [saved.length(one) for one in ("8", "9", str(REMEMBERED_MESSAGES + 8))] == [None, (5, 0), (5, 0)]


@given(st.lists(st.sampled_from(["alpha", "beta two", "Gamma  ray"]), max_size=6), st.integers(0, 6))
def test_a_message_read_in_pieces_is_as_long_as_one_read_at_once(texts: list[str], cut: int) -> None:
    pieces = Silence()
    pieces.take("m", map(SilentBlock, texts[:cut]), ())
    pieces = Silence(pieces.saved())
    pieces.take("m", map(SilentBlock, texts[cut:]), ())
    pieces.take("m", (), ["Store timestamps in UTC"])
    long = sum(len(normalise(text)) for text in set(texts))
    assert pieces.length("m") == ((long, 0) if texts else None)
    assert measured(map(SilentBlock, texts)) == long


RECORDS = st.lists(
    st.tuples(
        st.integers(0, REMEMBERED_MESSAGES + 2),
        st.sampled_from(["", "a", "a b", "c", "long words"]),
        st.sampled_from(["", "", "a b c"]),
    ),
    max_size=60,
)


@given(RECORDS, st.sets(st.integers(1, 59)))
def test_what_is_noted_of_messages_does_not_depend_on_where_batches_end(
    records: list[tuple[int, str, str]], cuts: set[int]
) -> None:
    def noted(cuts: set[int]) -> dict[str, int]:
        found: dict[str, int] = {}
        silence, batch = Silence(), set[str]()
        for number, (message, silent, told) in enumerate(records, 1):
            silence.take(str(message), [SilentBlock(silent)] if silent else (), [told] if told else ())
            batch.add(str(message))
            if number in cuts or number == len(records):
                for one in batch:
                    if long := silence.length(one):
                        known = found.get(one, 0)
                        found[one] = long[0] if known == long[1] else max(known, long[0])
                silence, batch = Silence(silence.saved()), set()
        return found

    assert noted(cuts) == noted(set())
