"""What a look at all files opens: what moved, what waits for its end, and nothing else, however many there are."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from kbd.engine import transcripts as reading
from tests.attack.lab import NOON, TITLE, Lab

SAYING = f"as in {TITLE} we close it"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.note()
    return lab


def looked(lab: Lab, **after: float) -> int:
    """Return how many files a daemon's look at all of them opens some time after noon."""
    later = timedelta(**after)
    return lab.run(NOON + later, immediate=False).files


def age(path: Path, days: float) -> None:
    then = (NOON - timedelta(days=days)).timestamp()
    os.utime(path, (then, then))


def test_whole_file_is_opened_once_and_again_when_it_moved(lab: Lab) -> None:
    path = lab.say("s1", SAYING)
    age(path, 1)
    assert [looked(lab), looked(lab, minutes=1), looked(lab, hours=2)] == [1, 0, 0]
    lab.say("s1", "more")
    assert [looked(lab, hours=3), looked(lab, hours=4)] == [1, 0]


def test_old_file_that_waits_for_its_end_is_opened_hourly(lab: Lab) -> None:
    path = lab.say("s1", SAYING)
    path.write_bytes(path.read_bytes() + b'{"cut')
    age(path, 30)
    opened = [looked(lab, minutes=minutes) for minutes in (0, 1, 59, 61, 62, 120, 122)]
    assert opened == [1, 0, 0, 1, 0, 0, 1]
    lab.restart()
    assert looked(lab, minutes=123) == 1


def test_young_file_that_waits_for_its_end_is_opened_at_each_look(lab: Lab) -> None:
    path = lab.say("s1", SAYING)
    path.write_bytes(path.read_bytes() + b'{"cut')
    age(path, 1)
    assert [looked(lab, minutes=minutes) for minutes in (0, 1, 2)] == [1, 1, 1]


def test_second_name_of_a_file_is_not_opened_again(lab: Lab) -> None:
    path = lab.say("s1", SAYING)
    for folder in ("a", "z"):
        (lab.root / "claude" / folder).mkdir()
        os.link(path, lab.root / "claude" / folder / "s1.jsonl")
    lab.run()
    assert [looked(lab, minutes=1), looked(lab, minutes=2), lab.ref()] == [0, 0, 1]
    assert lab.engine is not None
    assert lab.engine.frame.ledger.db.execute("SELECT count(*), sum(gone) FROM files").fetchone()[:] == (1, 0)


def test_old_file_moved_to_another_folder_is_known_there(lab: Lab) -> None:
    path = lab.say("s1", SAYING)
    lab.run()
    age(path, 400)  # too old to be read were it new
    other = lab.root / "claude" / "-home-y" / "s1.jsonl"
    other.parent.mkdir()
    path.rename(other)
    lab.run(NOON + timedelta(minutes=1))
    assert lab.engine is not None
    rows = lab.engine.frame.ledger.db.execute("SELECT path, gone FROM files").fetchall()
    assert [tuple(row) for row in rows] == [(str(other), 0)]
    assert looked(lab, minutes=2) == 0


def test_files_that_are_gone_are_noted_and_taken_up_when_they_are_back(lab: Lab) -> None:
    paths = [lab.say(f"s{i}", SAYING) for i in range(20)]
    lab.run()
    aside = lab.root / "aside"
    aside.mkdir()
    for path in paths[::2]:
        path.rename(aside / path.name)
    lab.run(NOON + timedelta(minutes=1))
    assert lab.engine is not None
    db = lab.engine.frame.ledger.db
    assert db.execute("SELECT sum(gone) FROM files").fetchone()[0] == 10
    for path in paths[::2]:
        (aside / path.name).rename(path)
    lab.run(NOON + timedelta(minutes=2))
    assert db.execute("SELECT count(*), sum(gone) FROM files").fetchone()[:] == (20, 0)
    assert lab.ref() == 20


def test_group_of_small_files_that_is_undone_is_read_again_and_counts_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(12):
        lab.say(f"s{i}", SAYING)
    lab.run()
    for i in range(12, 24):
        lab.say(f"s{i}", SAYING)
    count = reading.Ingest.read_file

    def failing(self, source, found, row):  # type: ignore[no-untyped-def]
        yield from count(self, source, found, row)
        if found.relpath.endswith("s20.jsonl"):
            raise RuntimeError("killed")

    monkeypatch.setattr(reading.Ingest, "read_file", failing)
    with pytest.raises(RuntimeError):
        lab.run(NOON + timedelta(minutes=1))
    assert lab.engine is not None
    db = lab.engine.frame.ledger.db
    assert (lab.ref(), db.execute("SELECT count(*) FROM files").fetchone()[0]) == (12, 12)
    monkeypatch.undo()
    lab.run(NOON + timedelta(minutes=2))
    assert (lab.ref(), db.execute("SELECT count(DISTINCT day) FROM activity").fetchone()[0]) == (24, 1)


def test_small_file_costs_a_handful_of_statements_and_one_that_is_known_a_single_one(lab: Lab) -> None:
    lab.run()
    assert lab.engine is not None
    statements: list[str] = []
    lab.engine.frame.ledger.db.set_trace_callback(statements.append)

    def asked_more(few: int, many: int) -> float:
        """Return the statements for each further file, between looks at few and at many that are new."""
        counts = []
        for minutes, files in ((few, few), (many, many)):
            for i in range(files):
                lab.say(f"s{minutes}-{i}", "nothing to see")
            statements.clear()
            looked(lab, minutes=minutes)
            counts.append(len(statements))
        known = few  # the second look passes over these as well
        return (counts[1] - counts[0] - known) / (many - few)

    assert asked_more(50, 250) <= 11
    statements.clear()
    assert looked(lab, hours=7) == 0
    assert 300 <= len(statements) <= 400
