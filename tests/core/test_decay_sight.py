"""Sight, idle days, and the hour of the pass."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.sight import Activity, IdleClock, SourceHealth, assess_sight, day_has_begun, is_due, next_run

TODAY = date(2026, 7, 1)


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


@pytest.mark.parametrize(
    ("sources", "sessions", "citations", "ok"),
    [
        ((SourceHealth("a", ago(13)),), 5, 0, True),
        ((SourceHealth("a", ago(14)),), 0, 0, False),
        ((SourceHealth("a", None),), 0, 0, False),
        ((), 0, 0, False),
        ((SourceHealth("a", ago(-1)),), 0, 0, False),
        ((SourceHealth("a", TODAY),), 19, 0, True),
        ((SourceHealth("a", TODAY),), 20, 0, False),
        ((SourceHealth("a", TODAY),), 20, 1, True),
        ((SourceHealth("a", TODAY), SourceHealth("b", ago(13), readable=False)), 1, 1, False),
        ((SourceHealth("a", TODAY), SourceHealth("b", ago(14), readable=False)), 1, 1, True),
        ((SourceHealth("a", TODAY), SourceHealth("b", ago(1), format_alarm=True)), 1, 1, False),
        ((SourceHealth("a", TODAY), SourceHealth("b", None, readable=False)), 1, 1, True),
    ],
)
def test_pass_needs_sight(sources: tuple[SourceHealth, ...], sessions: int, citations: int, ok: bool) -> None:
    sight = assess_sight(Activity(sources, sessions, citations), 14, TODAY)
    assert sight.ok is ok
    assert bool(sight.reasons) is not ok
    assert {reason.code for reason in sight.reasons} <= {"no_sight"}


def test_days_beyond_the_fourteenth_of_a_silence_are_not_idle() -> None:
    records = [ago(100), ago(60), ago(59)]
    clock = IdleClock.of(records, ago(200), TODAY, blind_days=14)
    assert clock.blind_days(ago(100), ago(60)) == 25  # days 15 to 39 after the record
    assert clock.blind_days(ago(59), TODAY) == 45
    assert clock.blind_days(ago(300), TODAY) == 85 + 25 + 45
    assert clock.blind_days(TODAY, ago(5)) == 0


def test_silence_before_the_first_reading_is_idle_time() -> None:
    clock = IdleClock.of([ago(300)], ago(100), TODAY, blind_days=14)
    assert clock.blind_days(ago(400), ago(100)) == 0
    assert clock.blind_days(ago(400), TODAY) == 100


def test_base_without_any_record_is_silent_from_its_first_reading() -> None:
    assert IdleClock.of([], ago(20), TODAY, blind_days=14).blind_days(ago(90), TODAY) == 6


def test_active_clock_counts_only_days_with_records() -> None:
    clock = IdleClock.of([ago(9), ago(3), ago(3)], ago(20), TODAY, blind_days=14, active_only=True)
    assert clock.blind_days(ago(10), TODAY) == 8


@given(st.lists(st.integers(0, 90).map(ago)), st.integers(0, 90), st.integers(0, 90), st.booleans())
def test_blind_days_are_days_of_the_span_and_add_up(
    records: list[date], first: int, middle: int, active_only: bool
) -> None:
    clock = IdleClock.of(records, ago(first), TODAY, blind_days=14, active_only=active_only)
    whole = clock.blind_days(ago(90), TODAY)
    assert 0 <= whole <= 90
    assert whole == clock.blind_days(ago(90), ago(middle)) + clock.blind_days(ago(middle), TODAY)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("last_run", "now", "tz", "expected"),
    [
        (None, "2026-07-01T10:00", "UTC", "2026-07-02T03:30"),
        (date(2026, 7, 1), "2026-07-01T10:00", "UTC", "2026-07-02T03:30"),
        (date(2026, 6, 30), "2026-07-01T02:00", "UTC", "2026-07-01T03:30"),
        (date(2026, 6, 30), "2026-07-01T10:00", "UTC", "2026-07-01T10:00"),
        (date(2026, 6, 29), "2026-07-01T02:00", "UTC", "2026-07-01T02:00"),  # a day was missed
        (date(2099, 1, 1), "2026-07-01T02:00", "UTC", "2026-07-02T03:30"),  # a wild clock heals
        (date(2026, 7, 1), "2026-07-01T20:00", "Asia/Shanghai", "2026-07-02T19:30"),
        (date(2026, 6, 30), "2026-07-01T19:29", "Asia/Shanghai", "2026-07-01T19:30"),
        (date(2026, 7, 1), "2026-07-01T12:00", "America/Los_Angeles", "2026-07-02T10:30"),
    ],
)
def test_pass_is_due_once_a_utc_day_at_the_local_hour(
    last_run: date | None, now: str, tz: str, expected: str
) -> None:
    due = next_run(last_run, "03:30", at(now), ZoneInfo(tz))
    assert due == at(expected)
    assert is_due(last_run, "03:30", at(now), ZoneInfo(tz)) is (due == at(now))


@given(
    st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Auckland", "Australia/Lord_Howe"]),
    st.integers(0, 23),
    st.integers(0, 59),
)
def test_a_year_of_waiting_gives_one_pass_a_day(tz: str, hour: int, minute: int) -> None:
    now, last_run = at("2026-01-01T00:00"), date(2026, 1, 1)
    runs = []
    for _ in range(364):
        now = next_run(last_run, f"{hour:02}:{minute:02}", now, ZoneInfo(tz))
        last_run = now.date()
        runs.append(last_run)
    assert len(set(runs)) == 364
    assert runs[-1] - runs[0] <= timedelta(364)  # a change to summer time may cost one slot


@pytest.mark.parametrize("text", ["3h", "24:00", "03:60", ""])
def test_hour_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        next_run(None, text, at("2026-07-01T10:00"), UTC)


def test_day_begins_at_utc_midnight_whatever_the_hour() -> None:
    now = datetime(2026, 7, 1, 7, tzinfo=ZoneInfo("Asia/Shanghai"))
    assert not day_has_begun(None, now)
    assert not day_has_begun(date(2026, 6, 30), now)
    assert day_has_begun(date(2026, 6, 29), now)
