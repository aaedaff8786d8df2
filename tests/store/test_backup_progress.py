"""A backup of a large ledger takes longer than a service manager waits: it shows that it gets on."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from kbd.store.ledger import back_up, open_ledger, transcripts

NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)


def test_check_and_copy_tell_of_progress_and_the_copy_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(tmp_path, NOW)
    with ledger.transaction() as db:
        source = transcripts.source_id(db, "claude", "/t", "claude-code")
        for ino in range(500):
            transcripts.add_file(db, source, f"/t/{ino}.jsonl", f"{ino}.jsonl", 1, ino, None)
    beats: list[tuple[bool, bool]] = []

    def beat() -> None:
        copies = [*(tmp_path / "backups").glob(".*.tmp")]
        beats.append((bool(copies), ledger.db.in_transaction))

    monkeypatch.setattr(sys.modules["kbd.store.ledger.backups"], "_STEPS", 1000)
    monkeypatch.setattr(sys.modules["kbd.store.ledger.backups"], "_PAGES", 8)
    copy = back_up(ledger, tmp_path, date(2026, 6, 11), beat)
    assert copy is not None
    assert {copying for copying, _ in beats} == {False, True}
    assert not any(in_transaction for _, in_transaction in beats), "others would wait"
    told = len(beats)
    ledger.db.execute("SELECT count(*) FROM files a, files b").fetchone()
    assert len(beats) == told, "what is no backup tells of none"
    ledger.close()
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM files").fetchone()[0] == 500
