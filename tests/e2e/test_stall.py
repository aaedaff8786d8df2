"""A daemon that makes no progress ends itself; one that is slow, or was stopped for long, does not."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.process import FAST, Daemon, Kbd
from tests.e2e.world import World

ROOT = Path(__file__).parents[2]


class Sick(Kbd):
    """Runs a daemon to which something will happen."""

    def __init__(self, world: World, illness: str, limit_seconds: float = 600) -> None:
        super().__init__(world, PYTHONPATH=str(ROOT))
        sick = [sys.executable, "-m", "tests.e2e.sick_daemon"]
        self.sick = [*sick, illness, str(limit_seconds), str(world.root)]

    def strike(self, daemon: Daemon) -> None:
        daemon.until(lambda: (self.world.state / "heartbeat.json").exists())
        (self.world.root / "strike").touch()


def make_world(tmp_path: Path, seed: int, settings: str = FAST) -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), settings)


@pytest.mark.parametrize(("illness", "code"), [("hang", 1), ("spin", -signal.SIGPROF)])
def test_daemon_that_hangs_in_a_pass_ends_itself_and_says_where(illness: str, code: int, tmp_path: Path) -> None:
    kbd = Sick(make_world(tmp_path, 1), illness, 2)
    with pytest.raises(AssertionError, match=f"exited {code}\n"), kbd.daemon(kbd.sick) as daemon:
        kbd.strike(daemon)
        daemon.until(lambda: False)
    said = (kbd.world.root / "daemon.log").read_text()
    assert "sick_daemon.py" in said, "no word of where it hung"
    assert illness == "spin" or "stalled seconds=2" in said
    kbd.world.work(10)
    kbd.world.settle()
    kbd.ok("run", "--once")
    assert not kbd.world.faults()


def test_daemon_that_is_slow_and_gets_on_lives_past_the_limit_and_shows_it(tmp_path: Path) -> None:
    kbd = Sick(make_world(tmp_path, 2), "creep", 2)
    with kbd.daemon(kbd.sick) as daemon:
        kbd.strike(daemon)
        daemon.until((kbd.world.root / "crept").exists)
    signs = int((kbd.world.root / "crept").read_text())
    assert signs >= 2, "`status` would have called it stalled"


def test_daemon_that_was_stopped_for_longer_than_the_limit_goes_on(tmp_path: Path) -> None:
    world = make_world(tmp_path, 3)
    kbd = Sick(world, "none", 2)
    with kbd.daemon(kbd.sick) as daemon:
        daemon.until(lambda: (world.state / "heartbeat.json").exists())
        daemon.process.send_signal(signal.SIGSTOP)
        with suppress(subprocess.TimeoutExpired):
            daemon.process.wait(timeout=3)
        daemon.process.send_signal(signal.SIGCONT)
        world.work(10)
        world.settle()
        daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))
