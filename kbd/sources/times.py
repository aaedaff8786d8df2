"""Reads the times that agents write: ISO 8601 with and without zone, epochs in s, ms, µs and ns."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_SECOND = 253_402_300_799  # 9999-12-31


def read_time(value: object, tz: tzinfo = UTC) -> datetime | None:
    """Return the time a JSON value says, in UTC; None if it says none.

    The unit of a number is told by its size: up to 1e11 seconds, then ms, µs, ns (1e11 s is the year 5138, 1e11 ms is
    1973). A text of digits is a number. `tz` is the zone of a text without one.
    """
    if isinstance(value, str):
        return _from_text(value, tz)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_number(value)
    return None


def _from_text(text: str, tz: tzinfo) -> datetime | None:
    text = text.strip()
    if len(text) > 40:
        return None
    if text.isascii() and text.isdigit() and len(text) >= 9:
        return _from_number(int(text))
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=tz)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_number(number: float) -> datetime | None:
    if not 0 < number < 1e20 or not math.isfinite(number):
        return None
    seconds = float(number)
    while seconds >= 1e11:
        seconds /= 1000
    return EPOCH + timedelta(seconds=seconds) if seconds <= _LAST_SECOND else None


def to_micros(time: datetime | None) -> int | None:
    """Return microseconds since the epoch, for a state."""
    return None if time is None else (time - EPOCH) // _MICROSECOND


def from_micros(micros: int | None) -> datetime | None:
    """Return the time `to_micros` gave; None for None or what no datetime can hold."""
    if micros is None:
        return None
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
