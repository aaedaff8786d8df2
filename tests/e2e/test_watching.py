"""Events that do not come are noticed, what they would have told is found all the same, and `status` says so."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.privileges import INOTIFY_LIMITS, with_own_limits, with_private_mounts
from tests.e2e.process import Daemon, Kbd
from tests.e2e.test_stall import Sick
from tests.e2e.world import World

AT_ONCE = "write: {every_seconds: 0, git_every_seconds: 0, quiet_seconds: 0, max_wait_seconds: 0}\n"
RARELY_SCANNED = AT_ONCE + "scan: {every_seconds: 3600}\n"
"""What is counted soon was told by events, or by a look everywhere after they were found to be missing."""
OFTEN_SCANNED = AT_ONCE + "scan: {every_seconds: 1}\n"


def make_world(tmp_path: Path, seed: int, settings: str = RARELY_SCANNED) -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), settings)


def follow(daemon: Daemon, world: World, actions: int = 10) -> None:
    """Let agents work, and wait until all of it is counted."""
    world.work(actions)
    world.settle()
    daemon.until((world.state / "heartbeat.json").exists)
    daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))


def watching(kbd: Kbd) -> str:
    return str(kbd.json("sources")["watching"])


def limit(name: str, number: int) -> None:
    (INOTIFY_LIMITS / name).write_text(f"{number}\n")


@pytest.mark.parametrize("kind", ["emitter", "reader", "dispatcher"])
def test_thread_of_the_watcher_that_ends_is_replaced(kind: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, 21)
    kbd = Sick(world, kind)
    with kbd.daemon(kbd.sick) as daemon:
        follow(daemon, world)
        kbd.strike(daemon)
        daemon.until(lambda: not (world.root / "strike").exists())
        (world.root / "claude" / "projects" / "wake.jsonl").touch()  # the thread ends when it next runs
        (world.knowledge / "note.md").touch()
        (world.root / "logs" / "wake.log").touch()
        daemon.until(lambda: "watch_mended" in daemon.said())
        follow(daemon, world)
        assert "a thread of the watcher ended" in watching(kbd)
        assert kbd.json("status")["health"] == "ok"


@pytest.mark.parametrize(
    ("name", "number", "sysctl"),
    [
        ("max_inotify_instances", 0, "fs.inotify.max_user_instances"),
        ("max_inotify_watches", 0, "fs.inotify.max_user_watches"),
        ("max_inotify_watches", 4, "fs.inotify.max_user_watches"),
    ],
    ids=["no-instance", "no-watch", "not-for-the-folders-below"],
)
def test_daemon_without_inotify_polls_and_names_the_limit_until_it_is_raised(
    name: str, number: int, sysctl: str, tmp_path: Path
) -> None:
    def body() -> None:
        world = make_world(tmp_path, 22, OFTEN_SCANNED)
        kbd = Kbd(world)
        for i in range(5):
            (world.root / "claude" / "projects" / f"-w-{i}").mkdir()
        limit(name, number)
        with kbd.daemon() as daemon:
            follow(daemon, world)
            daemon.until(lambda: sysctl in kbd.reasons().get("watch_degraded", ""), kbd.reasons)
            follow(daemon, world)
            limit(name, 1000)
            daemon.until(lambda: watching(kbd) == "inotify", lambda: watching(kbd))
            follow(daemon, world)

    with_own_limits(body, tmp_path / "failure.txt")


def test_daemon_that_runs_out_of_watches_later_polls_from_then_on(tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 23, OFTEN_SCANNED)
        kbd = Kbd(world)
        limit("max_inotify_watches", 12)
        with kbd.daemon() as daemon:
            follow(daemon, world, 3)
            assert watching(kbd) == "inotify"
            for i in range(12):
                (world.root / "claude" / "projects" / f"-w-{i}").mkdir()
            daemon.until(lambda: "max_user_watches" in watching(kbd), lambda: watching(kbd))
            follow(daemon, world)

    with_own_limits(body, tmp_path / "failure.txt")


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_root_that_is_made_anew_is_watched_anew(how: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, 24)
    kbd, root = Kbd(world), world.root / "claude"
    with kbd.daemon() as daemon:
        follow(daemon, world)
        aside = world.root / "aside"
        root.rename(aside)
        if how == "deleted":
            shutil.copytree(aside, root)
            shutil.rmtree(aside)
        else:
            shutil.copytree(aside, root)
        (world.root / "logs" / "wake.log").touch()
        daemon.until(lambda: "watch_mended" in daemon.said())
        follow(daemon, world)
        assert "made anew" in watching(kbd) or "thread" in watching(kbd)


def test_root_that_is_gone_is_said_and_taken_up_when_it_is_back(tmp_path: Path) -> None:
    world = make_world(tmp_path, 25, OFTEN_SCANNED)
    kbd, root, aside = Kbd(world), world.root / "claude", world.root / "aside"
    with kbd.daemon() as daemon:
        follow(daemon, world)
        before = world.counted()
        shutil.copytree(root, aside)
        shutil.rmtree(root)
        daemon.until(lambda: "source_unreadable" in kbd.reasons(), kbd.reasons)
        assert world.counted() == before
        aside.rename(root)
        follow(daemon, world)
        daemon.until(lambda: "source_unreadable" not in kbd.reasons(), kbd.reasons)


def test_root_on_a_mount_that_comes_and_goes_loses_nothing(tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 26, OFTEN_SCANNED)
        kbd, root, aside = Kbd(world), world.root / "claude", tmp_path / "aside"
        shutil.copytree(root, aside)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(root)], check=True)
        shutil.copytree(aside, root, dirs_exist_ok=True)
        with kbd.daemon() as daemon:
            follow(daemon, world)
            world.note_seen()
            before = world.counted()
            subprocess.run(["mount", "--move", str(root), str(aside)], check=True)
            daemon.until(lambda: "watch_mended" in daemon.said())
            assert world.counted() == before
            subprocess.run(["mount", "--move", str(aside), str(root)], check=True)
            follow(daemon, world)
            subprocess.run(["umount", "-l", str(root)], check=True)
            daemon.until(lambda: daemon.said().count("watch_mended") >= 2)
            world.logs.write(world.logs.logs[0])
            world.settle()
            daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))

    with_private_mounts(body, tmp_path / "failure.txt")
