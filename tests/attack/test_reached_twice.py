"""The same lines are reached in two ways: by two sources, through a link, in a copy of a log packed meanwhile."""

from __future__ import annotations

import gzip
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from tests.attack.lab import CONFIG, NOON, TITLE, Lab

UNTIMED = "".join(f"{word} as in {TITLE} we do it\n\n" for word in ("first", "second", "third"))


def citations(lab: Lab) -> int:
    return next(row.citations for row in lab.entries() if row.title == TITLE)


def test_copy_of_a_log_that_is_compressed_at_that_moment_counts_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    log = lab.log(UNTIMED)
    lab.run()
    rotated, packed = log.with_name("agent.log.1"), log.with_name("agent.log.1.gz")
    os.rename(log, rotated)
    lab.run()
    shutil.copy2(rotated, log.with_name("kept.log"))
    packed.write_bytes(gzip.compress(rotated.read_bytes()))
    rotated.unlink()
    lab.run(NOON + timedelta(hours=1))
    assert citations(lab) == 3


@pytest.mark.parametrize("folder", ["logs", "linked", "logs/inner", "."])
def test_log_that_two_sources_reach_counts_once(folder: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG + f"  - {{name: again, path: {folder}, format: text, exclude: [kb, home, state]}}\n")
    (tmp_path / "logs" / "inner").mkdir()
    os.symlink(tmp_path / "logs", tmp_path / "linked")
    lab.note()
    lab.log(UNTIMED, "inner/agent.log")
    lab.run()
    lab.log(f"and again {TITLE}\n\n", "inner/agent.log")
    lab.run()
    assert citations(lab) == 4
    assert lab.ref() == 1


def test_log_that_the_first_source_gives_up_is_read_on_by_the_other_one(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG + "  - {name: again, path: logs, format: text}\n")
    lab.note()
    lab.log(UNTIMED)
    lab.run()
    lab.restart()
    lab.config = lab.config.replace("  - {name: logs, path: logs, format: text}\n", "")
    lab.log(f"and again {TITLE}\n\n")
    lab.run()
    assert citations(lab) == 4
    assert lab.ref() == 1


def test_transcript_below_two_roots_of_an_agent_counts_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG + "  - {name: again, agent: claude-code, root: linked}\n")
    os.symlink(tmp_path / "claude", tmp_path / "linked")
    lab.note()
    lab.say("s1", f"as in {TITLE} we do it")
    assert lab.run().files == 1
    assert citations(lab) == 1


@pytest.mark.parametrize("copy", ["mirror/agent.log", "logs/backup.log"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("lead", ["", "2026-06-11 10:00 "])
def test_log_that_is_copied_again_and_again_as_it_grows_counts_once(
    copy: str, late: bool, lead: str, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, CONFIG + "  - {name: mirror, path: mirror, format: text}\n")
    (tmp_path / "mirror").mkdir()
    lab.note()
    log = lab.log(UNTIMED)
    for number in range(4):
        if late:
            lab.run(NOON + timedelta(hours=number))
        (tmp_path / "new").write_bytes(log.read_bytes())
        os.replace(tmp_path / "new", tmp_path / copy)
        lab.run(NOON + timedelta(hours=number))
        lab.log(f"{lead}as in {TITLE} for the {number}th time\n\n")
    lab.run(NOON + timedelta(hours=5))
    assert citations(lab) == 7
    with (tmp_path / copy).open("a") as out:
        out.write(f"{lead}as in {TITLE} on its own\n\n")
    lab.run(NOON + timedelta(hours=6))
    assert citations(lab) == 8


def test_copy_whose_original_goes_on_later_counts_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    log = lab.log(UNTIMED)
    lab.run()
    shutil.copy2(log, log.with_name("kept.log"))
    lab.run()
    more = f"as in {TITLE} once more\n\n"
    lab.log(more, "kept.log")
    lab.run(NOON + timedelta(hours=1))
    lab.log(more)
    lab.run(NOON + timedelta(hours=2))
    assert citations(lab) == 4
