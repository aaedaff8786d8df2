"""Relations are written as seldom as counters: collected for a while, and not while someone else is at the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport
from tests.service.life import Life, entry

TODAY = date(2026, 1, 2)
DAY = timedelta(days=1)
BEGAN = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
TITLE = "Cited with a file at its side"


class Watched:
    """A daemon's passes at given seconds after noon; files are as old as they are made to be."""

    def __init__(self, life: Life) -> None:
        self.life, self.relations = life, life.root / "kb" / ".knowledge-graph.yaml"
        self.engine = Engine(load_config(life.root / "config.yaml"), life.state, {}, str(life.root), clock(0).now)

    def cites(self, name: str) -> None:
        self.life.says(TODAY, f"{TITLE} helped in {name}")

    def pass_at(self, seconds: float, *, immediate: bool = False) -> PassReport:
        return self.engine.run_pass(clock(seconds), immediate=immediate)

    def next_at(self, seconds: float) -> float:
        return self.engine.seconds_to_next_write(BEGAN + seconds)

    def touch(self, seconds: float, text: str = "") -> None:
        """Let a person's change to the relations file be as old as that."""
        with self.relations.open("a") as file:
            file.write(text)
        os.utime(self.relations, (BEGAN + seconds, BEGAN + seconds))

    def names(self, name: str) -> bool:
        return self.relations.exists() and name in self.relations.read_text()


def clock(seconds: float) -> Clock:
    return Clock(datetime.fromtimestamp(BEGAN + seconds, UTC), BEGAN + seconds, UTC)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    life = Life(tmp_path)
    life.live.write_text(entry(TITLE, "2025-12-01"))
    watched = Watched(life)
    watched.cites("src/first.py")
    watched.pass_at(0, immediate=True)
    assert watched.names("src/first.py")
    yield watched
    watched.engine.close()


def test_a_second_write_waits_until_thirty_seconds_have_passed(watched: Watched) -> None:
    watched.cites("src/second.py")
    watched.pass_at(10)
    assert not watched.names("src/second.py")
    assert watched.next_at(10) == pytest.approx(20)
    watched.pass_at(31)
    assert watched.names("src/second.py")
    assert watched.next_at(31) == 86400


def test_in_a_git_work_tree_a_second_write_waits_fifteen_minutes(watched: Watched) -> None:
    (watched.life.root / ".git").mkdir()
    (watched.life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    watched.cites("src/second.py")
    watched.pass_at(31)
    assert not watched.names("src/second.py")
    assert watched.next_at(31) == pytest.approx(869)
    watched.pass_at(901)
    assert watched.names("src/second.py")


def test_a_pass_that_writes_at_once_waits_for_nothing(watched: Watched) -> None:
    watched.touch(9, "# a person's remark\n")
    watched.cites("src/second.py")
    watched.pass_at(10, immediate=True)
    assert watched.names("src/second.py")
    assert watched.names("# a person's remark")


def test_a_file_that_a_person_keeps_changing_is_left_alone_for_five_minutes_at_most(watched: Watched) -> None:
    watched.cites("src/second.py")
    for seconds in range(40, 340, 4):
        watched.touch(seconds - 1)
        report = watched.pass_at(seconds)
        assert ("write_deferred", str(watched.relations)) in {(p.code, p.where) for p in report.problems}
        assert watched.next_at(seconds) == 5
    assert not watched.names("src/second.py")
    watched.touch(341)
    watched.pass_at(342)
    assert watched.names("src/second.py")


def test_its_own_write_is_no_unrest(watched: Watched) -> None:
    written = watched.relations.stat().st_mtime
    life_time = written - BEGAN  # the real file has the machine's time: the pass comes two seconds after it
    watched.cites("src/second.py")
    report = watched.pass_at(life_time + 2)
    assert watched.names("src/second.py"), report.problems


def test_a_broken_file_wakes_nobody_and_is_written_once_it_is_mended(watched: Watched) -> None:
    whole = watched.relations.read_text()
    watched.touch(30, "- {s: [\n")
    watched.cites("src/second.py")
    watched.pass_at(100)
    assert watched.next_at(100) == 86400
    watched.relations.write_text(whole)
    os.utime(watched.relations, (BEGAN + 110, BEGAN + 110))
    watched.pass_at(120)
    assert watched.names("src/second.py")


def test_a_git_folder_that_cannot_be_told_ends_no_daemon(watched: Watched) -> None:
    (watched.life.root / "kb" / ".git").symlink_to(".git")  # a loop: neither a folder nor absent
    watched.cites("src/second.py")
    (watched.life.root / "logs" / "b.log").write_text(f"{TODAY} 11:00 {TITLE} again\n\n")
    report = watched.pass_at(100)
    assert {p.where for p in report.problems} >= {str(watched.life.live), str(watched.relations)}
    assert watched.next_at(100) == 30
    (watched.life.root / "kb" / ".git").unlink()
    watched.pass_at(200)
    assert watched.names("src/second.py")


def ended(watched: Watched, day: date) -> None:
    """Let a person end the one relation that stands in the file."""
    watched.relations.write_text(watched.relations.read_text().rstrip() + f'\n  e: "{day}"\n')
    os.utime(watched.relations, (BEGAN, BEGAN))


def test_an_end_that_a_person_gives_holds_against_a_use_from_before(watched: Watched) -> None:
    for day, seconds in ((TODAY + DAY, 86400), (TODAY + 2 * DAY, 2 * 86400)):
        watched.life.says(day, f"{TITLE} helped in src/first.py")
        watched.touch(seconds - 1)
        watched.pass_at(seconds)  # the use is known, the file not at rest
        assert not watched.names(f'u: "{day}"')
        if day == TODAY + DAY:
            ended(watched, day)
        watched.pass_at(seconds + 60)
        assert watched.names(f'u: "{day}"')
        assert watched.names("e:") is (day == TODAY + DAY), "used on a later day, it lives again"


def test_what_kbd_let_expire_lives_again_when_used_on_the_same_day(watched: Watched) -> None:
    watched.life.works_until(TODAY + 360 * DAY)
    watched.pass_at(360 * 86400, immediate=True)
    assert watched.names(f'e: "{TODAY + 360 * DAY}"')
    watched.life.says(TODAY + 360 * DAY, f"{TITLE} helped in src/first.py")
    watched.pass_at(360 * 86400 + 60, immediate=True)
    assert not watched.names("e:")


def test_a_use_that_waits_to_be_written_keeps_a_relation_from_expiring(watched: Watched) -> None:
    watched.life.works_until(TODAY + 360 * DAY)
    watched.life.says(TODAY + 360 * DAY, f"{TITLE} helped in src/first.py")
    watched.pass_at(360 * 86400, immediate=True)  # in this pass the file still says that it was last used a year ago
    assert watched.names(f'u: "{TODAY + 360 * DAY}"')
    assert not watched.names("e:")


def test_a_file_that_cannot_be_written_wakes_nobody_until_the_next_scan(watched: Watched) -> None:
    """The time of its last write is long past: it would be due at every moment."""
    note = watched.life.live
    text = note.with_name("text.txt")
    note.rename(text)
    note.symlink_to(text)  # through a link to a file of another kind nothing is written
    (watched.life.root / "logs" / "b.log").write_text(f"{TODAY} 11:00 {TITLE} again\n\n")
    assert "write_failed" in {problem.code for problem in watched.pass_at(100).problems}
    assert watched.next_at(100) == 86400
    note.unlink()
    text.rename(note)
    watched.pass_at(160)
    assert "ref:2 |" in note.read_text()
