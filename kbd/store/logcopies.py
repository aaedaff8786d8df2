"""Which log is a copy of another's beginning: rotated, renamed across devices, or copied."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from kbd.store.bytestream import StrPath, open_bytes

_CHUNK = 1 << 20
HEAD_BYTES = 1 << 14
_FIRST_BYTES = 64
"""A first line without end is known by so many."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place near the start of a log, by which it is known.

    Attributes:
        lines: how many whole lines stand before it.
        end: its offset in bytes.
        digest: of the bytes before it and their source, 63 bits.
    """

    lines: int
    end: int
    digest: int


def log_head(path: StrPath, source: int) -> list[Mark]:
    """Return how a log of a source begins: marks up to 16 KiB; as it grows, further ones.

    After each of the first sixteen lines, then after eight in each doubling, and where the 16 KiB end; after the first
    64 bytes if they are one line. Empty while there are neither. Raises as `tail.read_batch`.
    """
    with open_bytes(path) as stream:
        head = stream.read(0, HEAD_BYTES)
    ends = [(0, _FIRST_BYTES)] if len(head) >= _FIRST_BYTES and b"\n" not in head[:_FIRST_BYTES] else []
    lines, at = 0, head.find(b"\n") + 1
    while at:
        lines += 1
        if lines % (1 << max(lines.bit_length() - 4, 0)) == 0:
            ends.append((lines, at))
        at = head.find(b"\n", at) + 1
    if len(head) == HEAD_BYTES and (not ends or ends[-1][1] < HEAD_BYTES):
        ends.append((lines, HEAD_BYTES))
    return _marks(head, source, ends)


def _marks(head: bytes, source: int, ends: list[tuple[int, int]]) -> list[Mark]:
    sha, done, marks = hashlib.sha256(b"%d:" % source), 0, []
    for lines, end in ends:
        sha.update(head[done:end])
        done = end
        marks.append(Mark(lines, end, int.from_bytes(sha.digest()[:8], "big") >> 1))
    return marks


def common_lines(path_a: StrPath, path_b: StrPath, start: int = 0) -> tuple[int, int]:
    """Return the byte up to which two logs are equal, as they are up to `start`, in whole lines; and lines from there.

    Raises as `read_batch`.
    """
    with open_bytes(path_a) as a, open_bytes(path_b) as b:
        equal = length = start
        lines = 0
        while True:
            part_a, part_b = a.read(equal, _CHUNK), b.read(equal, _CHUNK)
            same = _equal_bytes(part_a, part_b)
            end = part_a.rfind(b"\n", 0, same)
            if end >= 0:
                length = equal + end + 1
            lines += part_a.count(b"\n", 0, same)
            if same < _CHUNK:
                return length, lines
            equal += same


def lines_before(path: StrPath, offset: int) -> int:
    """Return how many line ends stand before an offset. Raises as `read_batch`."""
    with open_bytes(path) as stream:
        starts = range(0, offset, _CHUNK)
        return sum(stream.read(start, min(_CHUNK, offset - start)).count(b"\n") for start in starts)


def _equal_bytes(a: bytes, b: bytes) -> int:
    """Return the length of the common beginning, by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
