"""What decay will do and what it did: a calendar of falls, who is exempt and why, the log of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from kbd.core.decay import DecayPolicy, Forecast, Plan, Subject, Transition, is_evergreen
from kbd.core.model import EntryId, State
from kbd.store.ledger.lessons import EntryRow


@dataclass(frozen=True, slots=True)
class Fall:
    """An entry that falls on a day if nobody cites it."""

    on: date
    to: State
    base: str
    title: str
    handle: str

    def as_json(self) -> dict[str, object]:
        """Return it with its day and state as text."""
        return {"on": self.on.isoformat(), "to": self.to.value, "base": self.base, "title": self.title,
                "handle": self.handle}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exempt:
    """A live entry that never fades, and why."""

    base: str
    title: str
    handle: str
    why: str

    def as_json(self) -> dict[str, object]:
        """Return its fields."""
        return {"base": self.base, "title": self.title, "handle": self.handle, "why": self.why}


def falls(base: str, rows: Iterable[EntryRow], forecasts: Mapping[int, Forecast], until: date) -> list[Fall]:
    """Return the falls of a base up to a day, soonest first; the brake, which spreads many of one day, is left out."""
    found = []
    for row in rows:
        days = forecasts.get(row.id, Forecast(None, None))
        for on, to in ((days.dormant_on, State.DORMANT), (days.archived_on, State.ARCHIVED)):
            if on is not None and on <= until:
                found.append(Fall(on, to, base, row.title, row.handle))
    return sorted(found, key=lambda fall: (fall.on, fall.to.value, fall.title))


def by_week(found: Iterable[Fall]) -> dict[date, list[Fall]]:
    """Return falls by the Monday of their week, in order."""
    weeks: dict[date, list[Fall]] = {}
    for fall in sorted(found, key=lambda fall: fall.on):
        weeks.setdefault(fall.on - timedelta(days=fall.on.weekday()), []).append(fall)
    return weeks


def exempt(base: str, rows: Iterable[EntryRow], policy: DecayPolicy) -> list[Exempt]:
    """Return the live entries that never fade."""
    found = []
    for row in rows:
        why = "" if row.state is State.ARCHIVED else _why_exempt(row, policy)
        if why:
            found.append(Exempt(base, row.title, row.handle, why))
    return found


def _why_exempt(row: EntryRow, policy: DecayPolicy) -> str:
    if row.pinned:
        return "pinned"
    subject = Subject(EntryId(row.id), row.title, type=row.type, section=row.section)
    for name in policy.evergreen:
        if is_evergreen(subject, replace(policy, evergreen=(name,))):
            return f"evergreen: {name}"
    return ""


def steps(plan: Plan, rows: Sequence[EntryRow]) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the steps of a plan, and those held back, with the names of the entries."""
    names = {row.id: row for row in rows}
    return [_step(one, names) for one in plan.transitions], [_step(one, names) for one in plan.held]


def _step(step: Transition, names: Mapping[int, EntryRow]) -> dict[str, object]:
    row = names[int(step.entry)]
    return {"title": row.title, "handle": row.handle, "from": step.before.value, "to": step.after.value,
            "reason": step.reason.value, "idle_days": step.idle_days}  # fmt: skip
