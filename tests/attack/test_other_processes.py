"""Commands of the user change the ledger beside a running daemon: it reads on with the entries as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kbd.engine import Clock, Engine
from tests.attack.lab import ENTRY, NOON, TITLE, UTC, Lab

NEW = "Another lesson of another process"


@contextmanager
def command(lab: Lab) -> Iterator[Engine]:
    """Open the ledger as a command does while the daemon has it open."""
    assert lab.engine is not None
    engine = Engine(lab.engine.frame.config, lab.root / "state", {}, str(lab.root / "home"), NOON)
    yield engine
    engine.close()


def add_entry(lab: Lab) -> None:
    lab.note(f"{ENTRY}- [pitfall] **{NEW}** — text\n")
    with command(lab) as engine:
        engine.sync(Clock(NOON, NOON.timestamp(), UTC))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.note()
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    return lab


def test_entry_added_by_a_command_earns_from_a_daemon_that_runs_on(lab: Lab) -> None:
    add_entry(lab)
    lab.run(hints=[str(lab.say("s2", f"as in {NEW} we wait"))], immediate=False)
    assert lab.ref(NEW) == 1


def test_entry_added_by_a_command_earns_what_was_read_earlier_that_day(lab: Lab) -> None:
    lab.run(hints=[str(lab.say("s2", f"as in {NEW} we wait"))], immediate=False)
    add_entry(lab)
    lab.run(hints=[], immediate=False)
    assert lab.ref(NEW) == 1


def test_entry_added_while_a_pass_reads_misses_nothing(lab: Lab) -> None:
    for number in range(5):
        lab.say(f"t{number}", f"as in {NEW} we wait")
    added = []

    def beat(_report: object) -> None:
        if not added and lab.engine is not None:
            row = lab.engine.frame.ledger.db.execute("SELECT count(*) FROM files").fetchone()
            if row[0] > 2:
                added.append(1)
                add_entry(lab)

    assert lab.engine is not None
    lab.engine.run_pass(Clock(NOON, NOON.timestamp(), UTC), immediate=True, beat=beat)
    assert added
    lab.run(hints=[], immediate=False)
    assert lab.ref(NEW) == 5


def test_rescan_by_a_command_is_not_forgotten_by_a_file_that_grows(lab: Lab) -> None:
    assert lab.engine is not None
    with command(lab) as engine:
        engine.rewind(None)
    db = lab.engine.frame.ledger.db
    before = db.execute("SELECT sum(reread) FROM files").fetchone()[0]
    lab.run(hints=[str(lab.say("s1", "something else"))], immediate=False)
    assert (before, db.execute("SELECT sum(reread) FROM files").fetchone()[0]) == (1, 0)
    assert lab.ref() == 1
