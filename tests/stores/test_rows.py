"""Rows of an agent's store as records: new ones, changed ones, each once; nothing is written there."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from agent_stores import GooseStore, OpenCodeStore, Store, millis, text
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.model import Record
from kbd.errors import FileUnreadable
from kbd.sources.goose import FORMAT as GOOSE
from kbd.sources.opencode import FORMAT as OPENCODE
from kbd.store import rows
from kbd.store.position import Position, Verdict
from kbd.store.sqlitefile import stamp_of
from kbd.store.tail import Batch

NOON = "2026-06-10T12:00:00"
NOW = millis(NOON) / 1000
START = Position(0, 0)


def read(path: Path, position: Position = START, source=OPENCODE, now: float = NOW, **limits: int) -> list[Batch]:
    return list(rows.read_rows(str(path), position, source.rows, now=now, **{"max_record": 1 << 20, **limits}))


def records(batches: Sequence[Batch]) -> list[Record]:
    return [record for batch in batches for record in batch.records]


def ids(batches: Sequence[Batch]) -> list[str]:
    return [json.loads(record.data)["id"] for record in records(batches)]


def words(batches: Sequence[Batch]) -> list[str]:
    return [json.loads(json.loads(record.data)["data"])["text"] for record in records(batches)]


@pytest.fixture
def store(tmp_path):
    found = OpenCodeStore(tmp_path / "opencode.db")
    found.session("s", NOON)
    found.message("m", "s", NOON, text("one"), text("two"))
    yield found
    found.close()


def test_row_comes_with_what_its_message_and_session_say(store):
    given_row = json.loads(records(read(store.path))[0].data)
    told = {key: value for key, value in given_row.items() if value is not None}
    assert told == {
        "table": "part",
        "id": "m_p0",
        "message": "m",
        "session": "s",
        "at": millis(NOON),
        "role": "assistant",
        "cwd": "/w/app",
        "began": millis(NOON),
        "data": '{"type": "text", "text": "one"}',
        "directory": "/w/app",
        "root": "s",
    }


def test_new_and_changed_rows_come_once_each(store):
    batches = read(store.path)
    assert words(batches) == ["one", "two"]
    assert words(read(store.path, batches[-1].position)) == []
    store.part("p3", "m", "s", millis(NOON), text("three"))
    store.grow("m_p0", "2026-06-10T12:00:10", text("one more"))
    batches = read(store.path, batches[-1].position)
    assert words(batches) == ["one more", "three"]
    assert words(read(store.path, batches[-1].position)) == []


def test_rows_with_an_old_time_are_found_by_their_number(store):
    position = read(store.path)[-1].position
    store.part("p3", "m", "s", millis("2020-01-01T00:00:00"), text("imported"))
    assert words(read(store.path, position)) == ["imported"]


def test_time_ahead_of_the_clock_hides_no_later_change(store):
    store.grow("m_p0", "2030-01-01T00:00:00", text("ahead"))
    position = read(store.path)[-1].position
    store.grow("m_p1", "2026-06-10T12:00:10", text("two more"))
    assert words(read(store.path, position, now=NOW + 10)) == ["two more"]


def test_change_within_the_last_minute_is_found_though_a_later_one_was_read(store):
    position = read(store.path, now=NOW + 100)[-1].position
    store.grow("m_p0", "2026-06-10T11:59:30", text("late commit"))
    assert words(read(store.path, position, now=NOW + 100)) == ["late commit"]


def test_change_after_the_clock_was_set_back_is_found(store):
    store.part("p3", "m", "s", millis("2026-06-20T12:00:00"), text("from a clock that went wrong"))
    position = read(store.path)[-1].position
    store.grow("m_p0", "2026-06-10T12:00:05", text("one more"))
    batches = read(store.path, position)
    assert words(batches) == ["one more"]
    assert words(read(store.path, batches[-1].position)) == []


def test_store_that_did_not_move_is_not_opened_again(store):
    os.utime(store.path, (NOW, NOW))
    position = read(store.path, now=os.stat(store.path).st_ctime + 60)[-1].position
    assert position.ended
    assert read(store.path, position, now=NOW) == []


def test_store_that_moved_just_now_is_looked_at_again(store):
    assert not read(store.path, now=stamp_of(str(store.path)).moved_ns / 1e9 + 1)[-1].position.ended


def test_deleted_rows_leave_no_trace_and_no_loss(store):
    position = read(store.path)[-1].position
    store.run("DELETE FROM part WHERE id='m_p1'")
    store.part("p3", "m", "s", millis(NOON), text("three"))
    assert "three" in words(read(store.path, position))


def test_numbers_of_an_agent_that_rewrites_its_rows_are_new_ones(tmp_path):
    store = GooseStore(tmp_path / "sessions.db")
    store.session("g")
    store.message("g", NOON, text("one"))
    store.message("g", NOON, text("two"))
    position = read(store.path, source=GOOSE)[-1].position
    store.rewrite("g")
    batches = read(store.path, position, source=GOOSE)
    assert [record.offset for record in records(batches)] == [3, 4]
    assert batches[0].restarted is None
    store.close()


@pytest.mark.parametrize("how", ["another file", "in place"])
def test_another_database_at_the_place_is_read_from_its_first_row(store, tmp_path, how):
    position = read(store.path)[-1].position
    other = OpenCodeStore(tmp_path / "other" / "opencode.db")
    other.message("x", "s", "2020-01-01T00:00:00", text("old"), text("older"))
    other.close()
    if how == "in place":
        store.path.write_bytes(other.path.read_bytes())
    else:
        os.replace(other.path, store.path)
    batches = read(store.path, position)
    assert (words(batches), batches[0].restarted) == (["old", "older"], Verdict.REWRITTEN)


def test_vacuum_that_renumbers_rows_loses_none(store):
    store.run("DELETE FROM part WHERE id='m_p0'")
    position = read(store.path)[-1].position
    store.db.execute("VACUUM")
    store.part("p9", "m", "s", millis("2020-01-01T00:00:00"), text("behind"))
    assert "behind" in words(read(store.path, position))


def test_a_stop_after_any_batch_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BATCH_ROWS", 3)
    store = OpenCodeStore(tmp_path / "opencode.db")
    store.message("m", "s", NOON, *(text(str(number)) for number in range(20)))
    position, seen = START, []
    for _ in range(40):
        for batch in read(store.path, position):
            position = batch.position
            seen += words([batch])
            break
    assert seen == [str(number) for number in range(20)]
    store.close()


def test_too_long_a_row_is_counted_and_the_others_come(store):
    store.part("long", "m", "s", millis(NOON), text("x" * (2 << 20)))
    store.part("p4", "m", "s", millis(NOON), text("four"))
    batches = read(store.path)
    assert (words(batches), sum(batch.oversize for batch in batches)) == (["one", "two", "four"], 1)


def test_large_rows_come_in_small_batches(store):
    for number in range(8):
        store.part(f"q{number}", "m", "s", millis(NOON), text("x" * 900_000))
    assert max(sum(len(record.data) for record in batch.records) for batch in read(store.path)) < 7 << 20


def test_old_rows_of_a_large_table_are_looked_through_once_an_hour(store, monkeypatch):
    monkeypatch.setattr(rows, "RECENT_ROWS", 1)
    monkeypatch.setattr(rows, "NEWEST_ROWS", 1)
    position = read(store.path)[-1].position
    store.grow("m_p0", "2026-06-10T12:10:00", text("old row"))
    later = read(store.path, position, now=NOW + 600)
    assert words(later) == []
    assert words(read(store.path, later[-1].position, now=NOW + 3700)) == ["old row"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE message SET data='{'",
        "UPDATE message SET data=NULL",
        "UPDATE part SET data=X'ff00fe'",
        "UPDATE part SET data=3.5, time_updated='soon'",
        "UPDATE part SET id=NULL, session_id=X'ff'",
        "DELETE FROM message",
        "ALTER TABLE session DROP COLUMN parent_id",
        "ALTER TABLE session DROP COLUMN title",
        "ALTER TABLE part DROP COLUMN time_updated",
        "ALTER TABLE part ADD COLUMN more",
        "UPDATE session SET parent_id='s'",
    ],
)
def test_odd_values_and_other_columns_are_read_calmly(store, sql):
    store.run(sql)
    decoder = OPENCODE.decoder("opencode.db", None)
    for record in records(read(store.path)):
        decoder.feed(record, None)
    assert len(records(read(store.path))) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE part",
        "ALTER TABLE part DROP COLUMN data",
        "DROP TABLE part; CREATE VIEW part AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id FROM r) "
        "SELECT id, 1 AS message_id, 1 AS session_id, 1 AS data FROM r",
    ],
)
def test_store_without_known_tables_says_so(store, sql):
    store.db.executescript(sql)
    with pytest.raises(FileUnreadable, match="none of the tables"):
        read(store.path)


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0" + b"\xff" * 600, b"not a database" * 99])
def test_what_is_no_database_says_so(tmp_path, damage):
    path = tmp_path / "opencode.db"
    path.write_bytes(damage)
    with pytest.raises(FileUnreadable):
        read(path)


def test_absent_store_is_its_own_answer(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "opencode.db")


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_only_regular_files_are_opened(tmp_path, store, kind):
    path = tmp_path / "x.db"
    {"fifo": lambda: os.mkfifo(path), "folder": path.mkdir, "link": lambda: path.symlink_to(store.path)}[kind]()
    with pytest.raises(FileUnreadable):
        read(path)


def test_locked_store_is_unreadable_for_now(store, monkeypatch):
    monkeypatch.setattr("kbd.store.sqlitefile.BUSY_SECONDS", 0.01)
    store.db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(FileUnreadable, match="locked"):
        read(store.path)
    store.db.rollback()
    assert words(read(store.path)) == ["one", "two"]


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Return what must not change; `-shm` holds the marks of readers and is no part of the store's content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".db-shm":
            seen = path.stat()
            found[path.name] = (seen.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


@pytest.mark.parametrize("state", ["journal", "wal in use", "wal at rest", "wal after a crash"])
def test_reading_writes_nothing_and_leaves_nothing(tmp_path, state):
    folder = tmp_path / "agent"
    store = OpenCodeStore(folder / "opencode.db", wal=state != "journal")
    store.message("m", "s", NOON, text("one"))
    if state != "wal in use":
        if state == "wal after a crash":
            left = (folder / "opencode.db-wal").read_bytes()
        store.close()
    if state == "wal after a crash":
        (folder / "opencode.db-wal").write_bytes(left)
    before, names = state_of(folder), sorted(os.listdir(folder))
    os.chmod(folder, 0o500)
    stamp = stamp_of(str(store.path))
    read(store.path, read(store.path)[-1].position)
    os.chmod(folder, 0o700)
    assert stamp_of(str(store.path)) == stamp
    assert (state_of(folder), sorted(os.listdir(folder))) == (before, names)
    store.close()


def test_private_copy_has_no_name_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    (tmp_path / "private").mkdir()
    store = OpenCodeStore(tmp_path / "opencode.db", wal=True)
    store.message("m", "s", NOON, text("one"))
    store.close()
    reading = rows.read_rows(str(store.path), START, OPENCODE.rows, now=NOW, max_record=1 << 20)
    assert (words([next(reading)]), os.listdir(tmp_path / "private")) == (["one"], [])
    assert len(list(reading)) == 1


def test_store_at_rest_that_cannot_be_copied_is_no_absent_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    store = OpenCodeStore(tmp_path / "opencode.db", wal=True)
    store.message("m", "s", NOON, text("one"))
    store.close()
    with pytest.raises(FileUnreadable, match="no copy can be made"):
        read(store.path)


def test_damaged_store_in_wal_mode_says_so(tmp_path):
    store = OpenCodeStore(tmp_path / "opencode.db", wal=True)
    store.message("m", "s", NOON, text("one"))
    store.close()
    store.path.write_bytes(store.path.read_bytes()[:100] + b"\xff" * 4000)
    with pytest.raises(FileUnreadable):
        read(store.path)


def test_rows_in_the_wal_are_read_while_the_database_stands_still(tmp_path):
    store = OpenCodeStore(tmp_path / "opencode.db", wal=True)
    store.run("PRAGMA wal_autocheckpoint=0")
    store.message("m", "s", NOON, text("one"))
    position = read(store.path)[-1].position
    before = store.path.read_bytes()
    store.message("n", "s", NOON, text("two"))
    assert store.path.read_bytes() == before
    assert words(read(store.path, position)) == ["two"]
    store.close()


def test_writer_goes_on_while_a_batch_is_held(store, monkeypatch):
    monkeypatch.setattr(rows, "BATCH_ROWS", 1)
    reading = rows.read_rows(str(store.path), START, OPENCODE.rows, now=NOW, max_record=1 << 20)
    first = next(reading)
    store.part("p3", "m", "s", millis(NOON), text("three"))
    assert words([first, *reading]) == ["one", "two", "three"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 30)),
        st.tuples(st.just("grow"), st.integers(0, 30)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.sampled_from(["read", "partly", "vacuum"]), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_each_last_wording_that_lived_to_a_reading_is_given(tmp_path_factory, steps):
    """Against a model: whatever happens between readings, all rows there at the last one were given as they are."""
    store: Store = OpenCodeStore(tmp_path_factory.mktemp("s") / "opencode.db")
    store.db.executescript("PRAGMA synchronous=off")
    store.insert("message", id="m", data='{"role": "assistant"}')
    position, given_rows = START, set()
    for clock, (step, number) in enumerate([*steps, ("read", 0)]):
        when = f"2026-06-10T12:00:{clock:02d}"
        if step == "add":
            store.run("INSERT OR IGNORE INTO part VALUES (?,'m','s',?,?,?)", f"p{number}", 0, millis(when), "{}")
        elif step == "grow":
            store.run(
                "UPDATE part SET data=?, time_updated=? WHERE id=?", f'{{"n":{clock}}}', millis(when), f"p{number}"
            )
        elif step == "delete":
            store.run("DELETE FROM part WHERE id=?", f"p{number}")
        elif step == "vacuum":
            store.db.execute("VACUUM")
        else:
            for batch in read(store.path, position, now=NOW + clock):
                position = batch.position
                found = (json.loads(record.data) for record in batch.records)
                given_rows |= {(row["id"], row["data"]) for row in found}
                if step == "partly":
                    break
    with closing(sqlite3.connect(store.path)) as db:
        assert set(db.execute("SELECT id, data FROM part")) <= given_rows
    store.close()
