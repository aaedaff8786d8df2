"""The event log of a graph on disk: read line by line whatever stands in it, appended to whole or not at all.

Writers hold an exclusive `flock` on the log itself, one name for every kbd on the machine whatever its state directory.
An append is one `write` and one `fsync`; what a crash leaves of it is known when the log is read next: a last line
without its end, or a plan of which steps are missing. Neither counts, and the next writer cuts it off.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple

import msgspec

from kbd.core.operations import Fault, Operation, record_of
from kbd.errors import FileUnreadable, LockTimeout, Refused
from kbd.store.descriptors import StrPath, open_regular, strerror, unwritable
from kbd.store.eventlines import OVERSIZE, Line, Mark, exact_operations, line_of, lines_of
from kbd.store.locks import try_flock

MAX_LINE_BYTES = 8 * 1024 * 1024
_POLL_SECONDS = 0.002
_BLOCK_BYTES = 1 << 20
_ENCODE = msgspec.json.Encoder().encode


class Position(NamedTuple):
    """How far a log was read: bytes, and lines that end before them."""

    offset: int = 0
    line: int = 0


START = Position()


class Run(NamedTuple):
    """Lines with one operation each and nothing odd about them; the first is line `number`."""

    number: int
    operations: Sequence[Operation]


class Log:
    """Lines of a log from a position on. Iterate once; then `end` is how far whole lines and whole plans reach.

    Attributes:
        end: where the next reading begins.
        torn_bytes: what stands after it: a torn line, a plan that was not finished, or `tail`.
        tail: an operation in a last line without its end, as a person's editor leaves it; it counts, and is read again
            when the line goes on.
    """

    def __init__(self, file: IO[bytes], start: Position = START, block_bytes: int | None = None) -> None:
        """Read from an open file, so much at a time; nothing is read yet."""
        self._file, self.end, self.torn_bytes = file, start, 0
        self._block_bytes = block_bytes or _BLOCK_BYTES
        self.tail: Line | None = None
        self._offset, self._number = start
        self._skipped = 0

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines. Lines of a plan are yielded when it is whole; an unfinished plan at the end is not."""
        for piece in self.pieces():
            if isinstance(piece, Line):
                yield piece
            else:
                for number, operation in enumerate(piece.operations, piece.number):
                    yield Line(number, (operation,), (), operation.by)

    def pieces(self) -> Iterator[Line | Run]:
        """Yield the same, lines in the one exact form many at a time."""
        self._file.seek(self._offset)
        plan = _Plan()
        while block := self._block():
            whole = block[: block.rfind(b"\n") + 1]
            operations = None if plan.lines else exact_operations(whole)
            if operations is None:
                yield from self._taken(whole, plan)
            else:
                yield Run(self._number + 1, operations)
                self._offset += len(whole)
                self._number += len(operations)
                self.end = Position(self._offset, self._number)
            if not block.endswith(b"\n"):
                self.tail = None if plan.lines else _whole_tail(block[len(whole) :], self._number + 1)
                break
        self.torn_bytes = os.fstat(self._file.fileno()).st_size - self.end.offset

    def _taken(self, whole: bytes, plan: _Plan) -> Iterator[Line]:
        """Yield what the whole lines of a block say, line by line."""
        for raw, line in lines_of(whole, self._number):
            self._number += 1
            if line.mark is None and not plan.lines:
                yield line
            else:
                if not plan.lines:
                    self.end = Position(self._offset, self._number - 1)
                yield from plan.add(line)
            self._offset += len(raw) + 1
            if raw == OVERSIZE:
                # Whatever else stands there with the same words was not skipped.
                self._offset, self._skipped = self._offset + self._skipped, 0
        if not plan.lines:
            self.end = Position(self._offset, self._number)

    def _block(self) -> bytes:
        """Return some whole lines; the last block may end in the midst of one. Of an oversize line a stand-in."""
        block = self._file.read(self._block_bytes)
        if len(block) == self._block_bytes and not block.endswith(b"\n"):
            block += self._file.readline(MAX_LINE_BYTES)
            if len(block) - block.rfind(b"\n", 0, -1) - 1 > MAX_LINE_BYTES:
                block = self._without_oversize(block)
        return block

    def _without_oversize(self, block: bytes) -> bytes:
        start = block.rfind(b"\n", 0, -1) + 1
        size = len(block) - start
        while not block.endswith(b"\n"):
            piece = self._file.readline(MAX_LINE_BYTES)
            if not piece:
                return block[:start]
            size, block = size + len(piece), block[:start] + piece
        self._skipped = size - len(OVERSIZE) - 1
        return block[:start] + OVERSIZE + b"\n"


