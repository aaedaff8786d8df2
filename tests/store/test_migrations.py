"""A ledger of an older kbd: brought up to date without losing a count, or left as it was; nothing is counted again."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kbd.errors import FileUnwritable, LockTimeout
from kbd.store.ledger import backups, database, migrations, open_ledger, transcripts
from kbd.store.ledger.migrations import Step
from kbd.store.ledger.schema import SCHEMA_VERSION, TABLES
from kbd.store.ledger.soundness import fault_of
from tests.e2e.privileges import mount_small, with_private_mounts
from tests.fixtures.ledgers.scenario import CACHE, cite_anew
from tests.store.older import NAMES, NEWEST, NOW, VERSION_1, Older, counted, kept, kept_at, run

SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY type, name"


def shape(db: sqlite3.Connection) -> list[tuple[object, ...]]:
    columns = [
        (table, *row)
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").fetchall()
        for row in db.execute(f"PRAGMA table_info({table})")
    ]
    return [tuple(row) for row in db.execute(SHAPE)] + columns


def test_schema_changes_only_with_its_version() -> None:
    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(TABLES)
        columns = [row for row in shape(new) if row[0] not in ("table", "index")]
        indexes = [" ".join(str(row[3]).split()) for row in shape(new) if row[0] == "index"]
    found = hashlib.sha256(repr((columns, indexes)).encode()).hexdigest()[:16]
    # Another shape is another version: with a step in migrations.py, and a ledger of this one kept (build.py).
    assert (SCHEMA_VERSION, found) == (3, "169657ebb50c2ae4")


@pytest.mark.parametrize("name", NAMES)
def test_older_ledger_gets_the_shape_of_a_new_one_and_keeps_what_it_holds(name: str, tmp_path: Path) -> None:
    world = Older(tmp_path, name)
    before = kept_at(world.lay())
    with closing(sqlite3.connect(world.ledger)) as older:
        version = migrations.version_of(older)
    with closing(open_ledger(tmp_path / "state", NOW)) as ledger, closing(sqlite3.connect(":memory:")) as new:
        new.executescript(TABLES)
        assert shape(ledger.db) == shape(new)
        after = kept(ledger.db)
        assert {query: after[query] for query in before} == before
        assert ledger.db.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        assert fault_of(ledger.db) == ""
        event = ledger.db.execute("SELECT detail FROM events WHERE kind='ledger_migrated'").fetchone()[0]
        assert event == f"from schema {version} to {SCHEMA_VERSION}; as it was: ledger-2026-06-16.db"
    copy = tmp_path / "state" / "backups" / "ledger-2026-06-16.db"
    assert kept_at(copy) == before
    assert copy.stat().st_mode & 0o777 == 0o600


def read_again(world: Older) -> None:
    """Read everything twice, then one new citation: only that one changes a number."""
    engine = world.open()
    db = engine.frame.ledger.db
    before = counted(db)
    for _ in range(2):
        assert run(engine).problems == []
        assert counted(db) == before
        engine.rewind(None)
    assert db.execute("SELECT count(*) FROM blocks WHERE inherited=1").fetchone()[0] <= 1  # of the deleted transcript
    cite_anew(world.root, CACHE)
    run(engine)
    after = counted(db)
    engine.close()
    changed = [row for row in after if row not in before]
    assert [row[:4] for row in changed] == [(CACHE, 5, "2026-06-16", 3), (2, "S9", "2026-06-16", 1)]
    assert len(after) == len(before) + 1


@pytest.mark.parametrize("name", NAMES)
def test_what_an_older_ledger_counted_is_read_again_without_counting_twice(name: str, tmp_path: Path) -> None:
    world = Older(tmp_path, name)
    world.lay()
    read_again(world)


@pytest.mark.parametrize("name", VERSION_1[::5])
def test_keys_that_were_made_in_any_other_way_count_nothing_twice(name: str, tmp_path: Path) -> None:
    world = Older(tmp_path, name)
    with closing(sqlite3.connect(world.lay())) as db, db:
        for table in ("messages", "blocks"):
            db.execute(f"UPDATE {table} SET key=randomblob(20)")
        if "aliases" in {row[0] for row in db.execute("SELECT name FROM sqlite_master")}:
            db.execute("DELETE FROM aliases")
    read_again(world)


def test_log_that_was_a_copy_of_another_stays_one(tmp_path: Path) -> None:
    world = Older(tmp_path, NAMES[0])
    with closing(sqlite3.connect(world.lay())) as db, db:
        db.execute(
            "UPDATE files SET shared_len=20, shared_stream='cafe', shared_session='logs:old.log' "
            "WHERE relpath='notes.log'"
        )
    with closing(open_ledger(tmp_path / "state", NOW)) as ledger:
        files = [transcripts.file_row(ledger.db, row[0]) for row in ledger.db.execute("SELECT id FROM files")]
    logs = {row.relpath: (row.session, row.origins) for row in files if row.session}
    assert logs == {
        "agent.log": ("logs:agent.log", ()),
        "agent.log.1": ("logs:agent.log", ()),
        "notes.log": ("logs:notes.log", (transcripts.Origin(20, "cafe", "logs:old.log"),)),
    }


def test_transcripts_that_are_all_gone_leave_every_count_as_it_stood(tmp_path: Path) -> None:
    world = Older(tmp_path, NEWEST)
    world.lay()
    for folder in ("claude", "codex", "cline", "logs"):
        for path in (tmp_path / folder).rglob("*"):
            if path.is_file():
                path.unlink()
    engine = world.open()
    before = counted(engine.frame.ledger.db)
    run(engine)
    assert counted(engine.frame.ledger.db) == before
    engine.close()


def test_commands_that_read_show_an_older_ledger_and_leave_it_as_it_is(tmp_path: Path) -> None:
    world = Older(tmp_path, "02-7ddfd6b")
    before = world.lay().read_bytes()
    for words in (["list", "--all", "--json"], ["status"], ["show", CACHE], ["log"], ["undo", "--list"], ["doctor"]):
        done = world.kbd(*words)
        assert done.exit_code in (0, 1, 3), (words, done.output)
    assert f'"title": "{CACHE}"' in world.kbd("list", "--json").stdout
    assert world.ledger.read_bytes() == before
    assert not backups(tmp_path / "state")


@pytest.mark.parametrize("name", [NAMES[0], NEWEST, NAMES[-1]])
def test_backup_of_an_older_kbd_is_restored_and_brought_up_to_date(name: str, tmp_path: Path) -> None:
    world = Older(tmp_path, name)
    copy = world.lay(tmp_path / "state" / "backups" / "ledger-2026-06-15.db")
    with closing(sqlite3.connect(copy)) as older:
        before = counted(older)
    engine = world.open()
    db = engine.frame.ledger.db
    assert counted(db) == before
    assert engine.frame.ledger.meta("recovered_from") == "ledger gone, restored from ledger-2026-06-15.db"
    for _ in range(2):
        run(engine)
        assert counted(db) == before
        engine.rewind(None)
    engine.close()
    assert "is whole" in world.kbd("doctor").output


def test_older_ledger_that_another_process_has_open_is_refused_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    world = Older(tmp_path, NEWEST)
    before = kept_at(world.lay())
    with closing(database.Ledger(world.ledger)) as old_daemon:
        old_daemon.meta("id")
        with pytest.raises(LockTimeout, match="stop the daemon of the older kbd"):
            open_ledger(tmp_path / "state", NOW)
    assert kept_at(world.ledger) == before
    assert world.kbd("run", "--once").exit_code in (0, 1)


def test_of_many_that_open_an_older_ledger_at_once_one_brings_it_up_to_date(tmp_path: Path) -> None:
    world = Older(tmp_path, NEWEST)
    before = kept_at(world.lay())
    words = [sys.executable, "-c", KILLED, str(tmp_path / "state"), NOW.isoformat(), "-1"]
    many = [subprocess.Popen(words, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE) for _ in range(5)]
    assert [one.communicate()[1] for one in many] == [b""] * len(many)
    assert kept_at(world.ledger) == before
    with closing(sqlite3.connect(world.ledger)) as db:
        assert db.execute("SELECT count(*) FROM events WHERE kind='ledger_migrated'").fetchone() == (1,)


@pytest.mark.parametrize("damage", ["DROP TABLE messages", "DROP TABLE entries", "DELETE FROM meta"])
def test_older_ledger_that_lacks_something_is_damaged_and_restored_from_a_good_copy(
    damage: str, tmp_path: Path
) -> None:
    world = Older(tmp_path, NEWEST)
    copy = world.lay(tmp_path / "state" / "backups" / "ledger-2026-06-15.db")
    with closing(sqlite3.connect(world.lay())) as db, db:
        db.execute(damage)
    with closing(open_ledger(tmp_path / "state", NOW)) as ledger, closing(sqlite3.connect(copy)) as older:
        assert counted(ledger.db) == counted(older)
    assert list((tmp_path / "state").glob("ledger.db.damaged-*"))


KILLED = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from kbd.store.ledger import migrations, open_ledger, upgrading

state, now, left = Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), int(sys.argv[3])

def counting(step):
    def counted(*words):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return step(*words)
    return counted

for module, name in ((upgrading, "keep_as_it_is"), (migrations, "_fill"), (upgrading, "fault_of")):
    setattr(module, name, counting(getattr(module, name)))
open_ledger(state, now)
print("left", left)
"""


