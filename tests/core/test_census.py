"""Counting the records of a batch."""

from datetime import UTC, date, datetime, timedelta, timezone

from kbd.core.census import Census, census
from kbd.core.model import Decoded, RecordKind

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
LATEST = NOW + timedelta(minutes=5)


def read(*kinds: RecordKind, at: datetime | None = None) -> Decoded:
    return Decoded(kinds, (), at)


def test_a_damaged_line_counts_for_each_record_in_it() -> None:
    found = census([read(RecordKind.MESSAGE, RecordKind.MALFORMED), read(RecordKind.MESSAGE), read()], LATEST, NOW)
    assert found.kinds == {RecordKind.MESSAGE: 2, RecordKind.MALFORMED: 1}


def test_days_are_utc_whatever_zone_a_record_was_written_in() -> None:
    east = timezone(timedelta(hours=9))
    found = census([read(at=datetime(2026, 6, 10, 3, tzinfo=east)), read(at=NOW)], LATEST, NOW)
    assert found.days == {date(2026, 6, 9), date(2026, 6, 10)}
    assert found.newest == NOW


def test_a_record_of_tomorrow_counts_as_of_now_and_one_of_a_fast_clock_as_it_says() -> None:
    fast = NOW + timedelta(minutes=4)
    assert census([read(at=fast)], LATEST, NOW).newest == fast
    assert census([read(at=NOW + timedelta(days=1)), read(at=fast)], LATEST, NOW).newest == fast
    assert census([read(at=NOW + timedelta(days=1))], LATEST, NOW).days == {NOW.date()}


def test_records_without_times_say_nothing_of_days() -> None:
    assert census([read(RecordKind.UNKNOWN)], LATEST, NOW) == Census({RecordKind.UNKNOWN: 1}, None, frozenset())
