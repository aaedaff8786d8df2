"""What decay would do to entries that kbd has not taken in yet, day by day, before any citation is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from kbd.core.classify import classify
from kbd.core.decay import DecayPolicy, Subject, forecast, plan
from kbd.core.model import Entry, EntryId, State
from kbd.core.sight import Sight


@dataclass(frozen=True, slots=True)
class Day:
    """A day after whose pass so many entries stand in each state."""

    on: date
    active: int
    dormant: int
    archived: int


def subjects(entries: Iterable[Entry], days: Mapping[int, date]) -> list[Subject]:
    """Return entries as decay sees them at first sight; `days` gives creation dates by place in `entries`."""
    return [_subject(at, entry, days.get(at)) for at, entry in enumerate(entries)]


def _subject(at: int, entry: Entry, day: date | None) -> Subject:
    meta = entry.meta
    is_dormant = entry.marker or (meta is not None and meta.state in (State.DORMANT, State.ARCHIVED))
    return Subject(
        id=EntryId(at),
        title=entry.title,
        type=entry.type or classify(f"{entry.title} {entry.body}").type,
        section=entry.section,
        state=State.DORMANT if is_dormant else State.ACTIVE,
        ref=(meta.ref or 0) if meta else 0,
        last=meta.last if meta else None,
        created=entry.created or day,
    )


def outlook(entries: Sequence[Subject], policy: DecayPolicy, today: date, days: int) -> list[Day]:
    """Return the days, of the next `days`, on which something changes, if nobody cites anything.

    The first pass on a new base waits a day. Uses the same rules and the same brake as the daily pass.
    """
    standing = {subject.id: subject for subject in entries}
    changed: list[Day] = []
    on: date | None = today + timedelta(days=1)
    while on is not None and on <= today + timedelta(days=days):
        pass_ = plan(standing.values(), policy, on, Sight(ok=True))
        for step in pass_.transitions:
            since = on if step.after is State.DORMANT else None
            standing[step.entry] = replace(standing[step.entry], state=step.after, dormant_since=since)
        if pass_.transitions:
            counts = [sum(subject.state is state for subject in standing.values()) for state in State]
            changed.append(Day(on, *counts))
        tomorrow = on + timedelta(days=1)
        on = tomorrow if pass_.held else _next_fall(standing.values(), policy, tomorrow)
    return changed


def _next_fall(entries: Iterable[Subject], policy: DecayPolicy, start: date) -> date | None:
    """Return the first day from `start` on at which anything falls; None if nothing ever does."""
    forecasts = (forecast(subject, policy, start) for subject in entries)
    return min((day for one in forecasts if (day := one.dormant_on or one.archived_on)), default=None)
