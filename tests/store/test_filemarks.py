"""What a scan asks of the files it passes over, and which of them it did not see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbd.store.ledger import Ledger, open_ledger, transcripts
from kbd.store.ledger.filemarks import FileMark, FileMarks

NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(tmp_path, NOW)
    yield ledger
    ledger.close()


def add(ledger: Ledger, source: int, ino: int, **columns: int) -> int:
    with ledger.transaction() as db:
        file = transcripts.add_file(db, source, f"/t/{source}/{ino}.jsonl", f"{ino}.jsonl", 1, ino, None).id
        for name, value in columns.items():
            db.execute(f"UPDATE files SET {name}=? WHERE id=?", (value, file))
    return file


@pytest.fixture
def source(ledger: Ledger) -> int:
    with ledger.transaction() as db:
        return transcripts.source_id(db, "claude", "/t", "claude-code")


def test_file_is_known_by_its_inode_within_its_source_while_it_is_there(ledger: Ledger, source: int) -> None:
    with ledger.transaction() as db:
        other = transcripts.source_id(db, "other", "/o", "codex")
    here = add(ledger, source, 7, size=5, mtime_ns=6, settled=1)
    add(ledger, source, 8, gone=1)
    add(ledger, other, 9)
    marks = FileMarks(ledger.db, source)
    assert marks.of(1, 7) == FileMark(here, f"/t/{source}/7.jsonl", 5, 6, 1)
    assert [marks.of(*place) for place in ((2, 7), (1, 8), (1, 9), (1, 10))] == [None] * 4


def test_files_that_a_scan_did_not_see_are_those_that_are_not_there_any_more(ledger: Ledger, source: int) -> None:
    ids = [add(ledger, source, ino) for ino in range(40)]
    gone = add(ledger, source, 99, gone=1)
    with ledger.transaction() as db:
        db.execute("UPDATE files SET id=100000 WHERE id=?", (ids[-1],))
    marks = FileMarks(ledger.db, source)
    for file in ids[:5] + ids[6:-1]:
        marks.see(file)
    assert sorted(marks.unseen()) == [ids[5], 100_000]
    assert gone not in marks.unseen()
    marks.see(100_000)
    assert marks.unseen() == [ids[5]]


def test_asking_holds_no_transaction_open(ledger: Ledger, source: int, tmp_path: Path) -> None:
    add(ledger, source, 7)
    marks = FileMarks(ledger.db, source)
    assert marks.of(1, 7) is not None
    other = Ledger(tmp_path / "ledger.db")
    try:
        add(other, source, 8)
        assert other.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    finally:
        other.close()
    add(ledger, source, 9)
    assert marks.of(1, 8) is not None
