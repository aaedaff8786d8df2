"""What a write takes a name from stays open for a while: an editor may have it open, and still write into it.

What is found in such an inode and stands nowhere else is saved beside its file: at once if it is there when the inode
comes out, else when it is looked at again. One list serves the whole process, whichever part of it wrote.
"""

from __future__ import annotations

import hashlib
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, KbdError
from kbd.store.conflicts import MAX_BYTES, extend_conflict, save_conflict
from kbd.store.descriptors import read_fd, strerror
from kbd.store.leases import is_being_written

KEPT_SECONDS = 600.0
"""For so long an inode is looked at again where the system does not tell whether anybody can be writing into it."""
KEPT_MOST = 256
"""So many of them stay open, the newest: a common process may have 1024 files open."""
LINGER_SECONDS = 5.0
"""For so long a process that ends waits for those who still have such an inode open for writing."""
_STILL_OPEN = "an editor has it open as it was; what it writes now is lost, so let it read the file anew"
_TICK_NS = 2_000_000_000
_POLL_SECONDS = 0.05


class KeptFile:
    """An inode that lost its name, open for a second look; once closed, it is gone."""

    def __init__(self, fd: int, known: Iterable[bytes]) -> None:
        """Take over `fd`, opened for reading; a content that is one of `known` is safe elsewhere, and no news."""
        self._fd = fd
        self._stamp: tuple[int, int, int] | None = None
        self._known = {hashlib.sha256(data).digest() for data in known}
        self._saved: tuple[str, bytes] | None = None

    def _content(self) -> bytes:
        if os.fstat(self._fd).st_size > MAX_BYTES:
            raise FileUnreadable(f"larger than {MAX_BYTES} bytes")
        return read_fd(self._fd, MAX_BYTES)

    def late_bytes(self) -> bytes | None:
        """Return the content if someone has written to it and what it says is no known text, else None.

        Raises:
            FileUnreadable: the system refused, or it is too large.
        """
        try:
            return self._news()
        except OSError as error:
            raise FileUnreadable(strerror(error)) from error

    def _news(self) -> bytes | None:
        seen, now_ns = os.fstat(self._fd), time.time_ns()
        stamp = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if stamp == self._stamp:
            return None
        data = self._content()
        if hashlib.sha256(data).digest() not in self._known:
            return data
        # A write within the same tick of the file system's clock would leave the stamp as it is.
        self._stamp = stamp if now_ns - seen.st_ctime_ns > _TICK_NS else None
        return None

    def save_beside(self, path: str, late: bytes) -> str:
        """Save what was found late beside the file, where it is no news any more; return where it stands.

        Of a text that only grows, each look lengthens one copy.

        Raises:
            FileUnwritable, ChangedUnderneath: it is saved nowhere.
        """
        if self._saved is not None and extend_conflict(*self._saved, late):
            copy = self._saved[0]
        else:
            copy = save_conflict(path, late, self._fd)
        self._saved = (copy, late) if copy != path else None
        self._known.add(hashlib.sha256(late).digest())
        return copy

    def has_name(self) -> bool:
        """Tell whether someone has given it a name since, as far as that can be told: what is written stands there."""
        try:
            path = os.readlink(f"/proc/self/fd/{self._fd}")
            is_there = os.path.samestat(os.stat(path), os.fstat(self._fd))
        except OSError:  # no such name, or no system that tells
            return False
        # A temporary's name is soon gone, and so are those that network file systems give to what is still open.
        return is_there and not os.path.basename(path).startswith(".")

    def is_being_written(self) -> bool | None:
        """Tell whether someone has it open for writing; None where that cannot be told."""
        return is_being_written(self._fd)

    def close(self) -> None:
        """Let the inode go; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True, slots=True)
class Saved:
    """What an editor wrote into the inode that had the name `path` is in `copy`."""

    path: str
    copy: str


@dataclass(slots=True, eq=False)
class _Held:
    path: str
    inode: KeptFile
    since: float
    fault: KbdError | None = None


@dataclass(slots=True)
class Displaced:
    """The inodes that lost their names.

    Attributes:
        clock: seconds that never go back.
        wait: called with the seconds to wait for an editor.
        saved: what was saved and is still to be told; `take_saved` empties it.
    """

    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    saved: list[Saved] = field(default_factory=list)
    _held: list[_Held] = field(default_factory=list)
    # Tools of the MCP server run in threads; an inode must not be closed while another looks at it.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __len__(self) -> int:
        """Return how many inodes are open."""
        return len(self._held)

    def put(self, path: str, inode: KeptFile) -> None:
        """Take an inode over, and save what stands nowhere else in it; a failure is tried again at each look."""
        with self._lock:
            self._held.append(_Held(path, inode, self.clock()))
            self._is_safe(self._held[-1])
            while len(self._held) > most_open():
                oldest = next((held for held in self._held if self._is_safe(held)), None)
                if oldest is None:
                    break
                self._let_go(oldest)

    def look(self) -> None:
        """Save what was written meanwhile; let go of inodes that nobody has open for writing, or that are old.

        What cannot be saved now (a full disk) is kept; what cannot be read is told for as long as an inode is kept.
        """
        with self._lock:
            for held in [*self._held]:
                is_settled = self._is_safe(held) or isinstance(held.fault, FileUnreadable)
                if held.inode.has_name() or (is_settled and self._is_over(held)):
                    self._let_go(held)

    def _let_go(self, held: _Held) -> None:
        self._held.remove(held)
        held.inode.close()

    def take_saved(self) -> list[Saved]:
        """Return what was saved since the last call."""
        told, self.saved = self.saved, []
        return told

    def faults(self) -> list[tuple[str, KbdError]]:
        """Return the paths whose late text could not be saved when last tried, and why."""
        return [(held.path, held.fault) for held in self._held if held.fault is not None]

    def finish(self) -> list[tuple[str, str]]:
        """Wait for a few seconds for those who still write, look a last time, and let all go.

        Returns:
            By file, what of it is lost now.
        """
        ends = self.clock() + LINGER_SECONDS
        busy: list[str] = []
        try:
            while (busy := self._busy()) and self.clock() < ends:
                self.wait(_POLL_SECONDS)
                self.look()
        finally:
            with self._lock:
                self.look()
                lost = [(path, f"an editor's late text cannot be saved: {fault.what}") for path, fault in self.faults()]
                for held in [*self._held]:
                    self._let_go(held)
        return lost + [(path, _STILL_OPEN) for path in busy]

    def _busy(self) -> list[str]:
        with self._lock:
            return sorted({held.path for held in self._held if held.inode.is_being_written() is True})

    def _is_over(self, held: _Held) -> bool:
        age, has_writer = self.clock() - held.since, held.inode.is_being_written()
        if has_writer is None or held.fault is not None:
            return age >= KEPT_SECONDS
        # Whoever opened it by its name just before the write may not be known as a writer yet.
        return not has_writer and age * 1e9 > _TICK_NS

    def _is_safe(self, held: _Held) -> bool:
        """Save what is new beside its file; return False if that must be tried again."""
        held.fault = None
        try:
            late = held.inode.late_bytes()
            copy = held.path if late is None else held.inode.save_beside(held.path, late)
        except (FileUnreadable, FileUnwritable, ChangedUnderneath) as exc:
            held.fault = exc
            return False
        told = Saved(held.path, copy)
        if copy != held.path and told not in self.saved:
            self.saved.append(told)
        return True


def most_open() -> int:
    """Return how many inodes may stay open: a quarter of the files that this process may open, and at least eight."""
    return max(8, min(KEPT_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


DISPLACED = Displaced()
"""Of this process."""
