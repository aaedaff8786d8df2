"""An entry is away from its file for a while: another branch, a half-written file, a deletion taken back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.attack.lab import ENTRY, NOON, TITLE, Lab

OTHER = "- [pitfall] **Backoff must be capped** — or the server falls over (2026-05-19)\n"
HOUR = timedelta(hours=1)


def away(lab: Lab, meanwhile: Callable[[], object], back: timedelta = 2 * HOUR) -> int:
    """Take the entry away for what happens meanwhile; return the bytes read when it is back."""
    whole = (lab.root / "kb" / "lessons.md").read_text()
    lab.note(OTHER)
    lab.run(NOON + HOUR)
    meanwhile()
    lab.run(NOON + HOUR + HOUR / 2)
    lab.note(whole)
    return lab.run(NOON + back).read_bytes


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.note(ENTRY + OTHER)
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    return lab


def test_nothing_is_read_again_that_was_read_before_the_entry_went(lab: Lab) -> None:
    assert away(lab, lambda: None) == 0
    assert lab.ref() == 1


def test_only_what_was_read_meanwhile_is_read_again(lab: Lab) -> None:
    new: list[Path] = []
    assert away(lab, lambda: new.append(lab.say("s2", f"as in {TITLE} again", "2026-06-01T09:00:00Z"))) == sum(
        path.stat().st_size for path in new
    )
    assert lab.credits() == {("s1", "2026-06-11"), ("s2", "2026-06-01")}


def test_entry_that_comes_back_a_month_later_has_what_was_said_meanwhile_once(lab: Lab) -> None:
    away(lab, lambda: lab.say("s2", f"as in {TITLE} again"), timedelta(days=30))
    away(lab, lambda: lab.say("s3", f"as in {TITLE} again"), timedelta(days=31))
    assert lab.ref() == 3


def test_entry_that_comes_back_while_the_clock_was_set_back_a_little_loses_nothing(lab: Lab) -> None:
    whole = (lab.root / "kb" / "lessons.md").read_text()
    lab.note(OTHER)
    lab.run(NOON + HOUR)
    lab.say("s2", f"as in {TITLE} again")
    lab.run(NOON + HOUR - timedelta(minutes=5))
    lab.note(whole)
    lab.run(NOON + HOUR)
    assert lab.ref() == 2


def test_new_title_on_another_branch_and_back_loses_no_citation(lab: Lab) -> None:
    path = lab.root / "kb" / "lessons.md"
    whole, title = path.read_text(), "Descriptors leak where exceptions pass"
    path.write_text(whole.replace(TITLE, title))
    lab.run(NOON + HOUR)
    lab.say("s2", f"as in {title} again")
    lab.say("s3", f"as in {TITLE} again")
    lab.run(NOON + HOUR)
    path.write_text(whole)
    lab.run(NOON + 2 * HOUR)
    assert lab.ref() == 3
