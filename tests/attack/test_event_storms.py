"""Which events wake the daemon, and how far it looks then: a build or a checkout beside the lessons is nothing."""

from __future__ import annotations

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

from kbd.engine.watching import Watched
from kbd.watch import Hints, _Handler
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
