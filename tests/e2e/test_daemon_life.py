"""What may happen to a daemon from outside: its streams, its terminal, its state directory and its configuration go."""

from __future__ import annotations

import fcntl
import os
import subprocess
import termios
from pathlib import Path

import pytest

from tests.e2e.process import PATIENCE_SECONDS, Daemon, Kbd
from tests.e2e.test_daemon import follow, make_world


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full", "2> >(exec sleep 0)"])
def test_daemon_that_nobody_hears_refuses_a_bad_configuration_and_goes_on(streams: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, 11)
    kbd = Kbd(world)
    with kbd.daemon(["bash", "-c", f'exec "$@" {streams}', "-", *kbd.command("run")]) as daemon:
        world.work(20)
        world.settle()
        follow(daemon, world)
        heartbeat, config = world.state / "heartbeat.json", world.root / "config.yaml"
        daemon.until(heartbeat.exists)
        good = config.read_text()
        config.write_text("bases: [")
        daemon.hang_up()
        daemon.until(lambda: "configuration refused" in heartbeat.read_text())
        config.write_text(good)
        world.work(20)
        world.settle()
        follow(daemon, world)
        for number in range(3):  # none of them is a file of kbd
            assert not os.path.realpath(f"/proc/{daemon.process.pid}/fd/{number}").startswith(str(world.root / "state"))


def on_a_terminal(kbd: Kbd, command: list[str]) -> tuple[Daemon, int]:
    """Start a daemon as the leader of a session on a terminal; return it with the terminal's other end."""
    ours, theirs = os.openpty()
    log = kbd.world.root / "daemon.log"

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with open(log, "ab") as out:
        process = subprocess.Popen(
            command, env=kbd.environment, stdin=theirs, stdout=out, stderr=out, preexec_fn=take_terminal
        )
    os.close(theirs)
    return Daemon(process, log), ours


def test_daemon_ends_with_the_terminal_that_it_was_started_on(tmp_path: Path) -> None:
    world = make_world(tmp_path, 12)
    kbd = Kbd(world)
    daemon, terminal = on_a_terminal(kbd, kbd.command("run"))
    world.work(20)
    world.settle()
    follow(daemon, world)
    os.close(terminal)
    assert daemon.process.wait(PATIENCE_SECONDS) == 0
    assert daemon.said().endswith("stopped\n")


def test_daemon_told_to_outlive_its_terminal_takes_a_hangup_for_a_reload(tmp_path: Path) -> None:
    world = make_world(tmp_path, 13)
    kbd = Kbd(world)
    daemon, terminal = on_a_terminal(kbd, ["nohup", *kbd.command("run")])
    world.work(20)
    world.settle()
    follow(daemon, world)
    os.close(terminal)
    daemon.until(lambda: "config_loaded" in daemon.said())
    world.work(20)
    world.settle()
    follow(daemon, world)
    daemon.end()


@pytest.mark.parametrize("gone", ["directory", "ledger"])
def test_daemon_whose_state_is_gone_ends_and_the_next_one_counts_on(gone: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, 14)
    kbd = Kbd(world)
    with open(world.root / "daemon.log", "ab") as out:
        process = subprocess.Popen(kbd.command("run"), env=kbd.environment, stderr=out)
    daemon = Daemon(process, world.root / "daemon.log")
    world.work(20)
    world.settle()
    follow(daemon, world)
    moved = world.state if gone == "directory" else world.state / "ledger.db"
    moved.rename(world.root / "moved")
    assert process.wait(PATIENCE_SECONDS) == 1
    assert "state_gone" in daemon.said()
    assert "moved" in daemon.said()
    (world.root / "moved").rename(moved)
    with kbd.daemon() as again:
        world.work(20)
        world.settle()
        follow(again, world)


def test_status_says_that_the_daemon_runs_on_another_configuration(tmp_path: Path) -> None:
    world = make_world(tmp_path, 15)
    kbd = Kbd(world)
    with kbd.daemon() as daemon:
        world.work(20)
        world.settle()
        follow(daemon, world)
        assert "config_changed" not in kbd.reasons()
        config = world.root / "config.yaml"
        config.write_text(f"{config.read_text()}# edited\n")
        assert str(daemon.process.pid) in kbd.json("status")["reasons"][0]["remedy"]
        assert "config_changed" in kbd.reasons()
        daemon.hang_up()
        daemon.until(lambda: "config_changed" not in kbd.reasons())


def test_daemon_that_began_without_a_configuration_takes_the_first_and_refuses_its_loss(tmp_path: Path) -> None:
    world = make_world(tmp_path, 16)
    kbd = Kbd(world, HOME=str(tmp_path))
    config = tmp_path / ".config/kbd/config.yaml"
    state = ["--state-dir", str(tmp_path / "own")]
    run = [kbd.command()[0], "-m", "kbd", *state]

    def listed() -> str:
        return subprocess.check_output([*run, "list", "--json"], env=kbd.environment, text=True)

    with kbd.daemon([*run, "run"]) as daemon:
        daemon.until(lambda: "started" in daemon.said())
        config.parent.mkdir(parents=True)
        config.write_text(f"bases: [{{name: lessons, files: [{world.knowledge}/*.md]}}]\n")
        daemon.hang_up()
        daemon.until(lambda: "Retry storm" in listed())
        config.unlink()
        daemon.hang_up()
        daemon.until(lambda: "config_refused" in daemon.said())
        assert "there is no such file" in daemon.said()


SLOW = (
    "write: {every_seconds: 3600, git_every_seconds: 3600, quiet_seconds: %d, max_wait_seconds: %d}\n"
    "scan: {every_seconds: 1}\n"
)


def test_daemon_told_to_end_writes_what_it_has_collected(tmp_path: Path) -> None:
    world = make_world(tmp_path, 14, SLOW % (0, 0))
    with Kbd(world).daemon() as daemon:
        world.work(20)
        world.settle()
        follow(daemon, world)
        world.work(20)
        world.settle()
        daemon.until(lambda: world.counted() == world.oracle.numbers())
        assert world.markdown_faults()
    assert world.faults() == []


def test_daemon_told_to_end_leaves_a_file_alone_that_somebody_just_edited(tmp_path: Path) -> None:
    world = make_world(tmp_path, 14, SLOW % (3600, 3600))
    with Kbd(world).daemon() as daemon:
        world.work(20)
        world.settle()
        daemon.until((world.state / "ledger.db").exists)
        daemon.until(lambda: world.counted() == world.oracle.numbers())
        before = world.prose(), world.shown()
    assert (world.prose(), world.shown()) == before