class _Plan:
    """The lines of a plan so far."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._mark = Mark("", 0, 0)

    def add(self, line: Line) -> list[Line]:
        """Take a line; return the lines of a plan that will never be whole, as faults, and those that are whole now."""
        mark, broken = line.mark, []
        if self.lines and mark != self._mark._replace(step=self._mark.step + 1):
            broken = [_incomplete(one) for one in self.lines]
            self.lines = []
        if mark is None:
            return [*broken, line]
        if not self.lines and mark.step != 1:
            return [*broken, _incomplete(line)]
        self.lines.append(line)
        self._mark = mark
        if mark.step < mark.steps:
            return broken
        whole, self.lines = self.lines, []
        return [*broken, *whole]


def _incomplete(line: Line) -> Line:
    return Line(line.number, (), (Fault("incomplete_plan"),), line.by)


def _whole_tail(raw: bytes, number: int) -> Line | None:
    """Return what a last line without its end says, if it is a whole operation nonetheless."""
    line = line_of(raw, number)
    return line if line.operations and line.mark is None else None


@contextmanager
def reading(path: StrPath) -> Iterator[IO[bytes] | None]:
    """Open a log for reading; None if there is none.

    Raises:
        FileUnreadable: it is no regular file, or cannot be opened.
    """
    try:
        fd = open_regular(os.fspath(path), follow=True)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise FileUnreadable(strerror(error), where=str(path), hint="check its permissions") from error
    with os.fdopen(fd, "rb", buffering=1 << 20) as file:
        yield file


@dataclass(frozen=True, slots=True)
class Writer:
    """A log whose lock is held."""

    path: str
    fd: int

    def close_tail(self) -> None:
        """End a last line that holds a whole operation (`Log.tail`), for it to be read as one."""
        with unwritable(self.path):
            os.write(self.fd, b"\n")

    def cut(self, end: Position, seen_bytes: int) -> bool:
        """Cut off what a crash left after `end`; return False, nothing cut, if that has changed since it was seen."""
        with unwritable(self.path):
            if os.fstat(self.fd).st_size != end.offset + seen_bytes:
                return False
            os.ftruncate(self.fd, end.offset)
            return True

    def append(self, operations: Sequence[Operation], end: Position, plan: str) -> Position | None:
        """Append operations, all or none.

        Args:
            operations: at least one.
            end: how far the log was read under this lock; nothing stands after it.
            plan: an id under which several operations are one plan.

        Returns:
            The new end; None if a writer without lock wrote at the same time, so the log has to be read on from `end`.

        Raises:
            Refused: an operation is longer than a line may be; nothing was written.
            FileUnwritable: the system refused; nothing was written.
        """
        data = b"".join(_lines(operations, plan))
        with unwritable(self.path):
            before = os.fstat(self.fd).st_size
            try:
                # Opened for appending: whoever writes without the lock is written after, never over.
                _write_whole(self.fd, data)
                os.fsync(self.fd)
            except OSError:
                os.ftruncate(self.fd, before)
                raise
            after = Position(end.offset + len(data), end.line + len(operations))
            return after if before == end.offset and os.fstat(self.fd).st_size == after.offset else None


def _write_whole(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _lines(operations: Sequence[Operation], plan: str) -> Iterator[bytes]:
    for step, operation in enumerate(operations, 1):
        record = record_of(operation)
        if len(operations) > 1:
            record |= {"plan": plan, "step": step, "steps": len(operations)}
        line = _ENCODE(record) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            what = f"the operation is longer than {MAX_LINE_BYTES} bytes"
            raise Refused(what, where=operation.id[:80], hint="keep long texts in files, and their paths in the graph")
        yield line


def pause(seconds: float) -> None:
    """Wait, for a writer without lock to finish its line."""
    time.sleep(seconds)


@contextmanager
def writing(path: StrPath, timeout_seconds: float, wait: Callable[[float], None] = time.sleep) -> Iterator[Writer]:
    """Hold the lock of a log; the file, and its folder, are made if they are not there.

    Raises:
        LockTimeout: another writer held it for longer than `timeout_seconds`.
        FileUnreadable, FileUnwritable: it is no regular file, or the system refused.
    """
    real = os.path.realpath(path)
    with unwritable(real):
        os.makedirs(os.path.dirname(real), exist_ok=True)
        fd = _locked(real, timeout_seconds, wait)
    try:
        yield Writer(real, fd)
    finally:
        os.close(fd)


def _locked(path: str, timeout_seconds: float, wait: Callable[[float], None]) -> int:
    left = timeout_seconds
    while True:
        fd = _opened(path)
        try:
            while not try_flock(fd):
                if left <= 0:
                    raise LockTimeout("locked by another process", where=path, hint="try again later")
                wait(_POLL_SECONDS)
                left -= _POLL_SECONDS
            # A compacted log has another inode: whoever waited for the old one waits anew.
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _opened(path: str) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise FileUnreadable("not a regular file", where=path, hint="kbd opens nothing else")
    try:
        return os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileUnreadable("not a regular file", where=path, hint="kbd opens nothing else") from error
        raise
