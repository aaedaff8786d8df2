"""What happens to files, in tracks: each track keeps its order, tracks run into each other."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import zstandard

from tests.forms.history import TODAY

Step = Callable[["Disk"], None]
Track = list[Step]


class Disk:
    """The folder of an agent; modification times go on by 10 ms a step, close to the noon of the pass."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ticks = 0
        self.databases: dict[str, sqlite3.Connection] = {}

    def path(self, relpath: str) -> Path:
        path = self.root / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def touch(self, path: Path) -> None:
        self.ticks += 1
        at = TODAY.timestamp() - 3600 + self.ticks / 100
        with suppress(FileNotFoundError):
            os.utime(path, (at, at))

    def write(self, relpath: str, data: bytes, mode: str) -> None:
        path = self.path(relpath)
        with open(path, mode) as file:
            file.write(data)
        self.touch(path)

    def database(self, relpath: str, schema: str) -> sqlite3.Connection:
        """Return the open database; a writer that lives keeps its rows in `-wal`."""
        if relpath not in self.databases:
            self.databases[relpath] = sqlite3.connect(self.path(relpath))
            self.databases[relpath].executescript(schema)
        return self.databases[relpath]

    def close(self) -> None:
        for database in self.databases.values():
            database.close()


def append(relpath: str, data: bytes) -> Step:
    return lambda disk: disk.write(relpath, data, "ab")


def replace(relpath: str, data: bytes, *, in_place: bool = False) -> Step:
    """Write a file anew: in place, or as a new file that is renamed over it."""

    def do(disk: Disk) -> None:
        if in_place:
            disk.write(relpath, data, "wb")
            return
        disk.write(f"{relpath}.tmp", data, "wb")
        os.rename(disk.path(f"{relpath}.tmp"), disk.path(relpath))

    return do


def rename(old: str, new: str) -> Step:
    return lambda disk: os.rename(disk.path(old), disk.path(new))


def copy(old: str, new: str) -> Step:
    def do(disk: Disk) -> None:
        shutil.copyfile(disk.path(old), disk.path(new))
        disk.touch(disk.path(new))

    return do


def truncate(relpath: str) -> Step:
    return lambda disk: disk.write(relpath, b"", "wb")


def remove(relpath: str) -> Step:
    return lambda disk: os.unlink(disk.path(relpath))


def pack(old: str, new: str) -> Step:
    """Compress a file by the suffix of its new name, then remove the old one."""

    def do(disk: Disk) -> None:
        data = disk.path(old).read_bytes()
        disk.write(new, gzip.compress(data) if new.endswith(".gz") else zstandard.compress(data), "wb")
        os.unlink(disk.path(old))

    return do


def sql(relpath: str, schema: str, statements: Iterable[tuple[str, Sequence[object]]]) -> Step:
    rows = list(statements)

    def do(disk: Disk) -> None:
        database = disk.database(relpath, schema)
        with database:
            for statement, values in rows:
                database.execute(statement, values)
        for suffix in ("", "-wal"):
            disk.touch(Path(f"{disk.path(relpath)}{suffix}"))

    return do


def pieces(relpath: str, data: bytes, rng: random.Random) -> Track:
    """Append in one to four pieces that end anywhere."""
    ends = sorted({rng.randrange(len(data) + 1) for _ in range(rng.randrange(4))} | {len(data)})
    starts = [0, *ends[:-1]]
    return [append(relpath, data[a:b]) for a, b in zip(starts, ends, strict=True) if b > a]


def interleaved(tracks: Sequence[Track], rng: random.Random) -> Track:
    """Run tracks into each other; their files are born in the order of the tracks, as copies are after originals."""
    left: list[Track] = []
    steps: Track = []
    for track in filter(None, tracks):
        steps.append(track[0])
        left += [list(track[1:])] if track[1:] else []
        while left and rng.random() < 0.5:
            chosen = rng.choice(left)
            steps.append(chosen.pop(0))
            left = [one for one in left if one]
    while left:
        track = rng.choice(left)
        steps.append(track.pop(0))
        left = [one for one in left if one]
    return steps
