"""Three simulated years of one base, a pass a day."""

from dataclasses import replace
from datetime import date, timedelta

from kbd.core.decay import DecayPolicy, Subject, forecast, plan
from kbd.core.model import EntryId, State
from kbd.core.sight import Sight

START = date(2024, 1, 1)
POLICY = DecayPolicy(change_min=50)  # the brake, which has its own tests, does not bind


def usage() -> dict[int, set[int]]:
    """Return, by entry, the days of its citations: 0-9 weekly, 10-19 until day 100, 20-29 never, 30 once late."""
    weekly = {entry: set(range(entry, 1095, 7)) for entry in range(10)}
    faded = {entry: set(range(entry, 101, entry - 5)) for entry in range(10, 20)}
    return weekly | faded | {entry: set() for entry in range(20, 30)} | {30: {600}}


def test_used_entries_live_unused_ones_fade_and_cited_ones_return() -> None:
    cited = usage()
    base = {entry: Subject(EntryId(entry), f"entry {entry:02}", created=START) for entry in cited}
    told = forecast(base[20], POLICY, START)
    assert told.dormant_on is not None and told.archived_on is not None
    changed: dict[tuple[int, State], list[int]] = {}
    for day in range(1095):
        today = START + timedelta(day)
        for entry, days in cited.items():
            if day in days:
                gone = base[entry].state is not State.ACTIVE
                base[entry] = replace(base[entry], last=today, ref=base[entry].ref + 1, cited_anew=gone)
        made = plan(base.values(), POLICY, today, Sight(True))
        for step in made.transitions:
            since = today if step.after is State.DORMANT else None
            base[step.entry] = replace(base[step.entry], state=step.after, dormant_since=since, cited_anew=False)
            changed.setdefault((step.entry, step.after), []).append(day)

    assert all(base[entry].state is State.ACTIVE for entry in range(10))
    assert not any((entry, State.DORMANT) in changed for entry in range(10))
    assert all(base[entry].state is State.ARCHIVED for entry in range(10, 30))
    for entry in range(20, 30):
        assert changed[entry, State.DORMANT] == [(told.dormant_on - START).days] == [90]
        assert changed[entry, State.ARCHIVED] == [(told.archived_on - START).days] == [180]
    # Those with ten references keep twice as long.
    for entry in range(10, 20):
        factor = 2 if len(cited[entry]) >= 10 else 1
        assert changed[entry, State.DORMANT] == [max(cited[entry]) + 90 * factor]
        assert changed[entry, State.ARCHIVED] == [max(cited[entry]) + 180 * factor]
    assert changed[30, State.ACTIVE] == [600]
    assert changed[30, State.DORMANT][1:] == [690]
    assert changed[30, State.ARCHIVED][1:] == [780]
