"""Decisions while a real daemon runs: they are recorded at once, the daemon writes them; a pause lets it rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.service.life import CONFIG, Life, entry

TODAY = date(2026, 1, 2)
TITLE = "Cited only yesterday indeed"
OLD = "Old one that nobody cites now"
FAST = "write: {every_seconds: 0, git_every_seconds: 0, quiet_seconds: 0}\nscan: {every_seconds: 1}\n"
PATIENCE_SECONDS = 30.0


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path)
    (life.root / "config.yaml").write_text(CONFIG + FAST)
    life.live.write_text(entry(TITLE, "2025-12-01") + entry(OLD, "2025-12-01", comment="ref:2 | decay:active"))
    life.lived(TODAY - timedelta(days=1))
    life.close()
    return life


@pytest.fixture
def daemon(life: Life) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Run a daemon; the value waits until something is so."""
    options = ["--config", str(life.root / "config.yaml"), "--state-dir", str(life.state), "--now", TODAY.isoformat()]
    env = os.environ | {"HOME": str(life.root), "TZ": "UTC"}
    log = (life.root / "daemon.log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "kbd", *options, "run"], env=env, stdout=log, stderr=log)

    def until(reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not reached():
            said = (life.root / "daemon.log").read_text()
            assert process.poll() is None and time.monotonic() < deadline, said
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)

    until(lambda: status(life)["daemon"]["running"] and (life.state / "heartbeat.json").exists())
    yield until
    process.terminate()
    assert process.wait(5) == 0
    log.close()


def status(life: Life) -> dict[str, dict[str, object]]:
    answer: dict[str, dict[str, object]] = json.loads(life.kbd("status", "--json", now=TODAY).stdout)
    return answer


def test_daemon_writes_what_a_command_decided(life: Life, daemon: Callable[[Callable[[], bool]], None]) -> None:
    result = life.kbd("set", OLD, "--ref", "9", now=TODAY)
    assert "the running daemon writes the files" in result.stderr
    daemon(lambda: "ref:9" in life.live.read_text())
    life.kbd("set", OLD, "--state", "archived", now=TODAY)
    daemon(lambda: life.archive.exists() and OLD not in life.live.read_text())
    life.kbd("restore", OLD, now=TODAY)
    daemon(lambda: OLD in life.live.read_text() and OLD not in life.archive.read_text())
    assert "ref:9" in life.live.read_text()
    # Refused as long as the ledger has not noted that the move is done.
    daemon(lambda: life.kbd("forget", OLD, "--yes", now=TODAY).exit_code == 0)
    life.says(TODAY, f"the lesson {TITLE} helped")
    daemon(lambda: "ref:1" in life.live.read_text())
    assert set(life.rows()) == {TITLE}


def test_paused_daemon_rests_and_reads_on_when_resumed(
    life: Life, daemon: Callable[[Callable[[], bool]], None]
) -> None:
    life.kbd("pause", now=TODAY)
    daemon(lambda: "paused" in {str(reason["code"]) for reason in status(life)["reasons"]})
    beat = life.state / "heartbeat.json"
    for _ in range(2):  # the first may be that of a pass under way when the pause began
        seen = beat.read_bytes()
        daemon(lambda seen=seen: beat.read_bytes() != seen)
    life.says(TODAY, f"the lesson {TITLE} helped")
    seen = beat.read_bytes()
    daemon(lambda: beat.read_bytes() != seen)
    assert life.rows()[TITLE].ref == 0
    life.kbd("resume", now=TODAY)
    daemon(lambda: "ref:1" in life.live.read_text())
    assert "paused" not in {str(reason["code"]) for reason in status(life)["reasons"]}
