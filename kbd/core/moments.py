"""Dates and times as graphs write them: ISO 8601, with or without a time, with or without an offset."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?")


def day_of(text: str) -> date | None:
    """Return the date that a text is, None if it is none."""
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def moment_of(text: str) -> datetime | None:
    """Return the time that a text is, aware; without an offset it is UTC, a date is its first moment. None: neither."""
    try:
        if _DATE_TIME.fullmatch(text):
            at = datetime.fromisoformat(text.upper())
        elif _DATE.fullmatch(text):
            at = datetime.fromisoformat(text)
        else:
            return None
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
