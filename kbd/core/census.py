"""Counts what records are, and tells when they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from kbd.core.model import Decoded, RecordKind


@dataclass(frozen=True, slots=True)
class Census:
    """The records of a batch.

    Attributes:
        kinds: how many there are of each kind.
        newest: the newest time any of them carries, UTC; None if none does.
        days: the days they were written on.
    """

    kinds: dict[RecordKind, int]
    newest: datetime | None
    days: frozenset[date]


def census(decoded: Sequence[Decoded], latest: datetime, now: datetime) -> Census:
    """Return what the records are; a time after `latest` counts as `now`. Costs: well under a microsecond a record."""
    kinds: dict[RecordKind, int] = {}
    for several, count in Counter([one.kinds for one in decoded]).items():
        for kind in several:
            kinds[kind] = kinds.get(kind, 0) + count
    times = [one.newest.astimezone(UTC) for one in decoded if one.newest is not None]
    if not times:
        return Census(kinds, None, frozenset())
    if max(times) > latest:
        times = [now if time > latest else time for time in times]
    return Census(kinds, max(times), frozenset([time.date() for time in times]))
