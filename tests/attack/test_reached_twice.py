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
