"""The zone of this machine, with the offset it had at each time: what was written in winter may be read in summer.

No name of the zone is needed, which not every system tells.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """The system's own rules, asked for each time."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        """Return how far local time is ahead at a local time; the `fold` of a doubled hour is heeded."""
        return None if at is None else _here(at).utcoffset()

    def dst(self, _at: datetime | None) -> None:
        """Tell nothing: the offset says it all."""
        return

    def tzname(self, at: datetime | None) -> str | None:
        """Return what the system calls it then."""
        return None if at is None else _here(at).tzname()

    def fromutc(self, at: datetime) -> datetime:
        """Return the local time of a UTC time that carries this zone."""
        local = at.replace(tzinfo=UTC).astimezone()
        first = local.replace(tzinfo=self)
        return first if first.utcoffset() == local.utcoffset() else first.replace(fold=1)


def _here(at: datetime) -> datetime:
    try:
        return at.replace(tzinfo=None).astimezone()
    except (OverflowError, OSError, ValueError):  # years that the system's clock does not know
        return at.replace(tzinfo=UTC)