def migrate_in_a_process(world: Older, killed_at: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", KILLED, str(world.root / "state"), NOW.isoformat(), str(killed_at)]
    return subprocess.run(words, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("step", [0, 1, 20, -1])
def test_migration_killed_half_way_leaves_the_ledger_as_it_was(step: int, tmp_path: Path) -> None:
    world = Older(tmp_path, NEWEST)
    before = kept_at(world.lay())
    at = step if step >= 0 else len(migrations.STEPS[2].tables) + 21  # when all was filled, before it is committed
    done = migrate_in_a_process(world, at)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert kept_at(world.ledger) == before
    with closing(open_ledger(tmp_path / "state", NOW)) as ledger:
        assert kept(ledger.db) == before


def test_disk_that_fills_up_half_way_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    world = Older(tmp_path / "world", NEWEST)

    def body() -> None:
        size = world.lay().stat().st_size >> 10
        before, whole = kept_at(world.ledger), world.ledger.read_bytes()
        refused = 0
        for kib in range(size + 60, 6 * size, 48):
            mount_small(world.root / "state", kib)
            world.ledger.write_bytes(whole)
            try:
                open_ledger(world.root / "state", NOW).close()
            except FileUnwritable as exc:
                refused += 1
                assert "free the disk" in str(exc)
                assert kept_at(world.ledger) == before
                assert not [path for path in (world.root / "state").rglob("*.tmp")]
                subprocess.run(["umount", "-l", str(world.root / "state")], check=True)
                continue
            assert refused > 4
            return
        raise AssertionError("never had room enough")

    with_private_mounts(body, tmp_path / "log")


def test_step_to_a_further_version_needs_no_more_than_what_its_columns_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Older(tmp_path, NEWEST).lay()
    second = first.with_name("second.db")
    second.write_bytes(first.read_bytes())
    with closing(sqlite3.connect(second)) as db, db:
        migrations.migrate(db)
    before = kept_at(second)
    further = TABLES.replace("cwd TEXT,\n  content BLOB", "cwd TEXT, letters INTEGER NOT NULL, content BLOB")
    assert further != TABLES
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(migrations, "TABLES", further)
    step = Step(lacking={"messages.letters": "length(session)"})
    monkeypatch.setattr(migrations, "STEPS", {**migrations.STEPS, SCHEMA_VERSION + 1: step})
    for path in (first, second):
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(":memory:")) as new, db:
            migrations.migrate(db)
            new.executescript(further)
            assert shape(db) == shape(new)
            assert db.execute("SELECT count(*) FROM messages WHERE letters!=length(session)").fetchone() == (0,)
            assert kept(db) == before
