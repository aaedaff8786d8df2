"""Which events wake the daemon, and how far it looks then: a build or a checkout beside the lessons is nothing."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
)
from watchdog.observers.api import BaseObserver

from kbd.engine.watching import Watched, seconds_between_scans
from kbd.hints import FLOOD_EVENTS, Hints
from kbd.watch import STEP_FILES, Watch, _Handler
from tests.attack.lab import CONFIG, TITLE, Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path, CONFIG.replace('"kb/*.md"', '"kb/**/*.md", "notes.md"'))
    lab.note()
    lab.run()
    return lab


def folder(lab: Lab, path: str) -> Watched:
    assert lab.engine is not None
    return next(w for w in lab.engine.watched_folders() if w.path == str(lab.root / path))


def noted(lab: Lab, path: str, event: FileSystemEvent) -> tuple[bool, set[str] | None]:
    hints = Hints()
    _Handler(hints, folder(lab, path), threading.Event()).on_any_event(event)
    return hints.wake.is_set(), hints.take()


def test_what_git_and_builds_write_beside_lessons_wakes_nobody(lab: Lab) -> None:
    for name in (".git/index.lock", "node_modules/a/b.js", ".kbd-0123456789abcdef.tmp", "state/heartbeat.json"):
        assert noted(lab, "kb", FileCreatedEvent(str(lab.root / "kb" / name))) == (False, set())
    assert noted(lab, "kb", DirDeletedEvent(str(lab.root / "kb" / "build"))) == (False, set())


def test_lesson_that_moved_wakes_without_a_look_at_the_transcripts(lab: Lab) -> None:
    for event in (
        FileModifiedEvent(str(lab.root / "kb" / "lessons.md")),
        FileMovedEvent(str(lab.root / "kb" / ".new"), str(lab.root / "kb" / "deep" / "lessons.md")),
        FileModifiedEvent(str(lab.root / "kb" / ".knowledge-graph.yaml")),
        DirCreatedEvent(str(lab.root / "kb" / "deep")),
    ):
        assert noted(lab, "kb", event) == (True, set())


def test_folder_of_a_single_file_is_not_watched_below(lab: Lab) -> None:
    assert not folder(lab, ".").deep


def test_new_folder_of_transcripts_is_read_without_a_look_everywhere(lab: Lab) -> None:
    first = lab.say("s1", f"as in {TITLE} we close it")
    new = lab.root / "claude" / "-home-x"
    event = DirMovedEvent(str(lab.root / "elsewhere"), str(new))
    wakes, hints = noted(lab, "claude", event)
    assert (wakes, hints) == (True, {str(new)})
    report = lab.run(hints=hints, immediate=False)
    assert (report.files, lab.ref()) == (1, 1)
    assert first.exists()


def test_database_beside_a_log_wakes_nobody(lab: Lab) -> None:
    name = str(lab.root / "claude" / "-home-x" / "cache.db")
    assert noted(lab, "claude", FileModifiedEvent(name)) == (False, set())


def test_what_a_look_everywhere_finds_anyway_is_not_noted(lab: Lab) -> None:
    hints = Hints()
    handler = _Handler(hints, folder(lab, "claude"), threading.Event())
    hints.look_everywhere()
    handler.on_any_event(FileCreatedEvent(str(lab.root / "claude" / "-home-x" / "a.jsonl")))
    assert (hints.take(), hints.take()) == (None, set())
    handler.on_any_event(FileCreatedEvent(str(lab.root / "claude" / "-home-x" / "a.jsonl")))
    assert hints.take() == {str(lab.root / "claude" / "-home-x" / "a.jsonl")}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    for i in range(3):
        (tmp_path / "watched" / f"f{i}").mkdir(parents=True)
    return Watched(str(tmp_path / "watched"), deep=True, names_files=True, wants=lambda path: path.endswith(".jsonl"))


def test_flood_is_not_listened_to_and_then_all_is_looked_at_and_watched_again(watched: Watched) -> None:
    hints = Hints()
    watch = Watch(hints, watched.path)
    watch.start([watched])
    try:
        watch.rest()
        assert (watch.refresh(), hints.take()) == ("", set())  # no flood: it goes on watching
        hints.look_everywhere()
        for _ in range(FLOOD_EVENTS + 1):
            hints.pass_over()
        watch.rest()
        assert not [t for t in threading.enumerate() if isinstance(t, BaseObserver)]
        hints.take()
        assert (watch.refresh(), hints.take()) == ("", None)
        new = Path(watched.path) / "f1" / "new.jsonl"
        new.touch()
        assert hints.wake.wait(10)
        assert hints.take() == {str(new)}
    finally:
        watch.stop()


def test_events_lost_in_a_flood_are_told_when_all_is_watched_again(watched: Watched) -> None:
    hints = Hints()
    watch = Watch(hints, watched.path)
    watch.start([watched])
    try:
        hints.look_everywhere()
        for _ in range(FLOOD_EVENTS + 1):
            hints.pass_over()
        logging.getLogger("watchdog").warning("Inotify queue overflowed; filesystem events were lost")
        watch.rest()
        assert [watch.refresh(), watch.refresh()] == ["file events were lost", ""]
    finally:
        watch.stop()


def test_watch_on_many_files_shows_progress_before_it_is_set_up_and_can_be_ended(watched: Watched) -> None:
    for i in range(2 * STEP_FILES + 1):
        (Path(watched.path) / "f1" / f"{i}.txt").touch()
    steps: list[int] = []

    def step() -> bool:
        steps.append(1)
        return len(steps) != 4

    hints = Hints()
    watch = Watch(hints, watched.path, step)
    try:
        watch.start([watched])
        assert (len(steps), watch.refresh(), hints.take()) == (2, "", set())
        watch.start([watched])
        assert len(steps) == 4
        assert not [t for t in threading.enumerate() if isinstance(t, BaseObserver)]
    finally:
        watch.stop()


@pytest.mark.parametrize(
    ("every", "scan", "told", "wanted"),
    [
        pytest.param(60, 0.01, True, 60.0, id="few files: as configured"),
        pytest.param(60, 0.5, True, 1000.0, id="more: so that scans take a part of a core that nobody feels"),
        pytest.param(60, 20.0, True, 3600.0, id="a million: hourly at least"),
        pytest.param(7200, 20.0, True, 7200.0, id="more rarely only if that is wanted"),
        pytest.param(60, 20.0, False, 60.0, id="no events: as configured, whatever it costs"),
    ],
)
def test_files_that_no_event_told_of_are_found_within_a_bound(
    every: float, scan: float, told: bool, wanted: float
) -> None:
    assert seconds_between_scans(every, scan, told=told) == wanted
