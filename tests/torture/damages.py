"""What disks, people and other programs do to a ledger: each kind changes the files of a state directory."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from kbd.store.ledger.schema import SCHEMA_VERSION, TABLES

PAGE = 4096
Damage = Callable[[Path, random.Random], str]
"""Damages the ledger at a path; returns what it did."""


def _noise(path: Path, draw: random.Random) -> str:
    data, told = bytearray(path.read_bytes()), []
    for _ in range(draw.choice((1, 1, 3, 20))):
        length = draw.choice((1, 8, 100, 512, PAGE))
        at = draw.randrange(max(len(data) - length, 1))
        data[at : at + length] = draw.randbytes(length)
        told.append(f"{length} at {at}")
    path.write_bytes(data)
    return ", ".join(told)


def _flips(path: Path, draw: random.Random) -> str:
    data = bytearray(path.read_bytes())
    places = [draw.randrange(len(data)) for _ in range(draw.choice((1, 5, 50)))]
    for at in places:
        data[at] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    return f"bits at {places}"


def _cut(path: Path, draw: random.Random) -> str:
    at = draw.choice((0, 1, 15, 16, 99, 100, draw.randrange(path.stat().st_size)))
    os.truncate(path, at)
    return f"cut at {at}"


def _grown(path: Path, draw: random.Random) -> str:
    with path.open("ab") as out:
        out.write(draw.randbytes(draw.randrange(1, 3 * PAGE)))
    return "noise behind its end"


def _nul_pages(path: Path, draw: random.Random) -> str:
    data = bytearray(path.read_bytes())
    places = [draw.randrange(len(data) // PAGE) * PAGE for _ in range(draw.choice((1, 3)))]
    for at in places:
        data[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    return f"NULs at {places}"


def _no_head(path: Path, draw: random.Random) -> str:
    data = path.read_bytes()
    length = draw.choice((16, 100, 512))
    path.write_bytes(bytes(length) + data[length:])
    return f"NULs up to {length}"


def _head_noise(path: Path, draw: random.Random) -> str:
    data, at = bytearray(path.read_bytes()), draw.randrange(100)
    data[at : at + 4] = draw.randbytes(4)
    path.write_bytes(data)
    return f"noise in the head at {at}"


def _swapped(path: Path, draw: random.Random) -> str:
    data = bytearray(path.read_bytes())
    a, b = (draw.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]
    path.write_bytes(data)
    return f"pages at {a} and {b} swapped"


def _stale(path: Path, draw: random.Random) -> str:
    """Some pages are those of a backup: their writing never reached the disk."""
    data, old = bytearray(path.read_bytes()), _a_backup(path, draw).read_bytes()
    differing = [at for at in range(0, min(len(data), len(old)), PAGE) if data[at : at + PAGE] != old[at : at + PAGE]]
    places = draw.sample(differing, min(len(differing), draw.choice((1, 3))))
    for at in places:
        data[at : at + PAGE] = old[at : at + PAGE]
    path.write_bytes(data)
    return f"old pages at {places}"


def _a_backup(path: Path, draw: random.Random) -> Path:
    return draw.choice(sorted((path.parent / "backups").glob("ledger-*.db")))


def _older(path: Path, draw: random.Random) -> str:
    copy = _a_backup(path, draw)
    shutil.copy(copy, path)
    return f"{copy.name} in its place"


def _beside(path: Path, draw: random.Random) -> str:
    suffix = draw.choice(("-wal", "-shm", "-journal"))
    path.with_name(path.name + suffix).write_bytes(draw.randbytes(draw.choice((0, 1, 32, 32768, 9000))))
    return f"noise as {suffix}"


def _wal_of_another(path: Path, draw: random.Random) -> str:
    other = path.with_name("other.db")
    with contextlib.closing(sqlite3.connect(other, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(TABLES)
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        for key in ("id", *(draw.randbytes(40).hex() for _ in range(draw.choice((0, 10, 400))))):
            db.execute("INSERT INTO meta VALUES (?, 'x')", (key,))
        for suffix in ("-wal", "-shm"):
            shutil.copy(f"{other}{suffix}", f"{path}{suffix}.kept")
    for suffix in ("-wal", "-shm"):
        os.rename(f"{path}{suffix}.kept", f"{path}{suffix}")
    other.unlink()
    return "the WAL of another ledger"


def _wal(path: Path, draw: random.Random) -> str:
    """Take away or change what the last process left in the WAL, as it was killed; the ledger is then an older one."""
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        return _beside(path, draw)
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    size = wal.stat().st_size
    match draw.choice(("gone", "cut", "cut", "noise", "noise", "NULs")):
        case "gone":
            wal.unlink()
            return "WAL gone"
        case "cut":
            at = draw.randrange(size)
            os.truncate(wal, at)
            return f"WAL of {size} cut at {at}"
        case "noise":
            return "WAL: " + _noise(wal, draw)
        case _:
            return "WAL: " + _nul_pages(wal, draw)


def _instead(path: Path, draw: random.Random) -> str:
    path.unlink()
    what = draw.choice(("folder", "full folder", "FIFO", "device", "loop", "dead link", "nothing", "elsewhere"))
    match what:
        case "folder":
            path.mkdir()
        case "full folder":
            path.mkdir()
            (path / "x").touch()
        case "FIFO":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path.name)
        case "dead link":
            path.symlink_to("nowhere")
        case "elsewhere":
            path.symlink_to(_a_backup(path, draw))
    return what


def _foreign(path: Path, draw: random.Random) -> str:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(draw.choice(("CREATE TABLE x(y)", "CREATE TABLE meta(key, value)", "CREATE VIEW meta AS SELECT 1")))
        db.execute(f"PRAGMA user_version={draw.choice((0, -1, 1))}")
    return "another program's database"


def _version(path: Path, draw: random.Random) -> str:
    version = draw.choice((0, -1, -(2**31)))
    with _edited(path) as db:
        db.execute(f"PRAGMA user_version={version}")
    return f"version {version}"


@contextlib.contextmanager
def _edited(path: Path) -> contextlib._GeneratorContextManager[sqlite3.Connection]:  # type: ignore[misc]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def _tables(db: sqlite3.Connection) -> list[str]:
    return [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")]


def _dropped(path: Path, draw: random.Random) -> str:
    with _edited(path) as db:
        kind = draw.choice(("table", "table", "index", "column"))
        if kind == "index":
            names = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type='index' AND sql NOT NULL")]
            name = draw.choice(names)
            db.execute(f"DROP INDEX {name}")
            return f"index {name} dropped"
        table = draw.choice(_tables(db))
        if kind == "table":
            db.execute(f"DROP TABLE {table}")
            return f"table {table} dropped"
        columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})") if not r[5]]
        if not columns:
            return "nothing"
        column = draw.choice(columns)
        db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO was_{column}")
        return f"column {table}.{column} renamed"


VALUES = ("'\x00'", "x'ff00'", "CAST(x'c328ff' AS TEXT)", "9223372036854775807", "-9223372036854775808", "1e308", "''")
VALUES += ("'nonsense'", "'2026-99-99'", "'[[['", "NULL", "'9999-12-31T23:59:59+00:00'", "'{\"a\": 1}'", "-1", "x''")


def _odd_values(path: Path, draw: random.Random) -> str:
    with _edited(path) as db:
        for _ in range(50):
            table = draw.choice(_tables(db))
            column = draw.choice(list(db.execute(f"PRAGMA table_info({table})")))[1]
            value = draw.choice(VALUES)
            where = draw.choice(("", f"WHERE rowid%3={draw.randrange(3)}"))
            try:
                count = db.execute(f"UPDATE OR IGNORE {table} SET {column}={value} {where}").rowcount
            except sqlite3.DatabaseError:
                continue
            if count > 0:
                return f"{table}.{column} = {value} in {count} rows"
    return "nothing"


def _lost_rows(path: Path, draw: random.Random) -> str:
    with _edited(path) as db:
        table = draw.choice(_tables(db))
        try:
            count = db.execute(f"DELETE FROM {table} WHERE rowid%{draw.choice((1, 2, 5))}=0").rowcount
        except sqlite3.OperationalError:
            count = db.execute(f"DELETE FROM {table}").rowcount
        return f"{count} rows of {table} deleted"


DAMAGES: dict[str, Damage] = {
    "noise": _noise,
    "flipped bits": _flips,
    "cut": _cut,
    "grown": _grown,
    "NUL pages": _nul_pages,
    "no head": _no_head,
    "head noise": _head_noise,
    "swapped pages": _swapped,
    "stale pages": _stale,
    "older": _older,
    "beside": _beside,
    "wal of another": _wal_of_another,
    "wal": _wal,
    "instead": _instead,
    "foreign": _foreign,
    "version": _version,
    "dropped": _dropped,
    "odd values": _odd_values,
    "lost rows": _lost_rows,
}
