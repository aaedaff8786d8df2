"""Guarded changes of people's files: when they are written, when they wait, what survives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath, LockTimeout
from kbd.store.locks import Locks
from kbd.store.rewrite import Deferred, Quiet, Unchanged, Written, has_conflict, rewrite, rewrite_held
from tests.leases import need_leases

NOW = 1_800_000_000.0


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def locks(tmp_path: Path, waits: list[float]) -> Locks:
    return Locks(tmp_path / "state", waits.append)


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "kb" / "lessons.md"
    path.parent.mkdir()
    path.write_bytes(b"one\n")
    os.utime(path, (NOW - 100, NOW - 100))
    return path


def test_edited_content_is_written(note: Path, locks: Locks) -> None:
    done = rewrite(note, bytes.upper, locks, quiet_seconds=5, now=NOW)
    assert isinstance(done, Written)
    assert (done.before, done.data) == (b"one\n", b"ONE\n")
    assert (note.read_bytes(), done.mtime_ns) == (b"ONE\n", note.stat().st_mtime_ns)


def test_file_that_someone_has_open_for_writing_waits_until_kbd_has_waited_enough(note: Path, locks: Locks) -> None:
    need_leases(note.parent)
    with note.open("rb"):
        assert isinstance(rewrite(note, bytes.upper, locks, quiet_seconds=5, now=NOW), Written)
    with note.open("r+b"):
        waiting = rewrite(note, bytes.lower, locks, quiet_seconds=5, now=NOW + 100)
        assert waiting == Deferred("another program has it open for writing")
        assert isinstance(rewrite(note, bytes.lower, locks, quiet_seconds=0, now=NOW), Written)
    assert note.read_bytes() == b"one\n"


def test_save_that_is_under_way_is_waited_for_even_by_who_writes_at_once(note: Path, tmp_path: Path) -> None:
    need_leases(note.parent)
    editor = note.open("r+b", buffering=0)
    editor.write(b"first half, ")

    def wait(seconds: float) -> None:
        if not editor.closed:
            editor.write(b"second half\n")
            editor.close()

    done = rewrite(note, bytes.upper, Locks(tmp_path / "state", wait), quiet_seconds=0, now=NOW)
    assert isinstance(done, Written)
    assert note.read_bytes() == b"FIRST HALF, SECOND HALF\n"
    assert list(note.parent.glob("*.kbd-conflict*")) == []


def test_nothing_is_written_when_nothing_changes(note: Path, locks: Locks) -> None:
    before = note.stat()
    assert rewrite(note, bytes, locks, quiet_seconds=5, now=NOW) == Unchanged()
    assert (note.stat().st_ino, note.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("age_seconds", [0, 4.9, -4.9])
def test_file_that_changed_just_now_waits(note: Path, locks: Locks, age_seconds: float) -> None:
    os.utime(note, (NOW - age_seconds, NOW - age_seconds))
    assert isinstance(rewrite(note, bytes.upper, locks, quiet_seconds=5, now=NOW), Deferred)
    assert note.read_bytes() == b"one\n"
    assert isinstance(rewrite(note, bytes.upper, locks, quiet_seconds=0, now=NOW), Written)


@pytest.mark.parametrize("age_seconds", [5.1, -1000])
def test_old_file_and_one_from_a_wrong_clock_do_not_wait(note: Path, locks: Locks, age_seconds: float) -> None:
    os.utime(note, (NOW - age_seconds, NOW - age_seconds))
    assert isinstance(rewrite(note, bytes.upper, locks, quiet_seconds=5, now=NOW), Written)


def test_own_write_is_no_sign_of_a_person(note: Path, locks: Locks) -> None:
    done = rewrite(note, bytes.upper, locks, quiet_seconds=5, now=NOW)
    assert isinstance(done, Written)
    soon = done.mtime_ns / 1e9 + 1
    assert isinstance(rewrite(note, bytes.lower, locks, quiet_seconds=5, now=soon), Deferred)
    again = rewrite(note, bytes.lower, locks, quiet_seconds=5, now=soon, own_mtime_ns=done.mtime_ns)
    assert isinstance(again, Written)


def test_git_at_work_and_conflict_markers_wait(note: Path, locks: Locks) -> None:
    conflict = b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n"
    note.write_bytes(conflict)
    done = rewrite(note, bytes.upper, locks, quiet_seconds=0, now=NOW)
    assert done == Deferred("conflict markers stand in it")
    (note.parent / ".git").mkdir()
    (note.parent / ".git" / "HEAD").write_text("")
    (note.parent / ".git" / "index.lock").write_text("")
    done = rewrite(note, bytes.upper, locks, quiet_seconds=0, now=NOW)
    assert done == Deferred("git is at work (index.lock)")
    assert note.read_bytes() == conflict


@pytest.mark.parametrize(
    ("text", "conflict"),
    [
        (b"<<<<<<< HEAD\n=======\n>>>>>>> b\n", True),
        (b"x\r\n<<<<<<< HEAD\r\na\r\n||||||| base\r\n=======\r\nb\r\n>>>>>>> b\r\n", True),
        (b"<<<<<<<\n=======\n>>>>>>>", True),
        (b"<<<<<<< a\n<<<<<<< b\n=======\nx\n>>>>>>> b\n", True),
        (b"Title\n=======\n", False),
        (b"<<<<<<< a\n=======\n", False),
        (b"<<<<<<< a\n>>>>>>> b\n", False),
        (b" <<<<<<< a\n =======\n >>>>>>> b\n", False),
        (b"<<<<<<<< a\n========\n>>>>>>>> b\n", False),
        (b"<<<<<<<a\n=======\n>>>>>>>b\n", False),
        (b"<<<<<<< a\n======= x\n>>>>>>> b\n", False),
        (b"<<<<<<< a\n" * 200_000, False),
    ],
)
def test_conflict_markers_are_the_three_in_their_order(text: bytes, conflict: bool) -> None:
    assert has_conflict(text) == conflict


def test_change_in_between_is_read_anew_with_growing_pauses(note: Path, locks: Locks, waits: list[float]) -> None:
    rounds = 0

    def edit(data: bytes) -> bytes:
        nonlocal rounds
        rounds += 1
        if rounds < 3:
            note.write_bytes(data + b"agent %d\n" % rounds)
        return data + b"kbd\n"

    assert isinstance(rewrite(note, edit, locks, quiet_seconds=0, now=NOW), Written)
    assert note.read_bytes() == b"one\nagent 1\nagent 2\nkbd\n"
    assert waits == pytest.approx([0.1, 0.2])


def test_file_that_goes_on_changing_is_left_to_the_others(note: Path, locks: Locks, waits: list[float]) -> None:
    def edit(data: bytes) -> bytes:
        note.write_bytes(data + b"x")
        return data + b"kbd"

    with pytest.raises(ChangedUnderneath):
        rewrite(note, edit, locks, quiet_seconds=0, now=NOW, attempts=3)
    assert note.read_bytes() == b"one\nxxx"
    assert len(waits) == 2


def test_absent_file_is_made_only_on_request(note: Path, locks: Locks) -> None:
    new = note.parent / "new.md"
    with pytest.raises(FileNotFoundError):
        rewrite(new, lambda data: data + b"x", locks, quiet_seconds=5, now=NOW)
    assert rewrite(new, bytes, locks, quiet_seconds=5, now=NOW, create=True) == Unchanged()
    assert not new.exists()
    done = rewrite(new, lambda data: data + b"x", locks, quiet_seconds=5, now=NOW, create=True)
    assert isinstance(done, Written)
    assert (done.before, new.read_bytes()) == (None, b"x")


def test_lock_is_held_while_editing_and_goes_back_after_a_fault(note: Path, locks: Locks) -> None:
    def edit(data: bytes) -> bytes:
        with pytest.raises(LockTimeout):
            rewrite(note, bytes.upper, locks, quiet_seconds=0, now=NOW, timeout_seconds=0)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        rewrite(note, edit, locks, quiet_seconds=0, now=NOW)
    assert isinstance(rewrite(note, bytes.upper, locks, quiet_seconds=0, now=NOW, timeout_seconds=0), Written)


def test_two_files_are_changed_under_both_locks(note: Path, locks: Locks) -> None:
    archive = note.parent / "lessons-archive.md"
    quiet = Quiet(NOW, 0)
    with locks.hold([note, archive], 0):
        rewrite_held(archive, lambda data: data + b"one\n", locks, quiet, create=True)
        rewrite_held(note, lambda data: b"", locks, quiet)
    assert (note.read_bytes(), archive.read_bytes()) == (b"", b"one\n")


WRITER = """
import re, sys, time
from pathlib import Path
from kbd.store.locks import Locks
from kbd.store.rewrite import rewrite
path, state, name, rounds = sys.argv[1], Path(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])
for n in range(1, rounds + 1):
    def edit(data):
        assert name + b":%04d" % (n - 1) in data
        return data.replace(name + b":%04d" % (n - 1), name + b":%04d" % n)
    rewrite(path, edit, Locks(state, lambda _: time.sleep(0.0005)), quiet_seconds=0, now=0.0, timeout_seconds=1e6)
"""


def test_two_writers_of_different_entries_lose_nothing(note: Path, tmp_path: Path) -> None:
    note.write_bytes(b"one:0000\ntwo:0000\n")
    command = [sys.executable, "-c", WRITER, str(note), str(tmp_path / "state")]
    with (
        subprocess.Popen([*command, "one", "200"]) as one,
        subprocess.Popen([*command, "two", "200"]) as two,
    ):
        assert (one.wait(timeout=60), two.wait(timeout=60)) == (0, 0)
    assert note.read_bytes() == b"one:0200\ntwo:0200\n"
    assert os.listdir(note.parent) == ["lessons.md"]
