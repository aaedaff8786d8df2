"""The real daemon on real folders, followed by an oracle."""

from __future__ import annotations

import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.process import FAST, Daemon, Kbd
from tests.e2e.world import LATER, World


def make_world(tmp_path: Path, seed: int, settings: str = FAST) -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), settings)


def faults(world: World) -> list[str]:
    try:
        return world.faults()
    except sqlite3.OperationalError as error:  # no ledger yet
        return [str(error)]


def follow(daemon: Daemon, world: World) -> None:
    daemon.until(lambda: not faults(world), lambda: "\n".join(faults(world)))
    world.note_seen()


@pytest.mark.parametrize("seed", [1, 2])
def test_daemon_counts_what_agents_write_while_it_runs(seed: int, tmp_path: Path) -> None:
    world = make_world(tmp_path, seed)
    kbd, prose = Kbd(world), world.prose()
    with kbd.daemon() as daemon:
        for i in range(4):
            for _ in range(10):
                world.work(3)
                daemon.until(lambda: True)
            world.settle()
            follow(daemon, world)
            assert world.prose() == prose
            if i == 1:
                world.bump(next(x for x in world.oracle.lessons.values() if x.base_ref), 3)
            if i == 2:
                world.add_lesson(LATER[0])
                prose = world.prose()
        assert not kbd.list_faults()
        status = kbd.json("status")
        assert status["daemon"]["running"] and status["daemon"]["pid"] == daemon.process.pid
        assert sum(s["lag_bytes"] for s in status["sources"]) == 0
        assert status["bases"][0]["pending_writes"] == 0
        assert status["health"] == "ok", status["reasons"]
    assert not world.faults()


def test_daemon_takes_up_what_was_written_while_it_was_down(tmp_path: Path) -> None:
    world = make_world(tmp_path, 3)
    kbd = Kbd(world)
    for _ in range(3):
        world.work(40)
        world.settle()
        with kbd.daemon() as daemon:
            follow(daemon, world)


def test_second_daemon_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    world = make_world(tmp_path, 4)
    kbd = Kbd(world)
    with kbd.daemon() as daemon:
        follow(daemon, world)
        for args in (("run",), ("run", "--once")):
            second = kbd(*args)
            assert second.returncode == 3, second.stderr
            assert str(daemon.process.pid) in second.stderr
        world.work(20)
        world.settle()
        follow(daemon, world)


def test_status_without_a_daemon_is_down_and_exits_3(tmp_path: Path) -> None:
    world = make_world(tmp_path, 5)
    kbd = Kbd(world)
    kbd.ok("run", "--once")
    done = kbd("status", "--json")
    assert done.returncode == 3
    assert '"down"' in done.stdout


def test_hangup_takes_a_good_config_and_refuses_a_bad_one(tmp_path: Path) -> None:
    world = make_world(tmp_path, 6)
    kbd, config = Kbd(world), world.root / "config.yaml"
    good = config.read_text(encoding="utf-8")
    lesson = world.oracle.lessons["Retry storm"]
    with kbd.daemon() as daemon:
        follow(daemon, world)

        config.write_text(good + "nonsense: 1\nscan: {every_seconds: never}\n", encoding="utf-8")
        daemon.hang_up()
        daemon.until(lambda: "config_refused" in daemon.said())
        world.work(20)
        world.settle()
        follow(daemon, world)
        config.write_text(good, encoding="utf-8")  # the command line reads it too
        assert "nonsense" in kbd.reasons()["pass_failed"]

        more = good.replace("sources:\n", "sources:\n  - {name: more, path: more, format: text}\n")
        (world.root / "more").mkdir()
        (world.root / "more" / "new.log").write_text("2020-01-01T10:00:00Z too old to be the newest\n\n")
        config.write_text(more, encoding="utf-8")
        daemon.hang_up()
        daemon.until(lambda: "config_loaded" in daemon.said())
        with open(world.root / "more" / "new.log", "a") as log:
            log.write(f"{world.today}T09:00:00Z here {lesson.title} helped\n\n")
        world.oracle.cite(lesson, "more", "more:new.log", world.today)
        follow(daemon, world)


def test_daemon_killed_again_and_again_ends_where_the_oracle_does(tmp_path: Path) -> None:
    world = make_world(tmp_path, 7)
    kbd = Kbd(world)
    for i in range(5):
        with pytest.raises(AssertionError, match="exited -9"), kbd.daemon() as daemon:
            for _ in range(2 + 4 * i):
                world.work(3)
                daemon.until(lambda: "started" in daemon.said())
            daemon.process.kill()
            daemon.until(lambda: False)
    world.settle()
    with kbd.daemon() as daemon:
        follow(daemon, world)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the daemon's processor time is read from /proc")
def test_daemon_told_to_stop_amid_a_backlog_ends_in_time_and_goes_on_later(tmp_path: Path) -> None:
    world = make_world(tmp_path, 8)
    kbd = Kbd(world)
    lesson = world.oracle.lessons["Retry storm"]
    with open(world.root / "logs" / "long.log", "w") as log:
        for i in range(20_000):
            time = f"{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}"
            log.write(f"{world.today}T{time}Z line {i} on {lesson.title} again\n")
            world.oracle.cite(lesson, f"long {i}", "logs:long.log", world.today)
    with kbd.daemon() as daemon:
        daemon.until(lambda: daemon.cpu_seconds() > 1.0)  # amid a batch of dense citations
        daemon.end()
    assert world.faults(), "the backlog was too short"
    kbd.ok("run", "--once")
    assert not world.faults()
