"""Clocks that step, zones at both ends of the world, summer time, suspends: counts are what they would be without."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from kbd.engine import Clock
from kbd.service.lifecycle import last_pass
from kbd.store.ledger import lessons
from kbd.store.localzone import LocalZone
from tests.attack.lab import ENTRY, NOON, TITLE, Lab
from tests.e2e.process import Kbd
from tests.e2e.world import World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ZONES = [
    "Pacific/Kiritimati",
    "Pacific/Niue",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
]


@contextmanager
def zone_of_the_machine(name: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


@pytest.mark.parametrize("name", ZONES)
def test_zone_of_the_machine_is_the_one_of_its_name_in_each_hour_of_a_year(name: str) -> None:
    with zone_of_the_machine(name):
        for hours in range(366 * 24):
            at = datetime(2026, 1, 1, tzinfo=UTC) + hours * HOUR
            here, there = at.astimezone(LocalZone()), at.astimezone(ZoneInfo(name))
            assert (here.replace(tzinfo=None), here.fold) == (there.replace(tzinfo=None), there.fold)
            assert here.astimezone(UTC) == at


@pytest.mark.parametrize(
    ("zone", "written", "day"),
    [
        ("Pacific/Kiritimati", "2026-06-10 13:59", "2026-06-09"),
        ("Pacific/Kiritimati", "2026-06-10 14:00", "2026-06-10"),
        ("Pacific/Niue", "2026-06-09 12:59", "2026-06-09"),
        ("Pacific/Niue", "2026-06-09 13:00", "2026-06-10"),
        ("America/New_York", "2026-01-15 18:59", "2026-01-15"),
        ("America/New_York", "2026-01-15 19:00", "2026-01-16"),  # in winter; it is read in summer
        ("America/New_York", "2026-05-15 19:59", "2026-05-15"),
        ("America/New_York", "2026-03-08 02:30", "2026-03-08"),  # an hour that was not
    ],
)
def test_line_with_a_local_time_has_the_utc_day_that_it_had_when_it_was_written(
    zone: str, written: str, day: str, tmp_path: Path
) -> None:
    lab = Lab(tmp_path)
    note = lab.note(ENTRY.replace("2026-05-19", "2025-12-01"))
    lab.log(f"{written} as in {TITLE} we close it\n\n")
    (tmp_path / "config.yaml").write_text(lab.config)
    command = [sys.executable, "-m", "kbd", "--config", str(tmp_path / "config.yaml"), "--state-dir"]
    command += [str(tmp_path / "state"), "--now", "2026-06-11", "run", "--once"]
    environment = {**os.environ, "TZ": zone, "HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"ref:1 | last:{day}" in note.read_text()


@pytest.mark.parametrize("name", ZONES[:4])
def test_hours_of_waiting_over_a_change_of_summer_time_give_one_pass_a_utc_day(name: str, tmp_path: Path) -> None:
    lab, zone = Lab(tmp_path), ZoneInfo(name)
    lab.note()
    lab.log("2026-03-01 00:00 all green\n\n")
    for first in (datetime(2026, 3, 6, tzinfo=UTC), datetime(2026, 10, 30, tzinfo=UTC)):
        days: list[date | None] = []
        lab.run(first)
        assert lab.engine is not None
        db = lab.engine.frame.ledger.db
        for hours in range(1, 24 * 5, 2):
            now = first + hours * HOUR
            lab.engine.run_pass(Clock(now, now.timestamp(), zone), immediate=False)
            days.append(last_pass(db, lessons.base_id(db, "lessons")))
        seen = sorted({day for day in days if day is not None})
        assert seen[-1] - seen[0] <= timedelta(days=5)
        assert len(seen) >= 4, seen


def test_week_of_suspend_is_one_missed_pass_and_no_lost_record(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note("".join(f"- [pitfall] **Lesson number {i:02d} of this base** — text (2026-01-01)\n" for i in range(30)))
    lab.log(f"{NOON:%Y-%m-%d} 09:00 all green\n\n")
    lab.run(NOON)
    lab.run(NOON + DAY, immediate=False)
    before = sum(row.state.value == "dormant" for row in lab.entries())
    lab.log(f"{NOON + 8 * DAY:%Y-%m-%d} 09:00 as in Lesson number 29 of this base, so\n\n")
    for minutes in range(0, 180, 30):
        lab.run(NOON + 8 * DAY + timedelta(minutes=minutes), immediate=False)
    states = {row.title: row.state.value for row in lab.entries()}
    assert sum(state == "dormant" for state in states.values()) == before + 6
    assert lab.ref("Lesson number 29 of this base") == 1


def test_record_from_the_future_counts_on_the_day_it_was_read_and_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    note = lab.note()
    lab.say("s1", f"as in {TITLE} we close it", "2031-01-01T09:00:00Z")
    lab.run(NOON)
    assert "ref:1 | last:2026-06-11" in note.read_text()
    for now in (NOON + DAY, NOON + 5 * 365 * DAY):
        lab.restart()
        lab.run(now)
        assert lab.engine is not None
        lab.engine.rewind(None)
        lab.run(now)
        assert lab.ref() == 1


@pytest.mark.parametrize("back", [-40 * DAY, DAY], ids=["clock-set-back", "next-day"])
def test_line_from_the_future_counts_once_whatever_the_clock_says_when_it_is_read_again(
    back: timedelta, tmp_path: Path
) -> None:
    lab = Lab(tmp_path)
    lab.note(ENTRY.replace("2026-05-19", "2025-12-01"))
    lab.log(f"2026-06-14 09:00 as in {TITLE} we close it\n\n")
    lab.run(NOON)
    for now in (NOON + back, NOON, NOON + 30 * DAY):
        lab.restart()
        lab.run(now)
        assert lab.engine is not None
        lab.engine.rewind(None)
        lab.run(now)
        assert lab.ref() == 1


@pytest.mark.parametrize("back", [-1, -40, -1100])
def test_copy_read_while_the_clock_is_behind_moves_no_credit(back: int, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    note = lab.note(ENTRY.replace("2026-05-19", "2020-12-01"))
    original = lab.say("s1", f"as in {TITLE} we close it", "2026-06-10T09:00:00Z")
    lab.run(NOON)
    copied = original.read_text().replace('"sessionId": "s1"', '"sessionId": "s2"')
    original.with_name("s2.jsonl").write_text(copied.replace("2026-06-10T09", "2026-06-10T10"))
    lab.run(NOON + back * DAY)
    lab.run(NOON)
    assert (lab.ref(), lab.credits()) == (1, {("s1", "2026-06-10")})
    assert "ref:1 | last:2026-06-10" in note.read_text()


@pytest.mark.parametrize("back", [-1, -40])
def test_line_without_a_time_read_again_while_the_clock_is_behind_counts_once(back: int, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    lab.log(f"as in {TITLE} we close it\n\n")
    lab.run(NOON)
    for now in (NOON + back * DAY, NOON + DAY):
        assert lab.engine is not None
        lab.engine.rewind(None)
        lab.run(now)
        assert lab.ref() == 1


def walk(world: World, kbd: Kbd, steps: int) -> None:
    """Let the clock of the machine jump, ahead before what was written is read, or back after it.

    To a clock that is behind, what is written comes from the future, and it cannot know better than to say today; of
    copies it sees that they are.
    """
    right = world.today

    def run(days: int) -> None:
        world.today = right + timedelta(days=days)
        done = kbd("run", "--once")
        assert done.returncode in (0, 1), done.stderr
        world.today = right

    for _ in range(steps):
        world.work(12)
        world.settle()
        days = world.rng.choice([0, 0, 1, 3, 40, 400, 1100, -1, -40, -1100])
        if days < 0:
            run(0)
            world.copy()
        run(days)
    for _ in range(2):
        run(0)
    assert not (faults := world.faults()), "\n".join(faults)


def test_clock_that_steps_back_and_forth_by_years_changes_no_count(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 51, datetime.now(UTC).date())
    walk(world, Kbd(world), 4)


@pytest.mark.torture
def test_clocks_that_step_back_and_forth_by_years_change_no_count(tmp_path: Path) -> None:
    from tests.torture.record import note

    steps = 0
    for seed in range(52, 58):
        world = World(tmp_path / f"world{seed}", seed, datetime.now(UTC).date())
        zone = random.Random(seed).choice(ZONES)
        walk(world, Kbd(world, TZ=zone), 12)
        steps += 12
    note("clock", steps=steps, wrong_counts=0)


def test_listing_says_the_hour_of_the_next_pass_in_the_zone_of_then(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    lab.run(NOON)
    lab.restart()
    command = [sys.executable, "-m", "kbd", "--config", str(tmp_path / "config.yaml"), "--state-dir"]
    command += [str(tmp_path / "state"), "--now", "2026-06-11", "status", "--json"]
    environment = {**os.environ, "TZ": "America/New_York", "HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    following = datetime.fromisoformat(json.loads(done.stdout)["decay"]["next_run"])
    assert following.astimezone(ZoneInfo("America/New_York")).strftime("%H:%M") == "03:30"
