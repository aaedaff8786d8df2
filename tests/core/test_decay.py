"""The decay rules at their limits, and as properties."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.decay import DecayPolicy, Reason, Subject, brake, forecast, plan, revival
from kbd.core.model import EntryId, State
from kbd.core.sight import Sight

TODAY = date(2026, 7, 1)
POLICY = DecayPolicy()
SEEING = Sight(True)
BLIND = Sight(False)


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def subject(**fields: object) -> Subject:
    return replace(Subject(EntryId(1), "an entry", created=ago(1000)), **fields)  # type: ignore[arg-type]


def state_after(one: Subject, policy: DecayPolicy = POLICY, today: date = TODAY, sight: Sight = SEEING) -> State:
    steps = plan([one], policy, today, sight).transitions
    return steps[0].after if steps else one.state


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"last": ago(89)}, State.ACTIVE),
        ({"last": ago(90)}, State.DORMANT),
        ({"last": ago(91)}, State.DORMANT),
        ({"last": ago(5000)}, State.DORMANT),  # one step in a pass
        ({"state": State.DORMANT, "last": ago(179)}, State.DORMANT),
        ({"state": State.DORMANT, "last": ago(180)}, State.ARCHIVED),
        ({"state": State.DORMANT, "last": ago(181)}, State.ARCHIVED),
        ({"state": State.DORMANT, "last": ago(400), "dormant_since": ago(29)}, State.DORMANT),
        ({"state": State.DORMANT, "last": ago(400), "dormant_since": ago(30)}, State.ARCHIVED),
        ({"created": ago(29), "last": None, "superseded_by_live": True}, State.ACTIVE),
        ({"created": ago(30), "last": None, "superseded_by_live": True}, State.DORMANT),
        ({"created": ago(89)}, State.ACTIVE),
        ({"created": ago(90)}, State.DORMANT),
        ({"created": None}, State.DORMANT),
        ({"created": None, "state": State.DORMANT}, State.ARCHIVED),
        ({"created": None, "state": State.DORMANT, "dormant_since": ago(1)}, State.DORMANT),
        ({"created": None, "first_seen": ago(29)}, State.ACTIVE),
        ({"created": None, "first_seen": ago(90)}, State.DORMANT),
        ({"ref": 9, "last": ago(90)}, State.DORMANT),
        ({"ref": 10, "last": ago(179)}, State.ACTIVE),
        ({"ref": 10, "last": ago(180)}, State.DORMANT),
        ({"ref": 10, "last": ago(359), "state": State.DORMANT}, State.DORMANT),
        ({"ref": 10, "last": ago(360), "state": State.DORMANT}, State.ARCHIVED),
        ({"last": ago(120), "active_since": ago(89)}, State.ACTIVE),
        ({"last": ago(120), "active_since": ago(90)}, State.DORMANT),
        ({"last": ago(103), "blind_days": 14}, State.ACTIVE),
        ({"last": ago(104), "blind_days": 14}, State.DORMANT),
        ({"last": ago(500), "pinned": True}, State.ACTIVE),
        ({"last": ago(500), "pinned": True, "state": State.DORMANT}, State.DORMANT),
        ({"last": TODAY + timedelta(1)}, State.DORMANT),  # the future counts as absent, and creation is old
        ({"last": ago(1), "created": date(2099, 1, 1)}, State.ACTIVE),
        ({"created": date(2099, 1, 1)}, State.DORMANT),
        ({"created": date(2099, 1, 1), "first_seen": ago(3)}, State.ACTIVE),
        ({"state": State.ARCHIVED, "last": ago(5000)}, State.ARCHIVED),
    ],
)
def test_each_limit_falls_on_its_day(fields: dict[str, object], after: State) -> None:
    assert state_after(subject(**fields)) is after


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"superseded_on": ago(10), "last": ago(10)}, State.DORMANT),
        ({"superseded_on": ago(10), "last": ago(9)}, State.ACTIVE),
        ({"superseded_on": ago(10), "last": ago(20), "active_since": ago(9)}, State.ACTIVE),
        ({"superseded_on": None, "last": ago(1)}, State.DORMANT),
        ({"superseded_on": ago(10), "last": ago(20), "pinned": True}, State.ACTIVE),
    ],
)
def test_superseded_entry_sleeps_unless_cited_since(fields: dict[str, object], after: State) -> None:
    assert state_after(subject(superseded_by_live=True, **fields)) is after


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"last": ago(89)}, State.ACTIVE),
        ({"last": ago(90)}, State.DORMANT),
        ({"last": ago(89), "cited_anew": False}, State.DORMANT),
        ({"last": ago(1), "created": ago(5)}, State.ACTIVE),  # grace holds no revival up
        ({"last": ago(1), "pinned": True}, State.ACTIVE),
        ({"last": ago(179), "ref": 10}, State.ACTIVE),
        ({"last": ago(5), "superseded_by_live": True, "superseded_on": ago(3)}, State.DORMANT),
        ({"last": ago(3), "superseded_by_live": True, "superseded_on": ago(5)}, State.ACTIVE),
    ],
)
@pytest.mark.parametrize("sight", [SEEING, BLIND])
def test_cited_dormant_entry_comes_back_if_it_would_stay(
    fields: dict[str, object], after: State, sight: Sight
) -> None:
    one = subject(**({"state": State.DORMANT, "cited_anew": True, "dormant_since": ago(2)} | fields))
    assert state_after(one, sight=sight) is after


def test_archived_entry_comes_back_when_cited() -> None:
    step = revival(subject(state=State.ARCHIVED, last=TODAY, cited_anew=True), POLICY, TODAY)
    assert step is not None
    assert (step.before, step.after, step.reason, step.idle_days) == (State.ARCHIVED, State.ACTIVE, Reason.CITED, 0)


def test_without_sight_nothing_falls_and_all_is_held() -> None:
    made = plan([subject(last=ago(100))], POLICY, TODAY, BLIND)
    assert made.transitions == ()
    assert [step.after for step in made.held] == [State.DORMANT]


@pytest.mark.parametrize(
    ("section", "kind", "exempt"),
    [
        ("Core / PRINCIPLES / Details", "pitfall", True),
        ("core / principles of style", "pitfall", False),
        ("", "Decision", True),
        ("Input / Output", "pitfall", True),
        ("Log / Input / Output", "pitfall", True),
        ("", "pitfall", False),
    ],
)
def test_evergreen_goes_by_any_heading_or_by_type(section: str, kind: str, exempt: bool) -> None:
    policy = replace(POLICY, evergreen=("Principles", "decision", "input / output", ""))
    after = state_after(subject(section=section, type=kind, last=ago(500)), policy)
    assert (after is State.ACTIVE) is exempt


def test_brake_takes_the_oldest_first_and_holds_the_rest() -> None:
    many = [subject(id=EntryId(i), title=f"entry {i:02}", last=ago(100 + i)) for i in range(29)]
    undated = subject(id=EntryId(99), title="zz", created=None)
    made = plan([*many, undated], POLICY, TODAY, SEEING)
    assert [step.entry for step in made.transitions] == [99, 28, 27, 26, 25, 24]
    assert len(made.held) == 24


@pytest.mark.parametrize(("live", "most"), [(0, 5), (24, 5), (25, 5), (29, 5), (30, 6), (100, 20)])
def test_brake_is_a_fifth_but_at_least_five(live: int, most: int) -> None:
    assert brake(live, POLICY) == most


def test_brake_is_not_fooled_by_binary_fractions() -> None:
    assert brake(100, replace(POLICY, change_fraction=0.29)) == 29


def test_revivals_are_not_braked() -> None:
    many = [subject(id=EntryId(i), state=State.ARCHIVED, last=ago(1), cited_anew=True) for i in range(50)]
    assert len(plan(many, POLICY, TODAY, SEEING).transitions) == 50


def test_future_and_unreadable_dates_are_problems_of_live_entries() -> None:
    everyone = [
        subject(id=EntryId(1), title="ahead", last=date(2099, 1, 1), future_or_bad_date=True),
        subject(id=EntryId(2), title="unreadable", future_or_bad_date=True),
        subject(id=EntryId(3), title="gone", state=State.ARCHIVED, future_or_bad_date=True),
        subject(id=EntryId(4), title="fine"),
    ]
    problems = plan(everyone, POLICY, TODAY, SEEING).problems
    assert {problem.code for problem in problems} == {"bad_date"}
    assert [problem.where for problem in problems] == ["ahead", "unreadable"]


def test_limits_without_end_never_overflow() -> None:
    policy = replace(POLICY, dormant_days=10**12, archive_days=10**12)
    assert forecast(subject(), policy, TODAY).dormant_on is None
    assert state_after(subject(), policy) is State.ACTIVE


days_ago = st.one_of(st.none(), st.integers(-40, 420).map(ago))
past = st.one_of(st.none(), st.integers(0, 420).map(ago))
subjects = st.builds(
    Subject,
    id=st.integers(1, 10**6).map(EntryId),
    title=st.text("ab", max_size=3),
    type=st.sampled_from(["guideline", "model"]),
    state=st.sampled_from(State),
    ref=st.integers(0, 12),
    last=days_ago,
    created=days_ago,
    first_seen=past,
    dormant_since=past,
    pinned=st.booleans(),
    superseded_by_live=st.booleans(),
    superseded_on=past,
    active_since=past,
    blind_days=st.integers(0, 40),
)
bases = st.lists(subjects, max_size=40, unique_by=lambda one: one.id)


@given(bases, st.booleans())
def test_pass_makes_one_step_an_entry_within_the_brake(everyone: list[Subject], ok: bool) -> None:
    made = plan(everyone, POLICY, TODAY, Sight(ok))
    entries = [step.entry for step in made.transitions]
    assert len(entries) == len(set(entries))
    steps = {(State.ACTIVE, State.DORMANT), (State.DORMANT, State.ARCHIVED)}
    falls = [step for step in made.transitions if step.reason is not Reason.CITED]
    assert {(step.before, step.after) for step in falls} <= steps
    live = sum(one.state is not State.ARCHIVED for one in everyone)
    assert len(falls) <= (brake(live, POLICY) if ok else 0)


@given(subjects, st.integers(0, 100))
def test_decay_is_monotone_in_time(one: Subject, later: int) -> None:
    one = replace(one, last=one.last and min(one.last, TODAY), created=one.created and min(one.created, TODAY))
    if state_after(one) is not one.state:
        assert state_after(one, today=TODAY + timedelta(later)) is not one.state


@given(subjects)
def test_revival_happens_once_and_holds_that_day(one: Subject) -> None:
    one = replace(one, cited_anew=True)
    step = revival(one, POLICY, TODAY)
    if step is not None:
        alive = replace(one, state=State.ACTIVE, dormant_since=None, cited_anew=False)
        made = plan([alive], POLICY, TODAY, SEEING)
        assert made.transitions == made.held == ()


@settings(max_examples=60)
@given(subjects, st.booleans())
def test_forecast_is_what_daily_passes_do(one: Subject, cited: bool) -> None:
    one = replace(one, cited_anew=cited and (one.last or TODAY) <= TODAY and (one.created or TODAY) <= TODAY)
    if one.state is State.ACTIVE:
        one = replace(one, cited_anew=False)
    told = forecast(one, POLICY, TODAY)
    seen: dict[State, date] = {}
    for days in range(500):
        day = TODAY + timedelta(days)
        for step in plan([one], POLICY, day, SEEING).transitions:
            if step.reason is not Reason.CITED:
                seen[step.after] = day
            since = day if step.after is State.DORMANT else None
            one = replace(one, state=step.after, dormant_since=since, cited_anew=False)
    horizon = TODAY + timedelta(500)
    for day, state in ((told.dormant_on, State.DORMANT), (told.archived_on, State.ARCHIVED)):
        assert seen.get(state) == (day if day is not None and day < horizon else None)
