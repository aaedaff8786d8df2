"""Whether a decay pass may let anything fall, which days count as idle, and when the pass is due.

An entry that nobody cites and an entry whose citations kbd cannot see look alike, so a pass needs sight.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from kbd.core.model import Problem

SILENT_SESSIONS = 20  # so many sessions without one citation mean a matcher that sees nothing


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """A source of a base: day of its newest record of any author (None: none yet), and whether it can be read."""

    name: str
    last_record: date | None
    readable: bool = True
    format_alarm: bool = False


@dataclass(frozen=True, slots=True)
class Activity:
    """What was read for a base: its sources, sessions and citations of the last `blind_days` days, and whence."""

    sources: tuple[SourceHealth, ...]
    sessions: int
    citations: int
    whence: str = "from any source"


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether entries may fall, and every reason why not (code `no_sight`)."""

    ok: bool
    reasons: tuple[Problem, ...] = ()


def assess_sight(activity: Activity, blind_days: int, today: date) -> Sight:
    """Return whether kbd would have seen citations in the last `blind_days` days.

    A record dated after `today` proves nothing: its clock is wrong.
    """
    recent = [source for source in activity.sources if _is_recent(source, blind_days, today)]
    reasons = [_blind(source.name, _fault(source), "mend the source; see `kbd doctor`") for source in recent
               if _fault(source)]
    if not recent:
        what = f"no record was read {activity.whence} for {blind_days} days"
        reasons.append(_blind("sources", what, "check the roots with `kbd sources`"))
    if activity.sessions >= SILENT_SESSIONS and activity.citations == 0:
        what = f"{activity.sessions} sessions in {blind_days} days gave no citation at all"
        reasons.append(_blind("sources", what, "check with `kbd doctor` that the entries can match"))
    return Sight(not reasons, tuple(reasons))


def _is_recent(source: SourceHealth, blind_days: int, today: date) -> bool:
    return source.last_record is not None and 0 <= (today - source.last_record).days < blind_days


def _fault(source: SourceHealth) -> str:
    if not source.readable:
        return "cannot be read, though it gave records lately"
    return "is in format alarm, though it gave records lately" if source.format_alarm else ""


def _blind(where: str, what: str, hint: str) -> Problem:
    return Problem("no_sight", where, what, hint)


@dataclass(frozen=True, slots=True)
class IdleClock:
    """Tells idle days from days on which nothing could have been cited.

    Attributes:
        record_days: ordinals of the days with a record, ascending, without doubles.
        blind: ordinals of the days that are not idle days, ascending (clock `calendar`).
        active_only: clock `active`: only days with a record are idle days.
    """

    record_days: tuple[int, ...]
    blind: tuple[int, ...]
    active_only: bool

    @classmethod
    def of(
        cls, days: Iterable[date], first_read: date, today: date, *, blind_days: int, active_only: bool = False
    ) -> IdleClock:
        """Build the clock from the days with a record of any author.

        After `first_read` (the day the base was first read) the days beyond the `blind_days`-th of a stretch
        without any record are blind. The first stretch begins at the newest record before, else at `first_read`.
        """
        end = today.toordinal()
        records = tuple(sorted({day.toordinal() for day in days if day <= today}))
        first = first_read.toordinal()
        turns = records if records and records[0] <= first else (first, *records)
        blind = (
            day
            for turn, following in zip(turns, (*turns[1:], end + 1), strict=True)
            for day in range(max(turn + blind_days, first) + 1, following)
        )
        return cls(records, tuple(blind), active_only)

    def blind_days(self, since: date, today: date) -> int:
        """Return how many days after `since`, up to and with `today`, are not idle days."""
        if self.active_only:
            return max(0, (today - since).days - _between(self.record_days, since, today))
        return _between(self.blind, since, today)


def _between(ordinals: tuple[int, ...], since: date, until: date) -> int:
    return max(0, bisect_right(ordinals, until.toordinal()) - bisect_right(ordinals, since.toordinal()))


def next_run(last_run: date | None, at: str, now: datetime, tz: tzinfo) -> datetime:
    """Return when the next pass is due (UTC, never before `now`): once a UTC day, at local hour `at`.

    Each UTC day has one slot, the instant of local `at` that falls into it. A slot that was missed is due at once
    and stands for that day. A new base (`last_run` None) waits for the next UTC day; give the day of its first
    reading as `last_run` from then on. A `last_run` ahead of `now` comes from a wild clock and counts as today.

    Raises:
        ValueError: `at` is not `HH:MM`.
    """
    now = now.astimezone(UTC)
    done = now.date() if last_run is None else min(last_run, now.date())
    hour, minute = at.split(":")
    slot_time = time(int(hour), int(minute), tzinfo=tz)
    local_day = done - timedelta(days=1)
    while True:
        slot = datetime.combine(local_day, slot_time).astimezone(UTC)
        if slot.date() > done:
            return max(slot, now)
        local_day += timedelta(days=1)


def is_due(last_run: date | None, at: str, now: datetime, tz: tzinfo) -> bool:
    """Return whether the daemon's pass is due at `now`; see `next_run`."""
    return next_run(last_run, at, now, tz) <= now


def day_has_begun(last_run: date | None, now: datetime) -> bool:
    """Return whether a UTC day has begun since the last pass, whatever the hour (for a single full pass)."""
    return last_run is not None and last_run < now.astimezone(UTC).date()
