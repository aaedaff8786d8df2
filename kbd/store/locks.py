"""Locks on people's files, and the one that keeps a state directory to one daemon.

Each file has a sidecar in the state directory, named by the file's real path and never unlinked: one name for
every writer, whatever happens to the file itself. A `<file>.lock` of another tool is joined where it exists.
Locks are not re-entrant: a holder that asks again for its own file waits for itself until the timeout.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kbd.errors import AlreadyRunning, FileUnreadable, FileUnwritable, LockTimeout
from kbd.store.descriptors import hint_of, strerror
from kbd.store.filesystem import require_local
from kbd.store.identity import has_name

# POSIX lets `lockf` say EACCES where `flock` says EWOULDBLOCK; every other errno is a fault and not contention.
_HELD_BY_ANOTHER = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_POLL_SECONDS = 0.02
_START_POLLS = 25
Wait = Callable[[float], None]


def try_flock(fd: int) -> bool:
    """Lock an open file exclusively without waiting; return False if another holds it.

    Raises:
        OSError: the file system has no such locks, or ran out of them.
    """
    return _taken(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))


@dataclass(frozen=True, slots=True)
class Locks:
    """The locks of one state directory.

    Attributes:
        state_dir: holds `locks/`, which is made when needed.
        wait: called with seconds between two attempts; the time waited is the sum of them.
    """

    state_dir: Path
    wait: Wait = time.sleep

    def __post_init__(self) -> None:
        """Refuse a state directory on a network file system (UsageError), where locks may hold nothing."""
        require_local(self.state_dir)

    @contextmanager
    def hold(self, paths: Iterable[str | os.PathLike[str]], timeout_seconds: float) -> Iterator[None]:
        """Hold the locks of all files, taken in one order everywhere: by real path, YAML files after the others.

        Args:
            paths: need not exist; several names of one file are one lock.
            timeout_seconds: for all of them together; 0 tries once.

        Raises:
            LockTimeout: another holder did not let go in time; none of the locks is held.
            FileUnwritable: a lock file cannot be made or locked.
        """
        real_paths = sorted({Path(os.path.realpath(path)) for path in paths}, key=_order)
        budget = _Budget(timeout_seconds, self.wait)
        directory = self.state_dir / "locks"
        with ExitStack() as stack:
            for real in real_paths:
                with _lock_faults(directory):
                    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                stack.enter_context(_sidecar(directory, real, budget))
                stack.enter_context(_foreign(real, budget))
            yield


class InstanceLock:
    """The lock that one daemon holds on a state directory. The lock decides; the pid in the file is for people."""

    def __init__(self, state_dir: Path, wait: Wait = time.sleep) -> None:
        """Take nothing yet; `wait` is called with seconds between two attempts."""
        self._path = _instance_path(state_dir)
        self._wait = wait
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock and write this process's pid into it.

        Raises:
            AlreadyRunning: another process holds it.
            FileUnwritable: the state directory cannot be written.
        """
        with _lock_faults(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = _open_lock(self._path)
            try:
                if not self._taken(fd):
                    raise AlreadyRunning(
                        f"another daemon runs here (pid {_pid(fd) or 'unknown'})",
                        where=str(self._path.parent),
                        hint="stop it, or give another --state-dir",
                    )
                os.ftruncate(fd, 0)
                os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
            except BaseException:
                os.close(fd)
                raise
        self._fd = fd

    def _taken(self, fd: int) -> bool:
        # `running_pid` of another process holds the lock for an instant; a daemon holds it on.
        for _ in range(_START_POLLS):
            if try_flock(fd):
                return True
            self._wait(_POLL_SECONDS)
        return False

    def stands(self) -> bool:
        """Tell whether the lock guards the directory still: it does not once that was deleted or moved."""
        return self._fd is None or has_name(os.fstat(self._fd), self._path)

    def release(self) -> None:
        """Let the lock go; idempotent."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> InstanceLock:
        """Acquire."""
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """Release."""
        self.release()


def running_pid(state_dir: Path) -> int | None:
    """Return the pid of the daemon that runs on the state directory, None if none does.

    0 stands for a daemon that holds the lock and has not written its pid. A pid left by a dead daemon, even if
    another process has it by now, is not looked at.

    Raises:
        FileUnreadable: the lock file is there and cannot be opened.
    """
    path = _instance_path(state_dir)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnreadable(error.strerror or str(error), where=str(path), hint="check its permissions") from error
    try:
        free = _taken(lambda: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB))
        return None if free else _pid(fd)
    finally:
        os.close(fd)


def _instance_path(state_dir: Path) -> Path:
    return state_dir / "daemon.lock"


def _pid(fd: int) -> int:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def _order(real: Path) -> tuple[bool, str]:
    return real.suffix in {".yaml", ".yml"}, os.fspath(real)


@dataclass(slots=True)
class _Budget:
    """Seconds of waiting that are left."""

    seconds: float
    wait: Wait

    def until(self, attempt: Callable[[], bool], path: Path) -> None:
        """Repeat `attempt` until it holds.

        Raises:
            LockTimeout: the seconds ran out.
        """
        while not attempt():
            if self.seconds <= 0:
                raise LockTimeout("locked by another process", where=str(path), hint="try again later")
            pause = min(_POLL_SECONDS, self.seconds)
            self.seconds -= pause
            self.wait(pause)


@contextmanager
def _lock_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = hint_of(error) or "keep the state directory on a local disk"
        raise FileUnwritable(f"cannot lock: {strerror(error)}", where=str(path), hint=hint) from error


def _taken(lock: Callable[[], None]) -> bool:
    try:
        lock()
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise
    return True


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    seen = os.fstat(fd)
    if not stat.S_ISREG(seen.st_mode) or seen.st_nlink > 1:
        os.close(fd)
        # What is written into it would stand under its other name as well.
        what = "it has a second name elsewhere" if stat.S_ISREG(seen.st_mode) else "not a regular file"
        raise OSError(errno.EINVAL, what, os.fspath(path))
    return fd


@contextmanager
def _sidecar(directory: Path, real: Path, budget: _Budget) -> Iterator[None]:
    path = directory / f"{hashlib.sha256(os.fsencode(real)).hexdigest()}.lock"
    with _lock_faults(path):
        fd = _open_lock(path)
    try:
        with _lock_faults(path):
            budget.until(lambda: try_flock(fd), real)
        yield
    finally:
        os.close(fd)


@contextmanager
def _foreign(real: Path, budget: _Budget) -> Iterator[None]:
    """Hold `<file>.lock` of another tool, if it is there as a regular file; it is never made."""
    path = real.with_name(real.name + ".lock")
    with ExitStack() as stack:
        with _lock_faults(path):
            budget.until(lambda: _joined(path, stack), path)
        yield


def _joined(path: Path, stack: ExitStack) -> bool:
    """Take the lock file's locks and leave their release to `stack`; True as well if there is no such file."""
    fd, kind = _open_foreign(path)
    if fd is None:
        return True
    with ExitStack() as failed:
        failed.callback(os.close, fd)
        # Both kinds, since other tools use either.
        if try_flock(fd) and _taken(lambda: fcntl.lockf(fd, kind | fcntl.LOCK_NB)) and _still_there(fd, path):
            stack.push(failed.pop_all())
            return True
    return False


def _open_foreign(path: Path) -> tuple[int | None, int]:
    """Open the lock file, if it is there; with the strongest kind of `lockf` that its permissions allow."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, 0
        try:
            return os.open(path, os.O_RDWR | flags), fcntl.LOCK_EX
        except PermissionError:
            # A shared lock still waits for the exclusive one of another tool.
            return os.open(path, os.O_RDONLY | flags), fcntl.LOCK_SH
    except FileNotFoundError:
        return None, 0


def _still_there(fd: int, path: Path) -> bool:
    """Tell whether the locked file still has the name: tools that unlink their lock leave a dead inode behind."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
