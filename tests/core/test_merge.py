"""The three-way merge of a metadata comment."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.merge import Merged, Outcome, Written, merge
from kbd.core.model import Metadata, Pair, State

TODAY = date(2026, 7, 1)
D1, D2, D3 = date(2026, 6, 1), date(2026, 6, 10), date(2026, 6, 20)
WROTE = Written(Pair(4, D2), State.ACTIVE, False)
ASLEEP = Written(Pair(4, D2), State.DORMANT, True)
EARLIER = frozenset({Pair(3, D1), Pair(0, None)})
LEDGER = Pair(6, D3)


def comment(ref: int | None, last: date | None, state: State | None = State.ACTIVE, given: bool = True) -> Metadata:
    return Metadata(ref, last, given, state)


def merged(found: Metadata | None, marker: bool = False, wrote: Written | None = WROTE, **fields: object) -> Merged:
    settings = {"ledger": LEDGER, "ledger_state": State.ACTIVE, "today": TODAY} | fields
    return merge(wrote, EARLIER, found, marker, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "outcome", "adjustment"),
    [
        (comment(4, D2), Outcome.OURS, 0),
        (comment(3, D1), Outcome.STALE, 0),
        (comment(0, None), Outcome.STALE, 0),
        (comment(50, D2), Outcome.PERSON, 46),
        (comment(1, D2), Outcome.PERSON, -3),
        (comment(3, D2), Outcome.PERSON, -1),
        (comment(4, None), Outcome.PERSON, 0),
        (comment(4, None, given=False), Outcome.OURS, 0),
        (comment(7, None, given=False), Outcome.PERSON, 3),
        (comment(None, D1), Outcome.ABSENT, 0),
        (None, Outcome.ABSENT, 0),
    ],
)
def test_known_pairs_are_replaced_and_unknown_ones_adjust(
    found: Metadata | None, outcome: Outcome, adjustment: int
) -> None:
    result = merged(found)
    assert (result.outcome, result.adjustment) == (outcome, adjustment)
    assert result.target == Pair(6 + adjustment, D3)


def test_old_two_key_comment_that_was_taken_in_is_stale_when_it_returns() -> None:
    earlier = {Pair(3, None)}
    result = merge(WROTE, earlier, comment(3, None, None, given=False), False, LEDGER, State.ACTIVE, TODAY)
    assert (result.outcome, result.target) == (Outcome.STALE, LEDGER)


@pytest.mark.parametrize(
    ("last", "floor", "target_last", "is_overruled"),
    [
        (date(2026, 6, 25), date(2026, 6, 25), date(2026, 6, 25), False),
        (TODAY, TODAY, TODAY, False),
        (date(2026, 6, 11), date(2026, 6, 11), D3, False),
        (date(2026, 7, 2), None, D3, True),
        (date(2026, 6, 9), None, D3, True),
        (None, None, D3, True),
    ],
)
def test_newer_last_is_taken_and_any_other_overruled(
    last: date | None, floor: date | None, target_last: date, is_overruled: bool
) -> None:
    result = merged(comment(5, last))
    assert (result.last_floor, result.target) == (floor, Pair(7, target_last))
    assert bool(result.overruled) is is_overruled


def test_count_never_falls_below_nothing() -> None:
    result = merged(comment(0, D2), ledger=Pair(2, D3))
    assert (result.adjustment, result.target.ref) == (-2, 0)


def test_person_writes_the_first_comment_of_an_entry() -> None:
    result = merged(comment(5, D1), wrote=None, ledger=Pair(1, D3))
    assert (result.outcome, result.adjustment, result.target) == (Outcome.PERSON, 5, Pair(6, D3))


def test_file_that_says_the_target_is_left_alone() -> None:
    assert merged(comment(4, D2), ledger=Pair(4, D2)).outcome is Outcome.UNCHANGED
    assert merged(comment(4, D2, None), ledger=Pair(4, D2)).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("wrote", "state", "marker", "person"),
    [
        (WROTE, State.ACTIVE, False, None),
        (WROTE, State.DORMANT, False, State.DORMANT),
        (WROTE, State.ACTIVE, True, State.DORMANT),
        (WROTE, State.ARCHIVED, False, State.ARCHIVED),
        (ASLEEP, State.ACTIVE, True, State.ACTIVE),
        (ASLEEP, State.DORMANT, False, State.ACTIVE),
        (ASLEEP, None, False, State.ACTIVE),
        (ASLEEP, None, True, None),
        (replace(ASLEEP, marker=None), State.DORMANT, False, None),  # markers were off when kbd wrote
        (replace(ASLEEP, landed=False), State.ACTIVE, False, None),  # kbd's own write never came through
        (replace(ASLEEP, state=State.ARCHIVED), State.ARCHIVED, False, None),
    ],
)
def test_state_is_a_persons_if_the_pair_is_kbds_last(
    wrote: Written, state: State | None, marker: bool, person: State | None
) -> None:
    result = merged(comment(4, D2, state), marker, wrote, ledger_state=wrote.state)
    assert result.person_state is person
    assert result.target_state is (person or wrote.state)


def test_state_in_a_stale_or_edited_comment_is_not_followed() -> None:
    stale = merged(comment(3, D1, State.ACTIVE), wrote=ASLEEP, ledger_state=State.DORMANT)
    assert (stale.person_state, stale.target_state, stale.overruled) == (None, State.DORMANT, ())
    edited = merged(comment(9, D2, State.ACTIVE), wrote=ASLEEP, ledger_state=State.DORMANT)
    assert (edited.person_state, edited.target_state) == (None, State.DORMANT)
    assert any("decay" in words for words in edited.overruled)


def test_marker_put_on_an_entry_without_comment_sets_it_dormant() -> None:
    taken_in = Written(None, State.ACTIVE, False)
    result = merged(None, True, taken_in, ledger=Pair(0, None))
    assert (result.outcome, result.person_state, result.target_marker) == (Outcome.ABSENT, State.DORMANT, True)


@pytest.mark.parametrize(
    ("state", "markers", "found", "expected"),
    [
        (State.DORMANT, True, False, True),
        (State.DORMANT, False, False, False),
        (State.ACTIVE, True, True, False),
        (State.ARCHIVED, True, True, True),  # an archived block stays byte for byte
    ],
)
def test_marker_follows_the_state(state: State, markers: bool, found: bool, expected: bool) -> None:
    wrote = Written(Pair(4, D2), State.ACTIVE, None)
    assert merged(comment(4, D2), found, wrote, ledger_state=state, markers=markers).target_marker is expected


days = st.one_of(st.none(), st.dates(date(2026, 5, 1), date(2026, 8, 1)))
past = st.one_of(st.none(), st.dates(date(2026, 5, 1), TODAY))
pairs = st.builds(Pair, st.integers(0, 5), past)
states = st.sampled_from(State)
written = st.builds(Written, st.one_of(st.none(), pairs), states, st.sampled_from([None, True, False]), st.booleans())
comments = st.builds(
    lambda ref, last, given, state: Metadata(ref, last if given else None, given, state),
    st.one_of(st.none(), st.integers(0, 60)), days, st.booleans(), st.one_of(st.none(), states),
)


@given(
    st.one_of(st.none(), written), st.frozensets(pairs, max_size=4), st.one_of(st.none(), comments), st.booleans(),
    pairs, states, st.booleans(),
)
def test_merge_loses_nothing_and_converges(
    wrote: Written | None, earlier: frozenset[Pair], found: Metadata | None, marker: bool,
    ledger: Pair, state: State, markers: bool,
) -> None:
    first = merge(wrote, earlier, found, marker, ledger, state, TODAY, markers=markers)
    assert first.target.ref == ledger.ref + first.adjustment >= 0
    assert first.target.last == max((day for day in (ledger.last, first.last_floor) if day), default=None)
    assert (first.target.last or TODAY) <= TODAY

    known = earlier | {pair for pair in (wrote and wrote.pair, _pair(found)) if pair}
    file = Metadata(first.target.ref, first.target.last, True, first.target_state)
    now = Written(first.target, first.target_state, first.target_marker if markers else None)
    again = merge(now, known, file, first.target_marker, first.target, first.target_state, TODAY, markers=markers)
    assert (again.outcome, again.adjustment, again.person_state) == (Outcome.UNCHANGED, 0, None)
    assert (again.target, again.target_state) == (first.target, first.target_state)

    if found is not None and found.ref is not None and found.last_given and first.target != _pair(found):
        old = merge(now, known, found, marker, first.target, first.target_state, TODAY, markers=markers)
        assert (old.outcome, old.target) == (Outcome.STALE, first.target)


def _pair(found: Metadata | None) -> Pair | None:
    return Pair(found.ref, found.last) if found is not None and found.ref is not None else None
