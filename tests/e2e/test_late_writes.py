"""An editor opened a file before kbd wrote it, and writes into what it opened: its text is found beside the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine
from kbd.errors import FileUnwritable
from kbd.store import displaced
from kbd.store.temporary import target_mark
from tests.e2e.process import FAST, Daemon, Kbd
from tests.e2e.world import World
from tests.leases import need_leases

TODAY = date(2026, 6, 11)
LATE = b"# What the editor had in its window\n"


class Desk:
    """A world with kbd running, and an editor."""

    def __init__(self, root: Path) -> None:
        self.world = World(root / "world", 5, TODAY)
        self.world.state.mkdir(mode=0o700)
        config = load_config(self.world.root / "config.yaml")
        self.engine = Engine(config, self.world.state, {}, str(root), self.world.now)
        self.problems: list[str] = []

    def work(self, later: float = 0) -> None:
        """Let agents cite until kbd has written each file, in one pass, so many seconds from now."""
        self.world.work(25)
        self.world.settle()
        report = self.engine.run_pass(Clock(self.world.now, time.time() + later, UTC), immediate=True)
        self.problems = [problem.code for problem in report.problems]

    def copies(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.world.knowledge.glob("*.kbd-conflict.md"))]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.engine.close()


def test_late_write_is_saved_beside_the_file_at_the_next_pass(desk: Desk) -> None:
    with open(desk.world.knowledge / "en.md", "r+b", buffering=0) as editor:
        desk.work()
        editor.write(LATE)
        assert desk.copies() == []
        desk.work()
    assert [text.startswith(LATE) for text in desk.copies()] == [True]
    assert "write_conflict" in desk.problems
    desk.work()
    assert "write_conflict" in desk.problems, "told until the copy is gone"
    for copy in desk.world.knowledge.glob("*.kbd-conflict.md"):
        copy.unlink()
    desk.work()
    assert "write_conflict" not in desk.problems


def test_late_write_is_saved_when_kbd_ends(desk: Desk) -> None:
    with open(desk.world.knowledge / "en.md", "r+b", buffering=0) as editor:
        desk.work()
        editor.write(LATE)
        desk.engine.close()
    assert [text.startswith(LATE) for text in desk.copies()] == [True]


def test_late_write_that_cannot_be_saved_is_told_and_saved_later(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: object, *_: object) -> str:
        raise FileUnwritable("No space left on device", where=str(path))

    with open(desk.world.knowledge / "en.md", "r+b", buffering=0) as editor:
        desk.work()
        editor.write(LATE)
        with monkeypatch.context() as context:
            context.setattr(displaced, "save_conflict", full)
            desk.work()
        assert "write_failed" in desk.problems
        assert desk.copies() == []
        desk.work()
    assert [text.startswith(LATE) for text in desk.copies()] == [True]


def test_command_that_ends_waits_for_an_editor_that_has_the_file_open(desk: Desk) -> None:
    need_leases(desk.world.root)
    note = desk.world.knowledge / "en.md"
    desk.engine.close()
    command = [sys.executable, "-m", "kbd", "--config", str(desk.world.root / "config.yaml"), "--state-dir"]
    command += [str(desk.world.state), "add", "A lesson that a person adds", "x", "--file", str(note)]
    with open(note, "r+b", buffering=0) as editor:
        inode = os.fstat(editor.fileno()).st_ino
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as adding:
            while (note.stat().st_ino == inode or list(note.parent.glob(".kbd-*.tmp"))) and adding.poll() is None:
                os.sched_yield()  # nor while it still looks at what came out: then the text goes back into the file
            editor.write(LATE)
            editor.close()
            said = adding.communicate(timeout=30)[1]
    assert (adding.returncode, b"A lesson that a person adds" in note.read_bytes()) == (0, True), said
    assert [text.startswith(LATE) for text in desk.copies()] == [True]
    assert "an editor wrote over kbd; its text is in" in said


def test_text_that_a_killed_command_left_is_saved_by_a_daemon_that_lives_on(desk: Desk) -> None:
    desk.work()
    left = desk.world.knowledge / f".kbd-{'0' * 16}-{target_mark('en.md')}-{'1' * 16}-{'2' * 16}.tmp"
    left.write_bytes(LATE)
    desk.work()
    assert (left.exists(), desk.copies()) == (True, [])
    desk.work(later=700)
    assert (left.exists(), desk.copies()) == (False, [LATE])


# --- the daemon ----------------------------------------------------------------------------------------------


class Writing:
    """A daemon that has just replaced a file which an editor has open for writing."""

    def __init__(self, world: World, daemon: Daemon) -> None:
        self.world, self.daemon, self.note = world, daemon, world.knowledge / "en.md"
        self.copy = world.knowledge / "en.kbd-conflict.md"
        daemon.until((world.state / "heartbeat.json").exists)
        self.editor = self.note.open("r+b", buffering=0)
        before = os.fstat(self.editor.fileno()).st_ino
        world.work(40)
        world.settle()
        daemon.until(lambda: self.note.stat().st_ino != before)

    def is_saved(self) -> bool:
        return self.copy.exists() and self.copy.read_bytes().startswith(LATE)


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    need_leases(tmp_path)
    world = World(tmp_path / "world", 5, TODAY, FAST.replace("every_seconds: 1", "every_seconds: 600"))
    with Kbd(world).daemon() as daemon:
        made = Writing(world, daemon)
        yield made
        made.editor.close()


def test_daemon_saves_a_late_write_within_seconds_while_it_rests_and_while_it_is_paused(writing: Writing) -> None:
    writing.editor.write(LATE)
    writing.daemon.until(writing.is_saved, patience_seconds=10)
    Kbd(writing.world).ok("pause")
    size = writing.copy.stat().st_size
    writing.editor.seek(0, os.SEEK_END)
    writing.editor.write(b"more of it\n")
    writing.daemon.until(lambda: writing.copy.stat().st_size == size + 11, patience_seconds=10)


def test_daemon_told_to_end_waits_for_an_editor_saves_its_text_and_says_so(writing: Writing) -> None:
    began = time.monotonic()
    writing.daemon.process.send_signal(signal.SIGTERM)
    writing.daemon.until(lambda: "stopped" in writing.daemon.said())
    writing.editor.write(LATE)
    writing.editor.close()
    assert writing.daemon.process.wait(timeout=10) == 0
    assert (writing.is_saved(), time.monotonic() - began < 6) == (True, True)
    assert f"an editor wrote over kbd; its text is in {writing.copy}" in writing.daemon.said()


def test_copy_that_waits_to_be_merged_is_told_and_no_failure(desk: Desk) -> None:
    desk.work()
    desk.engine.close()
    (desk.world.knowledge / "en.kbd-conflict.md").write_bytes(LATE)
    command = [sys.executable, "-m", "kbd", "--config", str(desk.world.root / "config.yaml"), "--state-dir"]
    command += [str(desk.world.state), "--now", desk.world.now.isoformat(), "run", "--once"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "its text is in en.kbd-conflict.md" in done.stderr) == (0, True), done.stderr
