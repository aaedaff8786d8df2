"""Whose a line of a text log is, when logs were copied, rotated and renamed while nobody looked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.attack.lab import TITLE, Lab
from tests.e2e.killing import run
from tests.e2e.world import World

TITLES = ("Backoff must be capped", "Store timestamps in UTC", "Retry storm", "Build cache", "C++ ABI break")


class Folder:
    """A folder of logs with one line a lesson, each an hour later."""

    def __init__(self, root: Path) -> None:
        self.world = World(root / "world", 0, datetime.now(UTC).date())
        self.logs, self.lines = self.world.root / "logs", 0

    def write(self, name: str, title: str, session: str = "") -> None:
        self.lines += 1
        with open(self.logs / name, "a") as log:
            log.write(f"{self.world.today}T{self.lines:02d}:00:00Z line {self.lines} of many: {title} it is\n")
        lesson = self.world.oracle.lessons[title]
        self.world.oracle.cite(lesson, f"line {self.lines}", session or name, self.world.today)

    def copy(self, source: str, target: str) -> None:
        shutil.copy(self.logs / source, self.logs / target)

    def truncate(self, name: str) -> None:
        os.truncate(self.logs / name, 0)

    def rename(self, source: str, target: str) -> None:
        (self.logs / source).rename(self.logs / target)

    def fill(self, name: str = "a.log") -> None:
        for title in TITLES[:3]:
            self.write(name, title)

    def check(self) -> None:
        run(self.world)
        assert not (faults := self.world.faults()), "\n".join(faults)


def copy_of_a_copy(logs: Folder) -> None:
    logs.copy("a.log", "b.log")
    logs.check()
    logs.write("b.log", TITLES[3])
    logs.copy("b.log", "c.log")
    logs.check()
    logs.write("c.log", TITLES[4])
    logs.write("c.log", TITLES[0])


def copy_then_truncation_in_one_pass(logs: Folder) -> None:
    logs.write("a.log", TITLES[3])
    logs.copy("a.log", "b.log")
    logs.copy("a.log", "a.log.1")
    logs.truncate("a.log")
    logs.write("a.log", TITLES[4])
    logs.write("b.log", TITLES[0])


def copy_of_a_log_begun_anew_in_the_same_pass(logs: Folder) -> None:
    logs.truncate("a.log")
    logs.check()
    for title in TITLES[1:4]:
        logs.write("a.log", title)
    logs.check()
    logs.copy("a.log", "b.log")
    logs.rename("a.log", "a.log.1")
    logs.write("a.log", TITLES[4])


def copy_of_a_log_renamed_since(logs: Folder) -> None:
    logs.write("a.log", TITLES[3])
    logs.copy("a.log", "b.log")
    logs.rename("a.log", "a.log.1")
    logs.write("b.log", TITLES[4])


def copy_rotated_by_truncation(logs: Folder) -> None:
    logs.copy("a.log", "b.log")
    logs.check()
    logs.write("b.log", TITLES[3])
    logs.check()
    logs.copy("b.log", "b.log.1")
    logs.truncate("b.log")
    logs.write("b.log", TITLES[4])


def log_renamed_out_of_recognition(logs: Folder) -> None:
    logs.rename("a.log", "something-else.txt")
    logs.write("a.log", TITLES[3])


def log_overwritten_with_a_copy(logs: Folder) -> None:
    logs.write("z.log", TITLES[4])
    logs.check()
    shutil.copyfile(logs.logs / "a.log", logs.logs / "z.log")


TALES: tuple[Callable[[Folder], None], ...] = (
    copy_of_a_copy,
    copy_then_truncation_in_one_pass,
    copy_of_a_log_begun_anew_in_the_same_pass,
    copy_of_a_log_renamed_since,
    copy_rotated_by_truncation,
    log_renamed_out_of_recognition,
    log_overwritten_with_a_copy,
)


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.__name__)
def test_each_line_counts_once_for_the_log_it_was_written_to(tale: Callable[[Folder], None], tmp_path: Path) -> None:
    logs = Folder(tmp_path)
    logs.fill()
    logs.check()
    tale(logs)
    logs.check()
    logs.check()


OPENED: list[str] = []
sys.addaudithook(lambda event, args: OPENED.append(str(args[0])) if event == "open" and args else None)
BANNER = [f"line {number} of the banner of a tool" for number in range(5)]


@pytest.mark.parametrize("lines", [1, 5], ids=["first-line", "banner"])
def test_logs_that_all_begin_alike_are_not_each_compared_with_each(lines: int, tmp_path: Path) -> None:
    """A copy among them is still one, though its original is one of hundreds that begin so, and has grown since."""
    lab, count = Lab(tmp_path), 300
    lab.note()
    banner = "\n".join(BANNER[:lines]) + "\n"
    for number in range(count):
        lab.log(f"{banner}2026-06-10 09:00 run {number}\n", f"run-{number}.log")
    lab.log(banner, "original.log")
    lab.run()
    OPENED.clear()
    lab.log("2026-06-10 10:00 go on\n" * 3 + f"2026-06-10 10:00 as in {TITLE} we close it\n\n", "original.log")
    shutil.copy(tmp_path / "logs" / "original.log", tmp_path / "logs" / "copy.log")
    for number in range(count, 2 * count):
        lab.log(f"{banner}2026-06-10 09:00 run {number}\n", f"run-{number}.log")
    lab.run()
    assert (lab.ref(), lab.credits()) == (1, {("logs:original.log", "2026-06-10")})
    opened = sum(path.startswith(str(tmp_path / "logs")) for path in OPENED)
    assert opened < count * (10 if lines == 1 else 150)  # of what begins with three equal lines 32 are looked into
