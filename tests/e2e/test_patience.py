"""What others hold, and trees without a transcript, keep a pass neither from ending nor from showing that it lives."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport, frame
from tests.e2e.world import World

TODAY = date(2026, 6, 11)


class Desk:
    """A world with kbd running; counts the steps it shows."""

    def __init__(self, root: Path) -> None:
        self.world = World(root / "world", 5, TODAY)
        self.world.state.mkdir(mode=0o700)
        self.world.work(25)
        self.world.settle()
        config = load_config(self.world.root / "config.yaml")
        self.engine = Engine(config, self.world.state, {}, str(root), self.world.now)
        self.steps = 0

    def pass_(self, stop: Callable[[], bool] = lambda: False) -> PassReport:
        self.steps = 0
        clock = Clock(self.world.now, time.time(), UTC)
        return self.engine.run_pass(clock, immediate=True, stop=stop, beat=self.beat)

    def beat(self, _report: PassReport) -> None:
        self.steps += 1


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.engine.close()


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Hold the locks of all files of a folder, as another tool does; yield how many."""
    with ExitStack() as stack:
        files = sorted(folder.glob("*.md"))
        for path in files:
            lock = stack.enter_context(open(f"{path}.lock", "w", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield len(files)


def test_locks_held_for_long_delay_a_pass_once_and_not_for_each_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "PASS_WAIT_SECONDS", 0.1)
    with held(desk.world.knowledge) as files:
        report = desk.pass_()
        assert [p.code for p in report.problems if p.code != "source_missing"] == ["write_deferred"] * files
        assert (files > 1, report.written) == (True, 0)
        assert desk.steps >= 5  # it showed that it lives while it waited
    assert desk.pass_().written > 0
    steps = desk.steps
    desk.pass_()
    assert steps >= desk.steps + files  # each file that is written is a step


def test_told_to_stop_a_pass_waits_for_no_lock(desk: Desk) -> None:
    with held(desk.world.knowledge):
        began = time.monotonic()
        report = desk.pass_(stop=lambda: desk.steps > 100)
        assert desk.steps in (101, 102, 103)  # the end of the writing, of the graphs
        assert report.written == 0
        assert time.monotonic() - began < frame.PASS_WAIT_SECONDS / 2


def test_folders_without_a_transcript_show_that_the_scan_goes_on_and_end_when_told(desk: Desk) -> None:
    desk.pass_()
    desk.pass_()
    before = desk.steps
    root = next(spec.root for _, spec in desk.engine.frame.sources() if os.path.isdir(spec.root))
    for number in range(2100):
        os.mkdir(os.path.join(root, f"folder-{number}"))
    desk.pass_()
    assert desk.steps == before + 2
    report = desk.pass_(stop=lambda: desk.steps > before - 2)
    assert not report.complete
