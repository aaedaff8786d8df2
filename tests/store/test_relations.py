"""The relations file on disk."""

from __future__ import annotations

import os
import stat
import threading
import time
from datetime import date
from pathlib import Path

import pytest

from kbd.core.model import Relation
from kbd.errors import FileUnreadable, Refused
from kbd.store.locks import Locks
from kbd.store.relations import archive_of, load, move_to_archive, write
from kbd.store.rewrite import Deferred, Quiet, Unchanged, Written

DAY = date(2026, 6, 10)
QUIET = Quiet(0.0, 0.0)
A = Relation("A lesson", "applies_to", "a.py", DAY, DAY)
B = Relation("B lesson", "requires", "A lesson", DAY, DAY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    return tmp_path / "kb" / ".knowledge-graph.yaml"


@pytest.fixture
def locks(tmp_path: Path) -> Locks:
    return Locks(tmp_path / "state")


def held(path: Path | str) -> tuple[Relation, ...]:
    loaded = load(path)
    assert loaded is not None
    return loaded.relations


def test_absent_file_is_none_and_empty_file_holds_nothing(path: Path) -> None:
    assert load(path) is None
    path.write_bytes(b"")
    assert held(path) == ()


def test_first_write_makes_the_file(path: Path, locks: Locks) -> None:
    assert isinstance(write(path, [A, B], locks, QUIET), Written)
    assert held(path) == (A, B)
    assert os.listdir(path.parent) == [path.name]
    assert write(path, [A, B], locks, QUIET) == Unchanged()


@pytest.mark.parametrize("data", [b"- {s: a\n", b"\x00" * 100, b"\xff", b"text\n", b"a: [" * 10_000])
def test_broken_file_stays_as_it_is(path: Path, locks: Locks, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(FileUnreadable, match="knowledge-graph"):
        load(path)
    with pytest.raises(FileUnreadable):
        write(path, [A], locks, QUIET)
    assert path.read_bytes() == data


def test_what_is_no_file_is_unreadable(path: Path, locks: Locks) -> None:
    os.mkfifo(path)
    with pytest.raises(FileUnreadable):
        load(path)
    with pytest.raises(FileUnreadable):
        write(path, [A], locks, QUIET)


def test_refused_change_writes_nothing_at_all(path: Path, locks: Locks) -> None:
    with pytest.raises(Refused):
        write(path, [A, Relation("a", "reminds_of", "b", DAY, DAY)], locks, QUIET)
    assert not path.exists()
    write(path, [B], locks, QUIET)
    before = path.read_bytes()
    with pytest.raises(Refused, match="cycle"):
        write(path, [A, Relation("A lesson", "extends", "B lesson", DAY, DAY)], locks, QUIET)
    assert path.read_bytes() == before


def test_problems_name_the_file(path: Path) -> None:
    path.write_bytes(b"- {s: a, p: reminds_of, o: b}\n")
    loaded = load(path)
    assert loaded is not None
    assert [problem.where for problem in loaded.problems] == [f"{path}:1"]


def test_link_and_mode_are_kept(path: Path, locks: Locks, tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_bytes(b"# mine\n- {s: A lesson, p: applies_to, o: a.py, u: 2026-01-01}\n")
    real.chmod(0o640)
    path.symlink_to(real)
    write(path, [A], locks, QUIET)
    assert path.is_symlink()
    assert real.read_bytes() == b"# mine\n- {s: A lesson, p: applies_to, o: a.py, u: 2026-06-10}\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_moved_relations_are_in_the_archive_and_gone_here(path: Path, locks: Locks) -> None:
    old = Relation("Old", "informs", "x", DAY, DAY, DAY)
    write(path, [A, old], locks, QUIET)
    before = path.read_bytes()
    assert isinstance(move_to_archive(path, [old], locks, QUIET), Written)
    assert (held(path), held(archive_of(path))) == ((A,), (old,))
    archived = Path(archive_of(path)).read_bytes()
    # A crash between the two writes leaves it in both.
    path.write_bytes(before)
    move_to_archive(path, [old], locks, QUIET)
    assert held(path) == (A,)
    assert Path(archive_of(path)).read_bytes() == archived


def test_nothing_is_cut_when_the_archive_must_wait(path: Path, locks: Locks) -> None:
    write(path, [A], locks, QUIET)
    before = path.read_bytes()
    Path(archive_of(path)).write_bytes(b"# <<\n")
    now = os.stat(archive_of(path)).st_mtime
    assert isinstance(move_to_archive(path, [A], locks, Quiet(now, 5.0, path.stat().st_mtime_ns)), Deferred)
    assert path.read_bytes() == before


def test_archive_is_named_beside_its_file() -> None:
    assert archive_of("/kb/.knowledge-graph.yaml") == "/kb/.knowledge-graph-archive.yaml"
    assert archive_of("/kb/r.yml") == "/kb/r-archive.yml"
    assert archive_of("/kb/.relations") == "/kb/.relations-archive"


def test_two_threads_lose_no_relation(path: Path, tmp_path: Path) -> None:
    locks = Locks(tmp_path / "state", lambda seconds: time.sleep(seconds / 4))

    def add(name: str) -> None:
        for n in range(25):
            write(path, [Relation(f"{name} {n}", "informs", "x", DAY, DAY)], locks, QUIET)

    threads = [threading.Thread(target=add, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {relation.s for relation in held(path)} == {f"{name} {n}" for name in ("one", "two") for n in range(25)}
