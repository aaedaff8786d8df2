"""Which log is a copy of another's beginning: rotated, renamed across devices, or copied."""

from __future__ import annotations

from kbd.store.bytestream import StrPath, open_bytes

_CHUNK = 1 << 20
FIRST_LINE_BYTES = 64


def first_line(path: StrPath) -> str | None:
    """Return what logs with a common beginning have in common: the first line, 64 bytes at most, hexadecimal.

    None while there is no whole first line. Raises as `tail.read_batch`.
    """
    with open_bytes(path) as stream:
        head = stream.read(0, FIRST_LINE_BYTES)
    line, end, _ = head.partition(b"\n")
    return line.hex() if line and (end or len(head) == FIRST_LINE_BYTES) else None


def common_lines(path_a: StrPath, path_b: StrPath) -> tuple[int, int]:
    """Return (bytes, lines) that two logs have in common from their start, in whole lines. Raises as `read_batch`."""
    with open_bytes(path_a) as a, open_bytes(path_b) as b:
        equal = length = lines = 0
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
