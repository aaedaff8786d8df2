"""Reads the time a log line begins with: an ISO date, a date with a time, or a time of day, optionally in brackets.

A Markdown heading that begins with a date counts as such a line, for logs kept as daily notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
_LEADING = re.compile(
    rf"""(?:\#{{1,6}}[ ])?[\[(]?
    (?: (?P<date>\d{{4}}-\d\d-\d\d)
        (?: (?:T|,?[ ]) (?P<clock>{_CLOCK}) (?P<zone>Z|[+-]\d\d(?::?\d\d)?|[ ](?:Z|UTC|GMT|[+-]\d\d:?\d\d))? )?
      | (?P<time>{_CLOCK}) )
    [\])]? (?! \w | [:.]\d )""",
    re.VERBOSE | re.ASCII,
)
_LONGEST = 64
_FIRST = frozenset("0123456789[(#")


@dataclass(frozen=True, slots=True)
class LineTime:
    """What a line begins with: a date, a time of day, or both; `zone` is None if it names none."""

    day: date | None
    clock: time | None
    zone: tzinfo | None

    def at(self, day: date, tz: tzinfo) -> datetime | None:
        """Return the time in UTC, with `day` where the line has no date; None if no datetime can hold it.

        A date alone names a UTC day, as kbd's own days do, so that it stays that day in every zone.
        """
        if self.clock is None:
            return datetime.combine(self.day or day, time(), UTC)
        try:
            return datetime.combine(self.day or day, self.clock, self.zone or tz).astimezone(UTC)
        except OverflowError:
            return None


def leading_time(line: str) -> LineTime | None:
    """Return the time `line` begins with, None if it begins with none or with an impossible one."""
    found = _LEADING.match(line[:_LONGEST]) if line[:1] in _FIRST else None
    if found is None:
        return None
    clock = found["clock"] or found["time"]
    try:
        return LineTime(
            date.fromisoformat(found["date"]) if found["date"] else None,
            _clock(clock) if clock else None,
            _zone(found["zone"].strip()) if found["zone"] else None,
        )
    except ValueError:
        return None


def _clock(text: str) -> time:
    seconds = int(text[6:8]) if len(text) > 5 else 0
    return time(int(text[:2]), int(text[3:5]), seconds, int(text[9:15].ljust(6, "0")) if len(text) > 9 else 0)


def _zone(text: str) -> tzinfo:
    if text[0] not in "+-":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
