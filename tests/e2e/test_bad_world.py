"""Bad input and a bad world: nothing is lost, the exit code tells, status says it, and kbd recovers by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.privileges import bound_by_modes, fill, mount_small, remount, with_private_mounts
from tests.e2e.process import FAST, Kbd
from tests.e2e.world import World


class Bound(Kbd):
    """kbd as a user whom file modes bind, also where the tests run as root."""

    def __call__(self, *args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.world.root,
            preexec_fn=bound_by_modes,  # fmt: skip
        )


def make_world(tmp_path: Path, seed: int, settings: str = "") -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), settings)


def arrive(world: World, actions: int = 25) -> None:
    world.work(actions)
    world.settle()


def test_broken_config_tells_all_faults_with_their_places(tmp_path: Path) -> None:
    world = make_world(tmp_path, 1, "wirte: {every_seconds: 1}\nscan: {every_seconds: soon}\ndecay: {at: 25:61}\n")
    for args in (("run", "--once"), ("run",), ("status",), ("list",)):
        done = Kbd(world)(*args)
        assert done.returncode == 2
        for part in ("config.yaml:6: ", "wirte", "write", "config.yaml:7: ", "every_seconds", "config.yaml:8: ", "at"):
            assert part in done.stderr
    assert not (world.state / "ledger.db").exists()


def test_config_that_is_no_yaml_tells_the_line(tmp_path: Path) -> None:
    world = make_world(tmp_path, 1, "write: {every_seconds: [}\n")
    done = Kbd(world)("run", "--once")
    assert done.returncode == 2
    assert "config.yaml:6" in done.stderr


def test_config_that_is_a_fifo_or_a_folder_or_absent_is_refused_at_once(tmp_path: Path) -> None:
    world = make_world(tmp_path, 1)
    config = world.root / "config.yaml"
    for make in (lambda: os.mkfifo(config), config.mkdir, lambda: None):
        config.unlink() if config.is_file() or config.is_fifo() else None
        make()
        done = Kbd(world)("run", "--once", timeout=10)
        assert done.returncode == 2
        assert "config.yaml" in done.stderr
        config.rmdir() if config.is_dir() else None


def test_unreadable_knowledge_file_loses_no_entry(tmp_path: Path) -> None:
    world = make_world(tmp_path, 2)
    kbd, hidden = Bound(world), world.knowledge / "en.md"
    arrive(world)
    kbd.ok("run", "--once")
    world.note_seen()
    known = world.counted().keys()
    hidden.chmod(0)
    arrive(world)
    done = kbd("run", "--once")
    assert done.returncode == 1
    assert "en.md" in done.stderr
    assert world.counted().keys() == known
    assert "knowledge_unreadable" in kbd.reasons()
    hidden.chmod(0o640)
    kbd.ok("run", "--once")
    assert not world.faults()
    assert hidden.stat().st_mode & 0o777 == 0o640
    assert "knowledge_unreadable" not in kbd.reasons()


def test_knowledge_file_unreadable_from_the_start_earns_from_all_history_later(tmp_path: Path) -> None:
    world = make_world(tmp_path, 3)
    kbd, hidden = Bound(world), world.knowledge / "zh.md"
    hidden.chmod(0)
    arrive(world)
    assert kbd("run", "--once").returncode == 1
    hidden.chmod(0o644)
    kbd.ok("run", "--once")
    assert not world.faults()


def test_unreadable_transcripts_are_read_when_they_can_be(tmp_path: Path) -> None:
    world = make_world(tmp_path, 4)
    kbd = Bound(world)
    arrive(world, 60)
    files = [p for p in world.root.glob("claude/projects/*/*.jsonl")][::2] + [world.root / "logs" / "app.log"]
    for path in files:
        path.chmod(0)
    done = kbd("run", "--once")
    assert done.returncode == 1
    assert str(files[0]) in done.stderr
    assert "source_unreadable" in kbd.reasons()
    for path in files:
        path.chmod(0o644)
    kbd.ok("run", "--once")
    assert not world.faults()
    assert "source_unreadable" not in kbd.reasons()


def test_folder_that_went_is_missed_and_taken_up_again(tmp_path: Path) -> None:
    world = make_world(tmp_path, 5)
    kbd, root, aside = Kbd(world), world.root / "claude", world.root / "aside"
    arrive(world)
    kbd.ok("run", "--once")
    world.note_seen()
    before = world.counted()
    root.rename(aside)
    assert kbd("run", "--once").returncode == 1
    assert world.counted() == before
    assert "source_unreadable" in kbd.reasons()
    aside.rename(root)
    arrive(world)
    kbd.ok("run", "--once")
    assert not world.faults()


def test_knowledge_folder_that_went_loses_no_entry(tmp_path: Path) -> None:
    world = make_world(tmp_path, 6)
    kbd, aside = Kbd(world), world.root / "aside"
    arrive(world)
    kbd.ok("run", "--once")
    world.note_seen()
    world.knowledge.rename(aside)
    arrive(world)
    assert kbd("run", "--once").returncode == 1
    assert "knowledge_unreadable" in kbd.reasons()
    assert not world.knowledge.exists()
    aside.rename(world.knowledge)
    kbd.ok("run", "--once")
    assert not world.faults()


def test_bytes_that_are_no_utf8_stay_and_stop_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, 7)
    kbd, note = Kbd(world), world.knowledge / "en.md"
    data = note.read_bytes().replace(b"People write here too.", b"Latin: caf\xe9 \xff\xfe\x00\x80.")
    lesson = world.oracle.lessons["Retry storm"]
    data = data.replace(lesson.body.encode(), lesson.body.encode() + b" na\xefve \xed\xa0\x80")
    note.write_bytes(data + b"- [pitfall] **Caf\xe9 title that is no UTF-8** \xe2\x80\x94 body of it\n")
    prose = world.prose()
    for folder, name in (("claude/projects/-w-app", "bad.jsonl"), ("logs", "bad.log")):
        (world.root / folder).mkdir(exist_ok=True)
        (world.root / folder / name).write_bytes(
            b'\xff\xfe\xfd {"type": \x80\n\x00\x00\x00\n{}\n[1]\n"x"\n' + b"\xed\xa0\x80\xe9" * 100 + b"\n\n"
        )
    arrive(world)
    kbd.ok("run", "--once")
    assert world.prose() == prose
    wrong = [fault for fault in world.faults() if "Caf" not in fault]
    assert not wrong
    assert any("Caf" in entry["title"] for entry in kbd.json("list")["entries"])
    assert kbd("lint").returncode in (0, 1)


def test_pipes_and_folders_in_place_of_files_are_never_opened(tmp_path: Path) -> None:
    world = make_world(tmp_path, 8)
    kbd = Kbd(world)
    os.mkfifo(world.knowledge / "pipe.md")
    (world.knowledge / "folder.md").mkdir()
    os.mkfifo(world.root / "logs" / "pipe.log")
    arrive(world)
    os.mkfifo(world.root / "claude" / "projects" / "-w-app" / "pipe.jsonl")
    (world.root / "logs" / "zero.log").symlink_to("/dev/zero")
    done = kbd("run", "--once", timeout=20)
    assert done.returncode in (0, 1), done.stderr
    assert not world.faults()


def test_known_file_that_became_a_pipe_loses_no_count(tmp_path: Path) -> None:
    world = make_world(tmp_path, 9)
    kbd, note, aside = Kbd(world), world.knowledge / "en.md", world.root / "aside.md"
    arrive(world)
    kbd.ok("run", "--once")
    world.note_seen()
    note.rename(aside)
    os.mkfifo(note)
    arrive(world)
    kbd("run", "--once", timeout=20)
    note.unlink()
    aside.rename(note)
    kbd("run", "--once", timeout=20)
    kbd.ok("run", "--once")
    assert not world.faults()


def test_full_state_folder_loses_nothing(tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 10)
        kbd = Kbd(world)
        world.state.mkdir(mode=0o700)
        mount_small(world.state, 3000)
        arrive(world)
        kbd.ok("run", "--once")
        world.note_seen()
        ballast = fill(world.state)
        arrive(world, 60)
        done = kbd("run", "--once")
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert "full" in done.stderr or "No space" in done.stderr
        told = kbd("status", "--json")
        assert told.returncode in (1, 3)
        assert "disk" in told.stdout + told.stderr
        assert len(world.shown()) == len(world.oracle.numbers())
        ballast.unlink()
        kbd.ok("run", "--once")
        assert not world.faults()

    with_private_mounts(body, tmp_path / "failure.txt")


def test_state_folder_that_is_full_from_the_start_is_said(tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 11)
        kbd, prose = Kbd(world), world.prose()
        world.state.mkdir(mode=0o700)
        mount_small(world.state, 200)
        ballast = fill(world.state)
        arrive(world)
        done = kbd("run", "--once")
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert world.prose() == prose
        ballast.unlink()
        remount(world.state, "size=3m")
        kbd.ok("run", "--once")
        assert not world.faults()

    with_private_mounts(body, tmp_path / "failure.txt")


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_knowledge_folder_that_takes_no_writes_is_written_later(how: str, tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 12)
        kbd, real = Kbd(world), tmp_path / "real"
        shutil.move(world.knowledge, real)
        world.knowledge.mkdir()
        mount_small(world.knowledge, 80)
        shutil.copytree(real, world.knowledge, dirs_exist_ok=True)
        kbd.ok("run", "--once")
        before = world.prose()
        if how == "full":
            ballast = fill(world.knowledge)
        else:
            remount(world.knowledge, "ro")
        arrive(world, 50)
        done = kbd("run", "--once")
        assert done.returncode == 1, done.stderr
        assert world.prose() == before
        assert world.counted() == world.oracle.numbers()
        assert "write_failed" in kbd.reasons()
        assert kbd.json("status")["bases"][0]["pending_writes"] > 0
        if how == "full":
            ballast.unlink()
        else:
            remount(world.knowledge, "rw")
        kbd.ok("run", "--once")
        assert not world.faults()
        assert "write_failed" not in kbd.reasons()

    with_private_mounts(body, tmp_path / "failure.txt")


def test_daemon_outlives_a_full_state_folder(tmp_path: Path) -> None:
    def body() -> None:
        world = make_world(tmp_path, 13, FAST)
        kbd = Kbd(world)
        world.state.mkdir(mode=0o700)
        mount_small(world.state, 12_000)
        with kbd.daemon() as daemon:
            arrive(world)
            daemon.until(lambda: (world.state / "heartbeat.json").exists() and not world.faults())
            world.note_seen()
            ballast = fill(world.state)
            arrive(world, 60)
            daemon.until(lambda: "pass_failed" in daemon.said())
            status = kbd.json("status")
            assert status["health"] == "degraded", status
            ballast.unlink()
            daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))
            daemon.until(lambda: kbd.json("status")["health"] == "ok", lambda: kbd.json("status")["reasons"])

    with_private_mounts(body, tmp_path / "failure.txt")
