"""Where nothing changes, nothing is written: no knowledge file, no page of the ledger."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine
from kbd.store.ledger.database import LEDGER_NAME
from tests.e2e.process import Kbd
from tests.e2e.world import World

TODAY = date(2026, 6, 11)


def footprint(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return inode, change times and bytes of all files below a folder."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        seen = os.lstat(path)
        found[str(path.relative_to(folder))] = (seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, path.read_bytes())
    return found


def facts(state: Path) -> list[str]:
    """Return all rows of the ledger; the number of starts aside, which tells an old copy put back by hand."""
    with sqlite3.connect(f"file:{state / LEDGER_NAME}?mode=ro", uri=True) as db:
        rows = [row for row in db.iterdump() if "'generation'" not in row]
    db.close()
    return rows


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, 7, TODAY)
    made.work(60)
    made.settle()
    return made


def test_second_run_writes_no_knowledge_file_and_no_fact(world: World) -> None:
    kbd = Kbd(world)
    kbd.ok("run", "--once")
    files, ledger = footprint(world.knowledge), facts(world.state)
    assert any("ref:" in row for row in map(str, files.values())) and any("mentions" in row for row in ledger)
    kbd.ok("run", "--once")
    assert footprint(world.knowledge) == files
    assert facts(world.state) == ledger


@pytest.mark.parametrize("immediate", [True, False], ids=["once", "daemon"])
def test_passes_that_find_nothing_new_commit_nothing(world: World, immediate: bool) -> None:
    world.state.mkdir(mode=0o700, exist_ok=True)
    engine = Engine(load_config(world.root / "config.yaml"), world.state, {}, str(world.root / "home"), world.now)
    beside = sqlite3.connect(f"file:{world.state / LEDGER_NAME}?mode=ro", uri=True)
    real = datetime.now(UTC).timestamp()
    try:
        for seconds in (0, 120, 240):  # lines without line end wait for a second look
            engine.run_pass(Clock(world.now, real + seconds, UTC), immediate=True)
        version = beside.execute("PRAGMA data_version").fetchone()
        files, state = footprint(world.knowledge), footprint(world.state)
        for minutes in (1, 2, 3):  # the sign that this writer lives is renewed more rarely
            now, later = world.now + timedelta(minutes=minutes), real + 240 + 60 * minutes
            report = engine.run_pass(Clock(now, later, UTC), immediate=immediate)
            assert (report.records, report.written) == (0, 0)
        assert beside.execute("PRAGMA data_version").fetchone() == version
        assert footprint(world.knowledge) == files
        assert footprint(world.state) == state
    finally:
        beside.close()
        engine.close()
