"""Which entries fade, which come back, and when: the life of an entry as pure rules.

One closed form (`_fall`) says on which day an entry falls one step. A pass asks whether that day has come,
a forecast names the day, so the two cannot disagree. Days are UTC; inside, they are ordinals, because a
limit of a million days must not overflow a `date`. Sight and the hour of the pass are in `kbd.core.sight`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import date
from operator import attrgetter

from kbd.core.model import EntryId, Problem, State
from kbd.core.sight import Sight

_LONG_AGO = 0  # before every ordinal: what has no date is infinitely old
_NEVER = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """The limits of decay.

    Attributes:
        at: local hour of the daily pass, `HH:MM`.
        grace_days: an entry younger than this is left alone.
        dormant_days: idle days until an active entry turns dormant.
        archive_days: idle days until a dormant entry is archived.
        durable_refs: from this `ref` on, both limits are multiplied by `durable_factor`.
        durable_factor: see `durable_refs`.
        change_fraction: one pass lets at most this part of the live entries fall,
        change_min: but at least this many.
        dwell_days: days an entry stays dormant before it may be archived.
        blind_days: days without any record after which kbd has no sight.
        clock: `calendar`, or `active` for days with agent activity only.
        marker: what is written after the bullet of a dormant entry; "" for nothing.
        evergreen: section headings or types that never fade, in any case.
    """

    at: str = "03:30"
    grace_days: int = 30
    dormant_days: int = 90
    archive_days: int = 180
    durable_refs: int = 10
    durable_factor: float = 2
    change_fraction: float = 0.2
    change_min: int = 5
    dwell_days: int = 30
    blind_days: int = 14
    clock: str = "calendar"
    marker: str = "⚠️"
    evergreen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """An entry as decay sees it.

    Attributes:
        id: the ledger's number of the entry.
        title: for problems and for a stable order.
        type: the type in force (tag, signal or default).
        section: headings above it, joined by ` / `.
        state: where it is now.
        ref: references, the adopted number included.
        last: day of the newest reference.
        created: date in its text.
        first_seen: day kbd first saw it, if it appeared while kbd was watching; stands in for `created`.
        dormant_since: day kbd made it dormant; None: it was found dormant, so its dwell is served.
        pinned: someone said that it never fades.
        superseded_by_live: an active or dormant entry supersedes it.
        superseded_on: day of that relation; None is taken as later than any citation, so pass the day kbd first
            saw the relation where the file gives none.
        active_since: day a person set it active by hand.
        cited_anew: a citation was counted since it last left the active state (in the order of the ledger, not of
            the records' times: a transcript may be read late).
        future_or_bad_date: the parser met a date that it could not read or that lies ahead.
        blind_days: days since the newest of its dates that are not idle days (`IdleClock.blind_days`).
    """

    id: EntryId
    title: str
    type: str = "guideline"
    section: str = ""
    state: State = State.ACTIVE
    ref: int = 0
    last: date | None = None
    created: date | None = None
    first_seen: date | None = None
    dormant_since: date | None = None
    pinned: bool = False
    superseded_by_live: bool = False
    superseded_on: date | None = None
    active_since: date | None = None
    cited_anew: bool = False
    future_or_bad_date: bool = False
    blind_days: int = 0


class Reason(enum.Enum):
    """Why an entry changes its state."""

    IDLE = "idle"
    UNDATED = "undated"
    SUPERSEDED = "superseded"
    CITED = "cited"


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one entry. `idle_days` is None for an entry without any usable date: infinitely old."""

    entry: EntryId
    before: State
    after: State
    reason: Reason
    idle_days: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass does.

    Attributes:
        transitions: revivals first, then falls, oldest first.
        held: falls that were due, kept back by the brake or, if `sight` is not ok, by blindness.
        problems: dates that lie ahead or cannot be read.
        sight: as given.
    """

    transitions: tuple[Transition, ...]
    held: tuple[Transition, ...]
    problems: tuple[Problem, ...]
    sight: Sight


@dataclass(frozen=True, slots=True)
class Forecast:
    """Days on which an entry turns dormant and is archived if nobody cites it; None: past, or never."""

    dormant_on: date | None
    archived_on: date | None


_all_but_id_and_title = attrgetter(*[field.name for field in fields(Subject)][2:])


def plan(subjects: Iterable[Subject], policy: DecayPolicy, today: date, sight: Sight) -> Plan:
    """Return the steps due on `today`: at most one for each entry, falls within the brake.

    Archived entries are given too, for their revival. Applying the plan and planning again on the same day gives
    no further revival; further falls are the caller's to prevent by one pass a day (`kbd.core.sight.next_run`).
    """
    everyone = sorted(subjects, key=lambda subject: (subject.title, subject.id))
    live = [subject for subject in everyone if subject.state is not State.ARCHIVED]
    revivals = tuple(step for subject in everyone if (step := revival(subject, policy, today)) is not None)
    revived = {step.entry for step in revivals}
    due = [step for subject in live if subject.id not in revived and (step := _due_fall(subject, policy, today))]
    due.sort(key=_oldest_first)
    room = brake(len(live), policy) if sight.ok else 0
    problems = tuple(problem for subject in live for problem in _date_problems(subject, today))
    return Plan(revivals + tuple(due[:room]), tuple(due[room:]), problems, sight)


def revival(subject: Subject, policy: DecayPolicy, today: date) -> Transition | None:
    """Return the step back to active of a cited dormant or archived entry, if it would stay active; else None.

    Needs neither sight nor the daily hour: the caller may ask at once after counting.
    """
    if subject.state is State.ACTIVE or not subject.cited_anew:
        return None
    days = idle_days(subject, today)
    if days is None or days >= _limits(subject, policy)[0] or _is_superseded(subject, today.toordinal()):
        return None
    return Transition(subject.id, subject.state, State.ACTIVE, Reason.CITED, days)


def idle_days(subject: Subject, today: date) -> int | None:
    """Return the days since the newest usable date that count as idle; None if there is none."""
    newest = _newest(subject, today.toordinal())
    return None if newest is None else max(0, today.toordinal() - newest - subject.blind_days)


def brake(live: int, policy: DecayPolicy) -> int:
    """Return how many of `live` entries may fall in one pass."""
    rounding = 1e-9  # 0.29 * 100 is 28.999…
    return max(policy.change_min, int(live * policy.change_fraction + rounding))


def forecast(subject: Subject, policy: DecayPolicy, today: date) -> Forecast:
    """Return when the entry falls, given one pass a day from `today` on, sight, no brake and no citation.

    A revival that is due on `today` comes first; days to come all count as idle days.
    """
    if revival(subject, policy, today) is not None:
        subject = replace(subject, state=State.ACTIVE, dormant_since=None, cited_anew=False)
    dormant_on: date | None = None
    start = today.toordinal()
    if subject.state is State.ACTIVE:
        fall = _fall_from(subject, policy, start)
        if fall >= _NEVER:
            return Forecast(None, None)
        dormant_on = date.fromordinal(fall)
        subject = replace(subject, state=State.DORMANT, dormant_since=dormant_on)
        start = fall + 1
    if subject.state is State.ARCHIVED:
        return Forecast(None, None)
    fall = _fall_from(subject, policy, start)
    return Forecast(dormant_on, date.fromordinal(fall) if fall < _NEVER else None)


def forecasts(subjects: Iterable[Subject], policy: DecayPolicy, today: date) -> dict[EntryId, Forecast]:
    """Return the forecast of each; entries with the same dates in the same state share one."""
    found: dict[EntryId, Forecast] = {}
    known: dict[tuple[object, ...], Forecast] = {}
    for subject in subjects:
        alike = _all_but_id_and_title(subject)
        if alike not in known:
            known[alike] = forecast(subject, policy, today)
        found[subject.id] = known[alike]
    return found


def is_evergreen(subject: Subject, policy: DecayPolicy) -> bool:
    """Return whether its type or any heading of its section path is named evergreen (case ignored)."""
    path = f" / {subject.section.strip().casefold()} / "
    names = (name.strip().casefold() for name in policy.evergreen)
    return any(name and (name == subject.type.casefold() or f" / {name} / " in path) for name in names)


def _due_fall(subject: Subject, policy: DecayPolicy, today: date) -> Transition | None:
    if _fall(subject, policy, today.toordinal()) > today.toordinal():
        return None
    days = idle_days(subject, today)
    reason = Reason.UNDATED if days is None else Reason.IDLE
    if subject.state is State.DORMANT:
        return Transition(subject.id, State.DORMANT, State.ARCHIVED, reason, days)
    if _is_superseded(subject, today.toordinal()):
        reason = Reason.SUPERSEDED
    return Transition(subject.id, State.ACTIVE, State.DORMANT, reason, days)


def _fall(subject: Subject, policy: DecayPolicy, today: int) -> int:
    """Return the ordinal of the day on which the entry falls one step, given the dates usable on `today`."""
    if subject.pinned or is_evergreen(subject, policy):
        return _NEVER
    newest = _newest(subject, today)
    dormant_limit, archive_limit = _limits(subject, policy)
    created = _created(subject, today)
    grace_ends = _LONG_AGO if created is None else created + policy.grace_days
    if subject.state is State.DORMANT:
        since = _usable(subject.dormant_since, today)
        served = _LONG_AGO if since is None else since + policy.dwell_days
        idle_enough = _LONG_AGO if newest is None else newest + archive_limit + subject.blind_days
        return max(grace_ends, served, idle_enough)
    if newest is None or _is_superseded(subject, today):
        return grace_ends
    return max(grace_ends, newest + dormant_limit + subject.blind_days)


def _fall_from(subject: Subject, policy: DecayPolicy, start: int) -> int:
    """Return the first day from `start` on at which a daily pass lets the entry fall.

    A date that lies ahead is absent until its day comes, and from then on holds the entry up.
    """
    dates = (subject.last, subject.created, subject.first_seen, subject.active_since, subject.superseded_on)
    ahead = sorted(day.toordinal() for day in (*dates, subject.dormant_since) if day and day.toordinal() > start)
    for turn in ahead:
        fall = max(start, _fall(subject, policy, start))
        if fall < turn:
            return fall
        start = turn
    return max(start, _fall(subject, policy, start))


def _limits(subject: Subject, policy: DecayPolicy) -> tuple[int, int]:
    factor = policy.durable_factor if subject.ref >= policy.durable_refs else 1
    return int(policy.dormant_days * factor), int(policy.archive_days * factor)


def _usable(day: date | None, today: int) -> int | None:
    return day.toordinal() if day is not None and day.toordinal() <= today else None


def _created(subject: Subject, today: int) -> int | None:
    written = _usable(subject.created, today)
    return written if written is not None else _usable(subject.first_seen, today)


def _newest(subject: Subject, today: int) -> int | None:
    days = (_usable(subject.last, today), _created(subject, today), _usable(subject.active_since, today))
    return max((day for day in days if day is not None), default=None)


def _is_superseded(subject: Subject, today: int) -> bool:
    """Return whether a live entry supersedes it and neither a citation nor a person's hand came later."""
    if not subject.superseded_by_live:
        return False
    on = _usable(subject.superseded_on, today)
    if on is None:
        return True
    spoken_for = (_usable(subject.last, today), _usable(subject.active_since, today))
    return all(day is None or day <= on for day in spoken_for)


def _oldest_first(step: Transition) -> tuple[bool, int]:
    return (step.idle_days is not None, -(step.idle_days or 0))


def _date_problems(subject: Subject, today: date) -> Iterable[Problem]:
    ahead = dates_ahead(subject.title, subject.created, subject.last, today)
    if subject.future_or_bad_date and not ahead:
        ahead = [_bad_date(subject.title, "a date of the entry cannot be read or lies in the future")]
    yield from ahead


def dates_ahead(where: str, created: date | None, last: date | None, today: date) -> list[Problem]:
    """Return a problem for each of an entry's dates that lies in the future."""
    days = (("last", last), ("created", created))
    return [_bad_date(where, f"{name} {day} lies in the future") for name, day in days if day and day > today]


def _bad_date(where: str, what: str) -> Problem:
    return Problem("bad_date", where, what, "decay takes it as absent; correct the date")
