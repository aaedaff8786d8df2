"""`kbd decay`, `forecast` and `log`: what they say is what the next pass does, and what the last ones did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from kbd.store.locks import InstanceLock
from tests.service.life import CONFIG, Life, entry

DAY = timedelta(days=1)
START = date(2026, 1, 1)
OLD = "Lock fd leaked on exception path"
NEW = "Build cache must be warm"
EVER = "Measure before you optimise it"
TEXT = (
    "# Lessons\n\n## Principles\n\n" + entry(EVER, "2024-01-01")
    + "\n## All\n\n" + entry(OLD, "2025-01-01", comment="ref:2 | last:2025-05-01 | decay:active")
    + entry(NEW, "2025-12-20")
)  # fmt: skip


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    (life.root / "config.yaml").write_text(CONFIG.replace("relations:", "evergreen: [Principles]\n    relations:"))
    life.live.write_text(TEXT)
    life.lived(START)
    life.close()
    yield life
    life.close()


def answer(life: Life, *args: str, now: date) -> dict[str, Any]:
    result = life.kbd(*args, "--json", now=now)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    assert answer.pop("version") == 1
    return answer


def test_dry_run_says_what_the_pass_then_does(life: Life) -> None:
    files = life.live.read_bytes()
    life.works_until(START + DAY)
    plan = answer(life, "decay", "--dry-run", now=START + DAY)["bases"][0]
    assert plan["due"] is True
    assert [(step["title"], step["from"], step["to"], step["reason"]) for step in plan["transitions"]] == [
        (OLD, "active", "dormant", "idle")
    ]
    assert (plan["held"], plan["sight"]) == ([], {"ok": True, "reasons": []})
    assert life.live.read_bytes() == files
    assert life.states()[OLD] == "active"
    done = answer(life, "decay", now=START + DAY)
    assert [(event["kind"], event["title"]) for event in done["events"]] == [("to_dormant", OLD)]
    assert life.states()[OLD] == "dormant"
    assert "⚠️" in life.live.read_text()


def test_second_pass_of_a_day_is_not_run(life: Life) -> None:
    life.kbd("decay", now=START + DAY)
    result = life.kbd("decay", now=START + DAY)
    assert result.stdout == ""
    assert "today's pass has run; the next is due 2026-01-03 03:30" in result.stderr
    assert answer(life, "decay", now=START + DAY)["ran"] is False


def test_first_day_of_a_base_has_no_pass(life: Life) -> None:
    assert answer(life, "decay", now=START) == {"ran": False, "next_run": "2026-01-02T03:30:00+00:00", "events": []}
    assert "the first pass waits a day after the first reading" in life.kbd("decay", now=START).stderr


def test_dry_run_names_what_the_daily_limit_holds_back(life: Life) -> None:
    life.live.write_text("".join(entry(f"Lesson number {i:02d} of many", "2025-01-01") for i in range(12)))
    life.lived(START)
    plan = answer(life, "decay", "--dry-run", now=START + DAY)["bases"][0]
    assert (len(plan["transitions"]), len(plan["held"])) == (5, 7)
    shown = life.kbd("decay", "--dry-run", now=START + DAY).stdout
    assert "held back  (7 entries): the daily limit" in shown


def test_dry_run_and_forecast_say_why_nothing_falls_without_sight(life: Life) -> None:
    later = START + 60 * DAY
    plan = answer(life, "decay", "--dry-run", now=later)["bases"][0]
    assert (plan["transitions"], plan["sight"]["ok"]) == ([], False)
    assert OLD in {step["title"] for step in plan["held"]}
    assert "no record was read" in plan["sight"]["reasons"][0]["what"]
    assert answer(life, "forecast", now=later)["sight"]["ok"] is False
    assert "no sight, so nothing falls" in life.kbd("forecast", now=later).stderr


def test_forecast_days_are_those_on_which_the_entries_fall(life: Life) -> None:
    foretold = {
        (fall["title"], fall["to"]): date.fromisoformat(fall["on"])
        for fall in answer(life, "forecast", "--days", "400", now=START)["falls"]
    }
    assert set(foretold) == {(OLD, "dormant"), (OLD, "archived"), (NEW, "dormant"), (NEW, "archived")}
    for (title, state), on in sorted(foretold.items(), key=lambda item: item[1]):
        for day, reached in ((on - DAY, False), (on, True)):
            if day > START:
                life.lived(day)
                assert (life.states()[title] == state) is reached, f"{title} {state} {day}"


def test_forecast_is_a_calendar_by_weeks_with_what_never_fades(life: Life) -> None:
    shown = life.kbd("forecast", now=START).stdout
    assert shown.splitlines()[0] == "next decay pass: 2026-01-02 03:30"
    assert "week of 2025-12-29  (1 entry)\n  Fri 2026-01-02  dormant " in shown
    assert f"{EVER}  (evergreen: Principles)" in shown
    life.kbd("pin", NEW, now=START)
    assert f"{NEW}  (pinned)" in life.kbd("forecast", now=START).stdout
    exempt = answer(life, "forecast", now=START)["exempt"]
    assert {one["title"]: one["why"] for one in exempt} == {EVER: "evergreen: Principles", NEW: "pinned"}


def test_forecast_of_a_short_time_shows_nothing_beyond(life: Life) -> None:
    life.kbd("decay", now=START + DAY)
    assert answer(life, "forecast", "--days", "5", now=START + DAY)["falls"] == []
    assert "nothing fades in the next 5 days" in life.kbd("forecast", "--days", "5", now=START + DAY).stdout


def test_log_tells_what_happened_in_order(life: Life) -> None:
    life.kbd("decay", now=START + DAY)
    life.kbd("pin", NEW, now=START + 2 * DAY)
    lines = life.kbd("log", now=START + 3 * DAY).stdout.splitlines()
    assert lines == [
        f'2026-01-02 12:00 to_dormant  "{OLD}"  idle: 246 days, was active',
        f'2026-01-03 12:00 corrected  "{NEW}"  by command: pinned: it never fades',
    ]
    assert life.kbd("log", "--since", "2026-01-03", now=START + 3 * DAY).stdout.splitlines() == lines[1:]
    assert life.kbd("log", "--since", "1d", now=START + 3 * DAY).stdout.splitlines() == lines[1:]
    assert life.kbd("log", "--entry", "lock fd", now=START + 3 * DAY).stdout.splitlines() == lines[:1]
    events = answer(life, "log", now=START + 3 * DAY)["events"]
    assert [event["kind"] for event in events] == ["to_dormant", "corrected"]


def test_log_knows_entries_that_are_gone(life: Life) -> None:
    life.kbd("forget", OLD, "--yes", now=START)
    assert "forgotten" in life.kbd("log", "--entry", OLD, now=START).stdout


@pytest.mark.parametrize("since", ["lately", "2026-02-30", "d", "-1d"])
def test_log_wants_a_day(life: Life, since: str) -> None:
    assert life.kbd("log", "--since", since, now=START).exit_code == 2


def test_log_line_is_safe_for_a_terminal(life: Life) -> None:
    life.live.write_text(life.live.read_text() + "- **Evil \x1b[31mred\x07 title in here**: text\n")
    life.lived(START + DAY)
    shown = life.kbd("log", now=START + DAY).stdout
    assert "Evil" in shown
    assert "\x1b" not in shown and "\x07" not in shown


def test_pass_by_hand_while_a_daemon_runs_changes_the_ledger_and_leaves_the_files(life: Life) -> None:
    files = life.live.read_bytes()
    with InstanceLock(life.state):
        result = life.kbd("decay", now=START + DAY)
    assert result.exit_code == 0
    assert "to_dormant" in result.stdout
    assert "the running daemon writes the files" in result.stderr
    assert (life.states()[OLD], life.live.read_bytes()) == ("dormant", files)
    life.lived(START + DAY)
    assert "⚠️" in life.live.read_text()
    assert len(life.events("to_dormant")) == 1


@pytest.mark.parametrize("command", ["forecast", "decay", "log"])
def test_nothing_is_foretold_before_the_first_reading(command: str, tmp_path: Path) -> None:
    life = Life(tmp_path)
    result = life.kbd(command, now=START)
    assert result.exit_code == 2
    assert "nothing was read yet" in result.stderr
