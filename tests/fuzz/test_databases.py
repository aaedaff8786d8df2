"""An agent's database may have any schema and any damage: it is read, or it is told as unreadable."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import UTC
from pathlib import Path

import pytest

from kbd.core.model import Record
from kbd.errors import FileUnreadable
from kbd.sources.contract import FileKind
from kbd.sources.registry import formats
from tests.forms.disk import Disk
from tests.forms.history import TODAY, History, Part, Session, Turn
from tests.forms.writers import WRITERS
from tests.fuzz.corpus import records_of

STORES = ("opencode", "goose", "hermes")
DAMAGES = 120
VALUES = (
    "NULL", "''", "x'00ff'", "'{'", "'[]'", "'{\"type\": 3}'", "9e999", "-1", "9223372036854775807", "zeroblob(70000)",
    "'[[[[[[[['", "json('[1,2,{\"text\":[{}]}]')", "char(0,10,27)", "'2026-99-99'",
)  # fmt: skip


def made(agent: str, root: Path) -> str:
    """Write a small store and return its path from the root."""
    turns = tuple(Turn(i, TODAY, (Part(f"Build cache {i}", frozenset({2})),)) for i in range(1, 6))
    writer = WRITERS[agent]()
    disk = Disk(root)
    for track in writer.tracks(History((Session(1, TODAY, turns),)), set(), random.Random(1)):
        for step in track:
            step(disk)
    disk.close()
    return next(r for p in root.rglob("*") if formats()[agent].file_kind(r := str(p.relative_to(root))))


def damage(path: Path, rng: random.Random) -> None:
    if rng.random() < 0.25:
        data = bytearray(path.read_bytes())
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(1, 400)] = rng.randbytes(rng.randrange(400))
        path.write_bytes(data if rng.random() < 0.8 else data[:at])
        return
    with closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not names:
            return
        table = rng.choice(names)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        column, value = rng.choice(columns), rng.choice(VALUES)
        said = (
            f'UPDATE "{table}" SET "{column}" = {value}',
            f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid % 2',
            f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
            f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}_2"',
            f'ALTER TABLE "{table}" RENAME TO "{table}_2"',
            f'DROP TABLE "{table}"',
            f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 1',
            f'UPDATE "{table}" SET rowid = rowid + 1000000000000',
        )
        with suppress(sqlite3.Error):  # a constraint may forbid it
            db.execute(rng.choice(said))
            db.commit()


@pytest.mark.parametrize("agent", STORES)
def test_no_schema_and_no_damage_breaks_reading_a_store(agent: str, tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    relpath, one, rng = made(agent, tmp_path / "good"), formats()[agent], random.Random(11)
    read = 0
    for i in range(DAMAGES):
        root = tmp_path / str(i)
        shutil.copytree(tmp_path / "good", root)
        for _ in range(rng.randrange(1, 4)):
            with suppress(sqlite3.DatabaseError):  # an earlier damage may have made it unreadable
                damage(root / relpath, rng)
        with suppress(FileUnreadable):
            records = records_of(one, root, relpath, FileKind.DATABASE)
            decoder = one.decoder(relpath, None, tz=UTC)
            for number, data in enumerate(records):
                decoder.feed(Record(number, data), TODAY)
            decoder.flush()
            read += bool(records)
    assert DAMAGES // 4 < read < DAMAGES, "most damages leave something to read, some do not"
