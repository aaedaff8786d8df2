"""Forecasts of many entries at once."""

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.decay import DecayPolicy, Subject, forecast, forecasts
from kbd.core.model import EntryId, State

TODAY = date(2026, 7, 1)
days = st.none() | st.integers(-3, 400).map(lambda ago: TODAY - timedelta(days=ago))
subjects = st.builds(
    Subject,
    id=st.just(EntryId(0)),
    title=st.just("an entry"),
    type=st.sampled_from(["pitfall", "model"]),
    section=st.sampled_from(["", "Kept / Locks"]),
    state=st.sampled_from(State),
    ref=st.sampled_from([0, 9, 10]),
    last=days,
    created=days,
    dormant_since=days,
    pinned=st.booleans(),
    superseded_by_live=st.booleans(),
    cited_anew=st.booleans(),
    blind_days=st.integers(0, 20),
)


@given(st.lists(subjects, max_size=12), st.sampled_from([(), ("kept",), ("model",)]))
def test_forecasts_of_a_base_are_those_of_each_entry(found: list[Subject], evergreen: tuple[str, ...]) -> None:
    policy = DecayPolicy(evergreen=evergreen)
    everyone = [replace(one, id=EntryId(at), title=f"entry {at}") for at, one in enumerate(found + found)]
    assert forecasts(everyone, policy, TODAY) == {one.id: forecast(one, policy, TODAY) for one in everyone}
