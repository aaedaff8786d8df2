"""Twenty daemons at once, what a dead one left, and a state directory where none may run."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.process import FAST, Kbd
from tests.e2e.world import World

DAEMONS = 20


def make_world(tmp_path: Path, seed: int) -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), FAST)


def test_of_twenty_daemons_started_at_once_exactly_one_runs(tmp_path: Path) -> None:
    world = make_world(tmp_path, 61)
    kbd = Kbd(world)
    world.work(20)
    world.settle()
    command = kbd.command("run")
    daemons = [
        subprocess.Popen(
            command, env=kbd.environment, cwd=world.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(DAEMONS)
    ]
    try:
        deadline = time.monotonic() + 120
        while sum(daemon.poll() is None for daemon in daemons) > 1 or world_is_behind(world):
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)
        (one,) = [daemon for daemon in daemons if daemon.poll() is None]
        others = [daemon for daemon in daemons if daemon is not one]
        assert {daemon.returncode for daemon in others} == {3}
        assert all("another daemon runs here" in str(daemon.communicate()[1]) for daemon in others)
        assert kbd.json("status")["daemon"]["pid"] == one.pid
        one.terminate()
        assert one.wait(5) == 0
        one.communicate()
    finally:
        for daemon in daemons:
            if daemon.poll() is None:
                daemon.kill()
                daemon.communicate()
    assert not world.faults()


def world_is_behind(world: World) -> bool:
    return not (world.state / "heartbeat.json").exists() or bool(world.faults())


@pytest.mark.parametrize("how", ["killed", "stopped", "pid-of-another"])
def test_commands_beside_a_daemon_that_answers_nothing_answer_in_time(how: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, 62)
    kbd = Kbd(world)
    kbd.ok("run", "--once")
    log = (tmp_path / "daemon.log").open("wb")
    with log, subprocess.Popen(kbd.command("run"), env=kbd.environment, cwd=world.root, stderr=log) as daemon:
        try:
            deadline = time.monotonic() + 60
            while not (world.state / "heartbeat.json").exists():
                assert time.monotonic() < deadline
                threading.Event().wait(0.05)
            daemon.send_signal(signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
            if how != "stopped":
                daemon.wait()
            if how == "pid-of-another":
                (world.state / "daemon.lock").write_text(f"{os.getpid()}\n")
            used = os.times()
            status = kbd.json("status")
            spent = os.times()
            assert status["daemon"]["running"] is (how == "stopped")
            assert (status["health"] == "down") is (how != "stopped")
            processor = spent.children_user + spent.children_system - used.children_user - used.children_system
            assert processor < 1.0
            assert spent.elapsed - used.elapsed < 5.0  # many test runs at once share the cores
            kbd.ok("list")
        finally:
            daemon.kill()
