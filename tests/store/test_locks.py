"""Locks between processes and threads, on real files."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kbd.errors import AlreadyRunning, FileUnwritable, LockTimeout
from kbd.store import locks as locks_module
from kbd.store.locks import InstanceLock, Locks, running_pid


class Waits:
    """A way of waiting that takes no time and notes how long it would have been."""

    def __init__(self, on_wait: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self.on_wait = on_wait

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds
        self.on_wait()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "lessons.md"
    path.write_bytes(b"")
    return path


def sidecar(state: Path, path: Path) -> Path:
    return state / "locks" / (hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest() + ".lock")


@contextmanager
def held_elsewhere(path: Path, kind: str = "flock") -> Iterator[None]:
    """Another process holds a lock on the file."""
    code = f"import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.{kind}(f, fcntl.LOCK_EX); print(flush=True)"
    code += "; sys.stdin.read()"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()


def test_sidecar_is_private_named_by_the_real_path_and_stays(state: Path, note: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(note)
    with Locks(state).hold([link], 0):
        assert os.listdir(state / "locks") == [sidecar(state, note).name]
    assert stat.S_IMODE(sidecar(state, note).stat().st_mode) == 0o600
    assert stat.S_IMODE((state / "locks").stat().st_mode) == 0o700
    assert sorted(os.listdir(tmp_path)) == ["lessons.md", "link.md", "state"]


def test_several_names_of_one_file_are_one_lock(state: Path, note: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(note)
    with Locks(state).hold([link, note, tmp_path / "." / "lessons.md"], 0):
        assert len(os.listdir(state / "locks")) == 1


def test_file_that_does_not_exist_yet_can_be_locked(state: Path, tmp_path: Path) -> None:
    with (
        Locks(state).hold([tmp_path / "new.yaml"], 0),
        pytest.raises(LockTimeout),
        Locks(state).hold([tmp_path / "new.yaml"], 0),
    ):
        pytest.fail("held twice")


def test_timeout_is_for_all_files_together(state: Path, note: Path, tmp_path: Path) -> None:
    waits = Waits()
    other = tmp_path / "other.md"
    with (
        Locks(state).hold([other], 0),
        pytest.raises(LockTimeout, match="other.md"),
        Locks(state, waits).hold([note, other], 1.5),
    ):
        pytest.fail("held twice")
    assert waits.seconds == pytest.approx(1.5)
    with Locks(state).hold([note], 0):
        assert True, "the first lock went back"


def test_lock_that_comes_free_is_taken(state: Path, note: Path) -> None:
    first = Locks(state).hold([note], 0)
    first.__enter__()
    waits = Waits(lambda: first.__exit__(None, None, None) if waits.seconds < 0.03 else None)
    with Locks(state, waits).hold([note], 10):
        assert 0 < waits.seconds < 0.1


def test_order_is_by_path_with_yaml_last(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real_open = locks_module._open_lock

    def noting(path: Path) -> int:
        opened.append(path.name)
        return real_open(path)

    monkeypatch.setattr(locks_module, "_open_lock", noting)
    names = ["z.md", ".knowledge-graph.yaml", "a.md", "m.md"]
    with Locks(state).hold([tmp_path / name for name in names], 0):
        expected = [sidecar(state, tmp_path / name).name for name in ("a.md", "m.md", "z.md", ".knowledge-graph.yaml")]
        assert opened == expected


def test_threads_exclude_each_other(state: Path, note: Path) -> None:
    total = 0

    def add() -> None:
        nonlocal total
        for _ in range(50):
            with Locks(state, lambda _: None).hold([note], 1e9):
                before = total
                os.listdir(state)
                total = before + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == 100


def test_lock_of_a_dead_process_is_free(state: Path, note: Path) -> None:
    with Locks(state).hold([note], 0):
        pass
    with held_elsewhere(sidecar(state, note)), pytest.raises(LockTimeout), Locks(state).hold([note], 0):
        pytest.fail("held twice")
    with Locks(state).hold([note], 0):
        assert sidecar(state, note).exists()


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_lock_of_another_tool_is_joined(state: Path, note: Path, kind: str) -> None:
    foreign = note.with_name("lessons.md.lock")
    foreign.write_bytes(b"")
    with held_elsewhere(foreign, kind), pytest.raises(LockTimeout), Locks(state).hold([note], 0):
        pytest.fail("held twice")
    with Locks(state).hold([note], 0):
        code = f"import fcntl, sys; fcntl.{kind}(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run([sys.executable, "-c", code, str(foreign)], capture_output=True, text=True, check=False)
        assert "BlockingIOError" in done.stderr
    assert foreign.read_bytes() == b""


def test_lock_of_another_tool_is_never_made_or_followed(state: Path, note: Path, tmp_path: Path) -> None:
    foreign = note.with_name("lessons.md.lock")
    with Locks(state).hold([note], 0):
        assert not foreign.exists()
    foreign.symlink_to(tmp_path / "target")
    with Locks(state).hold([note], 0):
        assert not (tmp_path / "target").exists()
    foreign.unlink()
    for make in (os.mkfifo, os.mkdir):
        make(foreign)
        with Locks(state).hold([note], 0):
            assert foreign.exists()
        (os.unlink if make is os.mkfifo else os.rmdir)(foreign)


def test_lock_that_its_tool_unlinked_is_not_taken_for_the_new_one(state: Path, note: Path) -> None:
    """Tools that remove their lock file leave those who waited with a dead inode."""
    foreign = note.with_name("lessons.md.lock")
    foreign.write_bytes(b"")
    with foreign.open("r+b") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = None

        def replaced() -> None:
            nonlocal second
            if second is None:
                foreign.unlink()
                foreign.write_bytes(b"")
                second = foreign.open("r+b")
                fcntl.flock(second, fcntl.LOCK_EX)
                fcntl.flock(first, fcntl.LOCK_UN)

        with pytest.raises(LockTimeout), Locks(state, Waits(replaced)).hold([note], 1):
            pytest.fail("took the dead inode")
        assert second is not None
        second.close()


def test_lock_place_that_is_no_file_is_an_error_and_not_contention(state: Path, note: Path) -> None:
    with Locks(state).hold([note], 0):
        pass
    path = sidecar(state, note)
    path.unlink()
    path.symlink_to(note)
    waits = Waits()
    with pytest.raises(FileUnwritable), Locks(state, waits).hold([note], 5):
        pytest.fail("followed a link")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileUnwritable), Locks(state, waits).hold([note], 5):
        pytest.fail("opened a FIFO")
    assert waits.seconds == 0


def test_state_directory_that_is_a_file_is_an_error(note: Path) -> None:
    with pytest.raises(FileUnwritable), Locks(note).hold([note], 5):
        pytest.fail("held")
    with pytest.raises(FileUnwritable):
        InstanceLock(note).acquire()


# --- one daemon ----------------------------------------------------------------------------------------------


def test_second_daemon_is_told_the_pid_of_the_first(state: Path) -> None:
    assert running_pid(state) is None
    with InstanceLock(state):
        assert running_pid(state) == os.getpid()
        with pytest.raises(AlreadyRunning, match=str(os.getpid())):
            InstanceLock(state, Waits()).acquire()
        assert running_pid(state) == os.getpid()
    assert running_pid(state) is None
    with InstanceLock(state):
        assert running_pid(state) == os.getpid()


def test_pid_of_a_dead_daemon_means_nothing(state: Path) -> None:
    with InstanceLock(state):
        pass
    # As after a kill, with a pid that lives again as something else.
    (state / "daemon.lock").write_bytes(b"%d\n" % os.getpid())
    assert running_pid(state) is None
    InstanceLock(state).acquire()


@pytest.mark.parametrize("content", [b"", b"garbage", b"-5\n", b"\xff\x00", b"9" * 400])
def test_daemon_without_a_readable_pid_still_runs(state: Path, content: bytes) -> None:
    with InstanceLock(state):
        (state / "daemon.lock").write_bytes(content)
        assert running_pid(state) is not None


def test_asking_for_the_pid_at_the_wrong_instant_stops_no_start(state: Path) -> None:
    with InstanceLock(state):
        pass
    fd = os.open(state / "daemon.lock", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    closing = iter([None])
    waits = Waits(lambda: os.close(fd) if next(closing, 0) is None else None)
    with InstanceLock(state, waits):
        assert running_pid(state) == os.getpid()
