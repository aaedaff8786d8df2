"""Files of sizes that nobody reads through, and packed ones of which nothing comes: passed over in their time."""

from __future__ import annotations

import gzip
import os
import sqlite3
import time
from pathlib import Path

import pytest

from kbd.errors import FileUnreadable
from kbd.store import sqlitefile
from kbd.store.tail import begin, read_batches
from tests.attack.lab import TITLE, Lab

TERABYTE = 1 << 40
SLOW_SECONDS = 5.0


def sparse(path: Path, head: bytes = b"", tail: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        try:
            out.truncate(TERABYTE)
        except OSError:
            pytest.skip("the file system holds no such file")
        out.write(head)
        out.seek(TERABYTE - len(tail))
        out.write(tail)
    if path.stat().st_blocks * 512 > 1 << 30:
        path.unlink()
        pytest.skip("the file system knows no holes")
    return path


def test_terabyte_of_nothing_hides_no_line_behind_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    sparse(tmp_path / "claude" / "-home-x" / "big.jsonl", b'{"type": "x"}\n')
    log = sparse(tmp_path / "logs" / "big.log", b"begun\n", f"\nas in {TITLE} we close it\n\n".encode())
    lab.say("s1", f"as in {TITLE} we close it")
    began = time.process_time()
    lab.run()
    assert time.process_time() - began < SLOW_SECONDS
    assert lab.ref() == 2
    assert log.stat().st_size == TERABYTE


BARREN = {"zstd": b"\x28\xb5\x2f\xfd" + bytes(64 << 20), "gzip": gzip.compress(b"") * (3 << 20)}


@pytest.mark.parametrize("codec", BARREN)
def test_packed_file_of_which_nothing_comes_ends(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(BARREN[codec])
    began = time.process_time()
    (batch,) = read_batches(path, begin(path), now=time.time())
    assert time.process_time() - began < SLOW_SECONDS
    assert not batch.records
    assert "without content" in str(batch.damage)


def test_join_that_grows_with_the_square_of_its_rows_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE message(id)")
        db.executemany("INSERT INTO message VALUES (?)", [(1,)] * 20_000)
    db.close()
    monkeypatch.setattr(sqlitefile, "QUERY_SECONDS", 0.1)
    with pytest.raises(FileUnreadable, match="interrupted"), sqlitefile.reading(str(path), max_value=99) as store:
        sqlitefile.fetch(store, "SELECT count(*) FROM message JOIN message b USING(id) JOIN message c USING(id)")


def test_huge_database_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE message(id)")
    db.close()
    os.truncate(path, 64 << 20)
    monkeypatch.setattr(sqlitefile, "MAX_COPIED_BYTES", 32 << 20)
    with pytest.raises(FileUnreadable, match="too much"), sqlitefile.reading(str(path), max_value=99):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == ["agent.db"]
