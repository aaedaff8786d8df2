"""A ledger that is damaged, foreign, locked or in the way of something else: restored or refused, and told."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbd.cli.main import main
from kbd.errors import LedgerDamaged, LockTimeout
from kbd.store.ledger import back_up, open_ledger, open_reading
from kbd.store.ledger.schema import SCHEMA_VERSION
from tests.attack.lab import NOON, TITLE, Lab

SEEDS = 4


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A base that was counted twice, with a backup in between, and then closed."""
    lab = Lab(tmp_path)
    (tmp_path / "state").chmod(0o700)
    lab.note()
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    lab.say("s2", f"and {TITLE} once more")
    lab.run(NOON + timedelta(days=1))
    lab.restart()
    return lab


def ledger(lab: Lab) -> Path:
    return lab.root / "state" / "ledger.db"


def kbd(lab: Lab, *args: str) -> Result:
    options = ["--config", str(lab.root / "config.yaml"), "--state-dir", str(lab.root / "state")]
    now = ["--now", f"{NOON + timedelta(days=1):%Y-%m-%d}"]
    return CliRunner(env={"HOME": str(lab.root / "home")}).invoke(main, [*options, *now, *args], prog_name="kbd")


def still_right(lab: Lab) -> None:
    """A pass ends without a fault of kbd, and the number is that of the file, then and a day later."""
    for _ in range(2):
        done = kbd(lab, "run", "--once")
        assert done.exit_code in (0, 1), done.output
        assert "fault of kbd" not in done.output
    assert "ref:2 |" in (lab.root / "kb" / "lessons.md").read_text()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_sectors_that_a_disk_gives_back_empty_end_in_right_numbers(lab: Lab, seed: int) -> None:
    draw, data = random.Random(seed), bytearray(ledger(lab).read_bytes())
    for _ in range(1 + seed % 3):
        at = draw.randrange(len(data) // 512) * 512
        data[at : at + 512] = bytes(512)
    ledger(lab).write_bytes(data)
    still_right(lab)


BESIDE: dict[str, Callable[[Path], object]] = {
    "noise as a WAL": lambda path: path.with_name("ledger.db-wal").write_bytes(os.urandom(9000)),
    "an empty WAL": lambda path: path.with_name("ledger.db-wal").touch(),
    "noise as shared memory": lambda path: path.with_name("ledger.db-shm").write_bytes(os.urandom(32768)),
    "a journal of a stranger": lambda path: path.with_name("ledger.db-journal").write_bytes(os.urandom(5000)),
    "a generation of 5,000 digits": lambda path: path.with_name("ledger-generation").write_text("9" * 5000),
    "a generation that is no number": lambda path: path.with_name("ledger-generation").write_bytes(b"\xff\0x"),
    "backups that are none": lambda path: [copy.write_bytes(b"x") for copy in path.with_name("backups").iterdir()],
    "no backups": lambda path: shutil.rmtree(path.with_name("backups")),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_lies_beside_the_ledger_does_no_harm(lab: Lab, what: str) -> None:
    BESIDE[what](ledger(lab))
    still_right(lab)


def test_ledger_of_a_newer_kbd_is_refused_and_stays_as_it_is(lab: Lab) -> None:
    with sqlite3.connect(ledger(lab)) as db:
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    db.close()
    before = ledger(lab).read_bytes()
    for words in (["run", "--once"], ["list"], ["status"], ["show", TITLE], ["pin", TITLE]):
        done = kbd(lab, *words)
        assert done.exit_code == 5, (words, done.output)
        assert "newer kbd" in done.output and "upgrade kbd" in done.output
    assert ledger(lab).read_bytes() == before
    assert not list(ledger(lab).parent.glob("*damaged*"))


@pytest.mark.parametrize("version", [0, -1])
def test_database_that_is_no_ledger_is_set_aside(lab: Lab, version: int) -> None:
    ledger(lab).unlink()
    with sqlite3.connect(ledger(lab)) as db:
        db.execute("CREATE TABLE meta(key, value)")
        db.execute(f"PRAGMA user_version={version}")
    db.close()
    still_right(lab)
    assert list(ledger(lab).parent.glob("ledger.db.damaged-*"))


def test_ledger_that_another_process_holds_is_told_as_locked(lab: Lab) -> None:
    held = sqlite3.connect(ledger(lab), isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    mine = open_reading(lab.root / "state")
    assert mine is not None
    assert mine.db.execute("SELECT count(*) FROM entries").fetchone()[0] == 1
    mine.close()
    held.execute("ROLLBACK")
    writing = open_ledger(lab.root / "state", NOON)
    held.execute("BEGIN IMMEDIATE")
    writing.db.execute("PRAGMA busy_timeout=20")
    with pytest.raises(LockTimeout, match="another process"), writing.transaction():
        pass
    held.execute("ROLLBACK")
    with writing.transaction():
        writing.set_meta("x", "y")
    held.close()
    writing.close()


MADE = {"folder": os.mkdir, "fifo": os.mkfifo, "device": lambda path: os.symlink("/dev/zero", path)}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_no_file_in_the_ledger_s_place_is_refused_at_once(lab: Lab, make: Callable[[Path], None]) -> None:
    ledger(lab).unlink()
    make(ledger(lab))
    for words in (["run", "--once"], ["list"], ["status"]):
        done = kbd(lab, *words)
        assert done.exit_code in (1, 5), (words, done.output)
        assert "ledger.db" in done.output
        assert "fault of kbd" not in done.output
    assert os.path.lexists(ledger(lab))


@pytest.mark.parametrize("name", ["ledger.db-wal", "ledger.db-shm", "ledger.db-journal", "ledger-generation"])
def test_pipe_beside_the_ledger_is_refused_at_once(lab: Lab, name: str) -> None:
    ledger(lab).with_name(name).unlink(missing_ok=True)
    os.mkfifo(ledger(lab).with_name(name))
    for words in (["run", "--once"], ["pin", TITLE], ["list"]):
        done = kbd(lab, *words)
        assert "fault of kbd" not in done.output
        assert done.exit_code == 0 if words == ["list"] and "generation" in name else name in done.output
    ledger(lab).with_name(name).unlink()
    still_right(lab)


ODD = ("entries.state='odd'", "entries.line=x'ff'", "entries.created='2026-99-99'", "notes.problems='['")
ODD += ("entries.title=CAST(x'c328' AS TEXT)", "files.position='{}'", "mentions.files='{}'", "messages.at='now'")
ODD += ("holders.file=999",)


@pytest.mark.parametrize("what", ODD)
def test_value_that_no_ledger_holds_is_told_by_all_and_mended_by_the_next_pass(lab: Lab, what: str) -> None:
    table, assignment = what.split(".", 1)
    with sqlite3.connect(ledger(lab)) as db:
        assert db.execute(f"UPDATE {table} SET {assignment}").rowcount
    db.close()
    for words in (["list"], ["list", "--json"], ["status"], ["show", TITLE], ["log"], ["context", "--explain"]):
        done = kbd(lab, *words)
        assert "fault of kbd" not in done.output, (words, done.output)
    done = kbd(lab, "doctor")
    assert "is damaged" in done.output
    still_right(lab)
    assert "is damaged" not in kbd(lab, "doctor").output
    assert list(ledger(lab).parent.glob("ledger.db.damaged-*"))


def test_damaged_ledger_takes_no_good_backup_s_place(lab: Lab) -> None:
    open_one = open_ledger(lab.root / "state", NOON)
    with open_one.transaction() as db:
        db.execute("UPDATE entries SET state='odd'")
    with pytest.raises(LedgerDamaged, match="entries.state"):
        back_up(open_one, lab.root / "state", (NOON + timedelta(days=9)).date())
    open_one.close()
    assert not list((lab.root / "state" / "backups").glob(f"*{(NOON + timedelta(days=9)).date()}*"))


def test_pass_that_meets_damage_ends_in_a_restored_ledger_without_a_restart(lab: Lab) -> None:
    lab.run(NOON + timedelta(days=1))
    assert lab.engine is not None
    other = sqlite3.connect(ledger(lab))
    other.execute("UPDATE entries SET state='odd'")
    other.commit()
    other.close()
    lab.say("s3", f"as {TITLE} says", at="2026-06-12T09:00:00Z")
    lab.run(NOON + timedelta(days=1))
    assert lab.ref() == 3
    assert list(ledger(lab).parent.glob("ledger.db.damaged-*"))


def test_damage_met_while_reading_is_told_with_the_remedy(lab: Lab) -> None:
    ledger(lab).write_bytes(b"no database, but text of some length" * 100)
    for words in (["list"], ["status"], ["show", TITLE], ["log"], ["context"]):
        done = kbd(lab, *words)
        assert done.exit_code == 5, (words, done.output)
        assert "restores" in done.output
    with pytest.raises(LedgerDamaged):
        open_reading(lab.root / "state")
