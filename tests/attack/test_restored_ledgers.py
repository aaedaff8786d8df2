"""A ledger that is lost or put back, under conditions that last: nothing counts twice, and counting goes on."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kbd.store.ledger import backups
from tests.attack.lab import CONFIG, ENTRY, NOON, TITLE, Lab

COUNTED = f"{ENTRY}  <!-- ref:3 | last:2026-06-01 | decay:active -->\n"


def written_at(path: Path, at: datetime) -> None:
    os.utime(path, (at.timestamp(), at.timestamp()))


def lose(lab: Lab) -> None:
    lab.restart()
    (lab.root / "state" / "ledger.db").unlink()
    shutil.rmtree(lab.root / "state" / "backups")


def test_source_whose_folder_is_missing_does_not_keep_others_from_counting_after_a_restore(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG.replace("root: claude", "root: never-made"))
    lab.note(COUNTED)
    written_at(lab.log(f"we hit {TITLE} again\n\n"), NOON - timedelta(days=20))
    lab.run()
    lose(lab)
    lab.run()
    assert lab.ref() == 3
    written_at(lab.log(f"and {TITLE} once more\n\n"), NOON + timedelta(days=1))
    lab.run(NOON + timedelta(days=1))
    assert lab.ref() == 4


def test_source_that_comes_back_long_after_a_restore_counts_nothing_twice(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    written_at(lab.log(f"we hit {TITLE} again\n\n"), NOON)
    lab.run()
    assert lab.ref() == 1
    lose(lab)
    os.rename(lab.root / "logs", lab.root / "unmounted")
    lab.run()
    os.rename(lab.root / "unmounted", lab.root / "logs")
    written_at(lab.root / "logs" / "agent.log", NOON + timedelta(days=5))
    lab.run(NOON + timedelta(days=5))
    assert lab.ref() == 1


def test_hand_set_state_holds_again_once_the_knowledge_was_taken_in(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG.replace("root: claude", "root: never-made"))
    note = lab.note(COUNTED)
    lab.run()
    lose(lab)
    lab.run()
    note.write_text(note.read_text().replace("decay:active", "decay:dormant"))
    lab.run()
    assert lab.entries()[0].state.value == "dormant"


def test_backups_under_a_clock_that_ran_ahead_do_not_hide_newer_ones(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    for days in range(300, 308):
        lab.run(NOON + timedelta(days=days))
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    newest = tmp_path / "state" / "backups" / f"ledger-{NOON.date()}.db"
    assert backups(tmp_path / "state")[-1] == newest
    lab.restart()
    (tmp_path / "state" / "ledger.db").write_bytes(b"damaged")
    shutil.rmtree(tmp_path / "claude")
    lab.run()
    assert len(lab.entries()) == 1
    assert lab.entries()[0].citations == 1


@pytest.mark.parametrize("marker", [True, False], ids=["with its generation", "without"])
def test_ledger_that_is_gone_comes_back_from_its_backup(tmp_path: Path, marker: bool) -> None:
    lab = Lab(tmp_path)
    lab.note()
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    lab.restart()
    (tmp_path / "state" / "ledger.db").unlink()
    if not marker:
        (tmp_path / "state" / "ledger-generation").unlink()
    shutil.rmtree(tmp_path / "claude")
    lab.run()
    assert lab.entries()[0].citations == 1
    assert lab.ref() == 1
