"""Fading and reviving through real passes: three simulated years, a person's hand, the brake, sight."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.service.life import Life, entry

DAY = timedelta(days=1)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    yield life
    life.close()


def test_three_years_keep_the_used_and_archive_the_unused(life: Life) -> None:
    titles = {"used": "Used every month without fail", "rare": "Rare but it comes back", "dead": "Nobody cites this"}
    start, end = date(2026, 1, 1), date(2028, 12, 31)
    life.live.write_text("# Lessons\n\n" + "".join(entry(t, "2025-12-15") for t in titles.values()))
    seen: dict[date, dict[str, str]] = {}
    day = start
    while day <= end:
        life.says(day, f"as we know, {titles['used']}, so I did that")
        if day.year == 2027 and day.month == 6:
            life.says(day, f"this is {titles['rare']} after all")
        before = seen[max(seen)] if seen else {}
        life.lived(day)
        seen[day] = life.states()
        order = ["active", "dormant", "archived"]
        for title, state in before.items():
            assert order.index(seen[day][title]) - order.index(state) <= 1, f"{title} fell two steps on {day}"
        day = (day.replace(day=1) + 32 * DAY).replace(day=1)
    assert {states[titles["used"]] for states in seen.values()} == {"active"}
    assert seen[date(2026, 4, 1)][titles["dead"]] == "dormant"
    assert seen[date(2026, 7, 1)][titles["dead"]] == "archived"
    assert seen[date(2027, 5, 1)][titles["rare"]] == "archived"
    assert seen[date(2027, 6, 1)][titles["rare"]] == "active"
    assert seen[date(2028, 12, 1)] == {titles["used"]: "active", titles["rare"]: "archived", titles["dead"]: "archived"}
    assert life.rows()[titles["used"]].ref == 36
    assert life.rows()[titles["rare"]].ref == 1
    assert titles["dead"] in life.archive.read_text()
    assert titles["dead"] not in life.live.read_text()


def test_state_set_dormant_by_hand_holds_until_cited_anew(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text(entry("Cited only yesterday indeed", "2025-12-01"))
    life.says(start - DAY, "the lesson Cited only yesterday indeed helped")
    life.lived(start)
    life.live.write_text(life.live.read_text().replace("decay:active", "decay:dormant"))
    life.lived(start + DAY)
    life.lived(start + 2 * DAY)
    assert life.states() == {"Cited only yesterday indeed": "dormant"}
    assert "- ⚠️ [pitfall]" in life.live.read_text()


def test_state_set_active_by_hand_counts_idle_from_that_day(life: Life) -> None:
    day = date(2026, 1, 1)
    text = entry("Old one that someone wants back", "2025-01-01", comment="ref:2 | last:2025-08-20 | decay:dormant")
    life.live.write_text(text)
    life.lived(day)
    life.live.write_text(life.live.read_text().replace("decay:dormant", "decay:active"))
    for later in (1, 2, 90):
        life.lived(day + later * DAY)
        assert life.states()["Old one that someone wants back"] == "active"
    life.lived(day + 91 * DAY)
    assert life.states()["Old one that someone wants back"] == "dormant"


def test_brake_lets_a_fifth_fall_each_day(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text("".join(entry(f"Lesson number {i:02d} of many", "2025-01-01") for i in range(40)))
    fallen = []
    for later in range(7):
        life.lived(start + later * DAY)
        fallen.append(list(life.states().values()).count("dormant"))
    assert fallen == [0, 8, 16, 24, 32, 40, 40]


def test_one_pass_a_utc_day(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text("".join(entry(f"Lesson number {i:02d} of many", "2025-01-01") for i in range(40)))
    for _ in range(3):
        life.lived(start)
    assert set(life.states().values()) == {"active"}
    for _ in range(3):
        life.lived(start + DAY)
    assert list(life.states().values()).count("dormant") == 8


def test_nothing_falls_without_sight_for_200_days_and_it_is_said(life: Life) -> None:
    start = date(2026, 1, 1)
    titles = ("Cited just before the silence", "Never cited by anyone at all")
    life.live.write_text("".join(entry(title, "2025-11-01") for title in titles))
    life.says(start, "Cited just before the silence, yes")
    life.silent = True
    life.lived(start)
    for later in range(1, 200, 9):
        report = life.lived(start + later * DAY)
    assert "no_sight" in {problem.code for problem in report.problems}
    assert set(life.states().values()) == {"active"}
    assert life.events("no_sight")


def test_days_without_sight_are_no_idle_days(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text(entry("Cited just before the silence", "2025-11-01"))
    life.says(start, "Cited just before the silence, yes")
    life.silent = True
    life.lived(start)
    life.lived(start + 199 * DAY)
    life.silent = False
    # 14 idle days before the silence, so 76 after it.
    for later in range(200, 275, 5):
        life.lived(start + later * DAY)
        assert life.states() == {"Cited just before the silence": "active"}
    for later in (275, 276):
        life.lived(start + later * DAY)
    assert life.states() == {"Cited just before the silence": "dormant"}


def test_missing_source_stops_the_falling_while_it_gave_records_lately(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text(entry("Never cited by anyone at all", "2025-01-01"))
    life.lived(start)
    (life.root / "logs").rename(life.root / "elsewhere")
    report = life.lived(start + DAY)
    assert {"no_sight", "source_missing"} <= {problem.code for problem in report.problems}
    assert set(life.states().values()) == {"active"}
    (life.root / "elsewhere").rename(life.root / "logs")
    life.lived(start + 2 * DAY)
    assert set(life.states().values()) == {"dormant"}


def test_superseded_entry_turns_dormant_at_once(life: Life) -> None:
    start = date(2026, 1, 1)
    texts = entry("The old way of doing it", "2025-11-01"), entry("The new way of doing it", "2025-12-30")
    life.live.write_text("".join(texts))
    (life.root / "kb" / ".knowledge-graph.yaml").write_text(
        '- {s: "The new way of doing it", p: supersedes, o: "The old way of doing it", c: 2025-12-30, u: 2025-12-30}\n'
    )
    life.lived(start)
    life.lived(start + DAY)
    assert life.states() == {"The old way of doing it": "dormant", "The new way of doing it": "active"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_entry_cited_between_two_successors_is_superseded_by_the_later_one(order: tuple[int, int], life: Life) -> None:
    start = date(2026, 1, 1)
    old = entry("Don’t do it the old way", "2025-10-01", comment="ref:1 | last:2025-12-01 | decay:active")
    newer = entry("A newer way of doing it", "2025-11-01") + entry("The newest way of it", "2025-12-20")
    life.live.write_text(old + newer)
    relations = [
        "- {s: A newer way of doing it, p: supersedes, o: \"Don't do it the old way\", c: 2025-11-01, u: 2025-11-01}\n",
        "- {s: The newest way of it, p: supersedes, o: \"Don't do it the old way\", c: 2025-12-20, u: 2025-12-20}\n",
    ]
    (life.root / "kb" / ".knowledge-graph.yaml").write_text("".join(relations[i] for i in order))
    life.lived(start)
    life.lived(start + DAY)
    assert life.states()["Don’t do it the old way"] == "dormant"


def test_dates_ahead_at_first_sight_are_absent_and_said_by_status(life: Life) -> None:
    start = date(2026, 1, 1)
    comment = "ref:1 | last:2099-01-01 | decay:active"
    life.live.write_text(
        entry("Its last day lies ahead", "2025-01-01", comment=comment) + entry("Made in the year after", "2027-01-01")
    )
    life.lived(start)
    life.lived(start + DAY)
    assert set(life.states().values()) == {"dormant"}
    told = json.loads(life.kbd("status", "--json", now=start + DAY).stdout)["problems"]
    assert {(p["code"], p["what"]) for p in told} >= {
        ("overruled", "last 2099-01-01 lies in the future"),
        ("bad_date", "created 2027-01-01 lies in the future"),
    }


def test_last_follows_the_clock_that_was_set_back_and_forth(life: Life) -> None:
    day = date(2026, 1, 20)
    title = "Cited by a clock that jumps"
    life.live.write_text(entry(title, "2026-01-01"))
    life.says(day, f"by {title}")
    life.lived(day)
    with (life.root / "logs" / "other.log").open("a") as log:
        log.write(f"{day - DAY} 10:00 by {title}\n")
    life.lived(day - DAY)
    assert life.rows()[title].last == day - DAY
    life.lived(day + DAY)
    assert (life.rows()[title].ref, life.rows()[title].last) == (2, day)
    assert f"ref:2 | last:{day}" in life.live.read_text()


def test_clock_that_was_decades_ahead_stops_neither_decay_nor_what_came_then(life: Life) -> None:
    start, wild, new = date(2026, 1, 1), date(2099, 1, 1), "Came while the clock was wild"
    life.live.write_text(entry("Never cited by anyone at all", "2025-10-10"))
    life.says(start, "some work")
    life.lived(start)
    life.silent = True
    life.lived(wild)
    with life.live.open("a") as file:
        file.write(f"- [pitfall] **{new}** — without a date\n")
    life.lived(wild + DAY)
    life.silent = False
    right = start + 5 * DAY
    life.says(right, f"by {new}")
    life.lived(right)
    assert (life.rows()[new].ref, life.rows()[new].created) == (1, right)
    assert set(life.states().values()) == {"active"}
    life.works_until(right + 5 * DAY)
    life.lived(right + 5 * DAY)
    assert life.states() == {"Never cited by anyone at all": "dormant", new: "active"}


def test_clock_that_is_years_behind_its_records_changes_no_day(life: Life) -> None:
    start, title = date(2026, 1, 1), "Appeared while kbd was watching"
    life.lived(start)
    life.live.write_text(f"- [pitfall] **{title}** — without a date\n")
    life.says(start + DAY, f"by {title}")
    life.lived(start + 2 * DAY)
    before = life.rows()[title]
    life.silent = True
    life.lived(date(2020, 1, 1))
    life.silent = False
    life.lived(start + 3 * DAY)
    after = life.rows()[title]
    assert (after.created, after.first_seen, after.ref) == (before.created, before.first_seen, 0)
