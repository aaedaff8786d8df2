"""Reads the new whole records of a growing file, from where the last read stopped.

A file that is not the one it was is read from 0 again: records then come twice, and their content keys make that
harmless. A position saves work and never decides what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from kbd.core.model import Record
from kbd.store.bytestream import ByteStream, StrPath, open_bytes
from kbd.store.identity import device, modified_ns
from kbd.store.position import Position, Verdict, at_start, compare, compare_content, sealed

LIMIT_BYTES = 4 << 20
MAX_RECORD_BYTES = 8 << 20
LAST_LINE_SECONDS = 60.0
# A batch is not interrupted: short lines that all cite something keep it under two seconds this way.
_LIMIT_RECORDS = 1 << 12
_COMPARE_BYTES = 1 << 20
_CR = 0x0D

AcceptLast = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one read gave.

    Attributes:
        records: whole records in the order of the file, blank ones included; data without the final LF or CRLF.
        position: where the next read goes on; to be stored even when no record came, as the wait for a last line
            without line end is part of it.
        restarted: why reading began at 0 again; None if it went on.
        oversize: records over the limit that were met; each is counted by one batch only.
        more: the file holds further records already; a read now would give them.
        lag_bytes: bytes on disk not consumed (compressed ones of a gzip file).
        damage: why the rest of a compressed file cannot be read; None if it can.
    """

    records: tuple[Record, ...]
    position: Position
    restarted: Verdict | None
    oversize: int
    more: bool
    lag_bytes: int
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A window of bytes cut into records.

    Attributes:
        records: those that end inside the window and keep the limit.
        consumed: bytes of the window that need not be seen again.
        skipping: the window ends inside a record over the limit.
        oversize: records found to be over the limit here for the first time.
        exhausted: no line end stands behind `consumed`.
    """

    records: tuple[Record, ...]
    consumed: int
    skipping: bool
    oversize: int
    exhausted: bool


def begin(path: StrPath) -> Position:
    """Return the position before the first byte. Raises as `read_batch`."""
    with open_bytes(path) as stream:
        return at_start(stream)


def check(path: StrPath, position: Position) -> Verdict:
    """Compare a file with a position taken of it. Raises as `read_batch`."""
    with open_bytes(path) as stream:
        return compare(stream, position)


def holds(path: StrPath, position: Position) -> bool:
    """Return whether a file begins as the position's file did, up to its offset, whatever its name, inode or packing.

    Only the first 4096 bytes and the 1024 before the offset are looked at. A position that has consumed nothing
    knows no beginning: False. Raises as `read_batch`.
    """
    with open_bytes(path) as stream:
        return position.offset > 0 and compare_content(stream, position) is Verdict.CONTINUES


def read_batch(
    path: StrPath,
    position: Position,
    *,
    now: float,
    accept_last: AcceptLast | None = None,
    limit_bytes: int = LIMIT_BYTES,
    max_record: int = MAX_RECORD_BYTES,
) -> Batch:
    """Read the next whole records after `position`.

    At most `limit_bytes` are taken at once, or a single record of up to `max_record` bytes (line end not counted, a CR
    before it is). Longer records are passed over as a stream. A last line without line end is returned when two reads
    at least 60 s apart saw the file unchanged, or, where `accept_last` can tell a whole line, when the file was last
    changed so long ago, and `accept_last` says yes to it (None: always); should the line grow later, it comes again
    whole, with the same offset. Changes nothing; the same arguments on the same file give the same batch.

    Args:
        path: a regular file, its last component no symlink.
        position: from `begin` or an earlier batch.
        now: the real clock, in seconds since the epoch.
        accept_last: judges a last line without line end.
        limit_bytes: size of a batch, at least 1.
        max_record: length of the longest record that is returned.

    Raises:
        FileNotFoundError: the file is absent.
        FileUnreadable: it is not a regular file, or reading failed.
    """
    with open_bytes(path) as stream:
        return _next_batch(stream, position, now, accept_last, limit_bytes, max_record)


def read_batches(
    path: StrPath,
    position: Position,
    *,
    now: float,
    accept_last: AcceptLast | None = None,
    limit_bytes: int = LIMIT_BYTES,
    max_record: int = MAX_RECORD_BYTES,
) -> Iterator[Batch]:
    """Yield at least one batch, then all further ones that are there, from one opening of the file.

    A gzip file is thus decompressed once, and a file renamed or unlinked meanwhile is read to its end. Arguments and
    errors as `read_batch`.
    """
    with open_bytes(path) as stream:
        while True:
            batch = _next_batch(stream, position, now, accept_last, limit_bytes, max_record)
            position, more = batch.position, batch.more
            yield batch
            if not more:
                return
            del batch  # never held beside the next one
            stream.refresh()


def common_prefix(path_a: StrPath, path_b: StrPath, limit: int) -> int:
    """Return how many bytes, `limit` at most, two files have in common from their start. Raises as `read_batch`."""
    with open_bytes(path_a) as a, open_bytes(path_b) as b:
        equal = 0
        while equal < limit:
            size = min(_COMPARE_BYTES, limit - equal)
            part_a, part_b = a.read(equal, size), b.read(equal, size)
            if part_a != part_b or not part_a:
                return equal + _equal_bytes(part_a, part_b)
            equal += len(part_a)
        return equal


def cut_records(window: bytes, start: int, *, skipping: bool, max_record: int) -> Cut:
    """Cut the bytes that stand at offset `start` into records, at LF only.

    `skipping` says that `start` lies inside a record over the limit, whose rest is passed over.
    """
    at = 0
    if skipping:
        at = window.find(b"\n") + 1
        if not at:
            return Cut((), len(window), skipping=True, oversize=0, exhausted=True)
    records: list[Record] = []
    oversize = 0
    while (end := window.find(b"\n", at)) >= 0:
        if len(records) == _LIMIT_RECORDS:
            return Cut(tuple(records), at, skipping=False, oversize=oversize, exhausted=False)
        if end - at > max_record:
            oversize += 1
        else:
            records.append(Record(start + at, window[at : _line_end(window, at, end)]))
        at = end + 1
    if len(window) - at > max_record:
        return Cut(tuple(records), len(window), skipping=True, oversize=oversize + 1, exhausted=True)
    return Cut(tuple(records), at, skipping=False, oversize=oversize, exhausted=True)


def _next_batch(
    stream: ByteStream, position: Position, now: float, accept_last: AcceptLast | None, limit: int, max_record: int
) -> Batch:
    verdict = compare(stream, position)
    start = position if verdict is Verdict.CONTINUES else at_start(stream)
    start = _behind_accepted_line(stream, start)
    if start.skipping:
        start = replace(start, offset=stream.behind_hole(start.offset))
    window, at_end = _window(stream, start, max(1, limit), max_record)
    cut = cut_records(window, start.offset, skipping=start.skipping, max_record=max_record)
    ended = at_end and cut.exhausted
    records, moved = cut.records, _moved(stream, start, cut, ended=ended)
    if ended and cut.consumed < len(window) and stream.damage is None:
        moved = replace(moved, pending_since=_waiting_since(start, moved, now))
        last = Record(moved.offset, window[cut.consumed : _line_end(window, cut.consumed, len(window))])
        rests = _is_settled(moved, now) or accept_last is not None and _is_old(moved, now)
        if rests and (accept_last is None or accept_last(last.data)):
            records += (last,)
            behind = start.offset + len(window)
            moved = replace(moved, tail_start=moved.offset, offset=behind, pending_since=None)
    return Batch(
        records,
        sealed(partial(_read_again, stream, start.offset, window), moved),
        restarted=None if verdict is Verdict.CONTINUES else verdict,
        oversize=cut.oversize,
        more=not ended,
        lag_bytes=stream.left(moved.offset),
        damage=stream.damage,
    )


def _read_again(stream: ByteStream, begin: int, window: bytes, start: int, size: int) -> bytes:
    """Return the bytes from `start` on, out of the window that stands at `begin` if it holds them."""
    at = start - begin
    return window[at : at + size] if 0 <= at <= len(window) - size else stream.read(start, size)


def _behind_accepted_line(stream: ByteStream, start: Position) -> Position:
    """Pass over the late line end of an accepted last line, or go back to its beginning if the line has grown."""
    if start.tail_start is None:
        return start
    follows = stream.read(start.offset, 2)
    if not follows:
        return start
    if follows.startswith(b"\n"):
        return replace(start, offset=start.offset + 1, tail_start=None)
    if follows == b"\r\n":
        return replace(start, offset=start.offset + 2, tail_start=None)
    return replace(start, offset=start.tail_start, tail_start=None)


def _window(stream: ByteStream, start: Position, limit: int, max_record: int) -> tuple[bytes, bool]:
    """Return the bytes to cut next, and whether they reach to the end of the file."""
    window = stream.read(start.offset, limit)
    if len(window) < limit:
        return window, True
    if start.skipping or b"\n" in window or limit > max_record:
        return window, False
    del window  # never held beside the longer one
    window = stream.read(start.offset, max_record + 1)
    end = window.find(b"\n") + 1
    return (window[:end], False) if end else (window, len(window) <= max_record)


def _moved(stream: ByteStream, start: Position, cut: Cut, *, ended: bool) -> Position:
    return replace(
        start,
        dev=device(stream.seen),
        offset=start.offset + cut.consumed,
        size=stream.seen.st_size,
        mtime_ns=modified_ns(stream.seen),
        pending_since=None,
        skipping=cut.skipping,
        tail_start=None if cut.consumed else start.tail_start,
        ended=ended,
    )


def _waiting_since(before: Position, moved: Position, now: float) -> float:
    """Return since when the unterminated last line stands unchanged; a clock set back begins the wait anew."""
    unchanged = (before.size, before.mtime_ns) == (moved.size, moved.mtime_ns)
    since = before.pending_since
    return since if unchanged and since is not None and since <= now else now


def _is_settled(position: Position, now: float) -> bool:
    return position.pending_since is not None and now - position.pending_since >= LAST_LINE_SECONDS


def _is_old(position: Position, now: float) -> bool:
    return now - position.mtime_ns / 1e9 >= LAST_LINE_SECONDS


def _line_end(window: bytes, start: int, end: int) -> int:
    return end - 1 if end > start and window[end - 1] == _CR else end


def _equal_bytes(a: bytes, b: bytes) -> int:
    equal, differs = 0, min(len(a), len(b)) + 1
    while differs - equal > 1:
        middle = (equal + differs) // 2
        if a[:middle] == b[:middle]:
            equal = middle
        else:
            differs = middle
    return equal
