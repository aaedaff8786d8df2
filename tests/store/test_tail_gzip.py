"""A compressed log is read like a plain one."""

import gzip
import os
import tracemalloc

import pytest

from kbd.store.position import Verdict
from kbd.store.tail import begin, check, common_prefix, holds, read_batch, read_batches

NOW = 1_781_000_000.0
LINES = b"".join(b"%09d line\n" % i for i in range(20_000))


def read_all(path, position, **limits):
    batches = list(read_batches(path, position, now=NOW, **limits))
    return b"".join(r.data + b"\n" for b in batches for r in b.records), batches[-1]


@pytest.mark.parametrize("limit_bytes", [700, 5_000, 4 << 20])
def test_compressed_log_gives_the_lines_at_their_plain_offsets(tmp_path, limit_bytes):
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(LINES))
    data, last = read_all(path, begin(path), limit_bytes=limit_bytes)
    assert data == LINES
    assert (last.position.offset, last.lag_bytes, last.damage) == (len(LINES), 0, None)


def test_compressed_log_of_a_known_plain_one_goes_on_behind_it(tmp_path):
    plain, packed = tmp_path / "a.log", tmp_path / "a.log.gz"
    plain.write_bytes(LINES)
    position = read_batch(plain, begin(plain), now=NOW).position
    packed.write_bytes(gzip.compress(LINES) + gzip.compress(b"late\n"))
    assert holds(packed, position)
    assert common_prefix(plain, packed, 1 << 30) == len(LINES)
    assert check(packed, position) is Verdict.REPLACED


def test_grown_compressed_log_gives_only_its_new_lines(tmp_path):
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(LINES))
    _, last = read_all(path, begin(path))
    with open(path, "ab") as file:
        file.write(gzip.compress(b"new\n"))
    assert read_all(path, last.position)[0] == b"new\n"


@pytest.mark.parametrize(
    "damage",
    [lambda z: z[: len(z) // 2], lambda z: z[:-6] + b"\1\2\3\4\5\6", lambda z: z + b"garbage"],
    ids=["cut short", "wrong checksum", "garbage behind"],
)
def test_damaged_rest_is_told_and_the_good_part_is_read(tmp_path, damage):
    path = tmp_path / "a.log.gz"
    path.write_bytes(damage(gzip.compress(LINES + b"torn")))
    data, last = read_all(path, begin(path))
    assert data
    assert LINES.startswith(data)
    assert "gzip" in last.damage
    assert read_batch(path, last.position, now=NOW + 600).records == ()


def test_compressed_zeros_are_passed_over_in_bounded_memory(tmp_path):
    path = tmp_path / "a.log.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(bytes(1 << 20))
        file.write(b"\nafter\n")
    tracemalloc.start()
    try:
        data, _ = read_all(path, begin(path))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert data == b"after\n"


def test_last_line_of_a_compressed_log_waits_like_any(tmp_path):
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"a\nlast"))
    os.utime(path, (NOW, NOW))
    first = read_batch(path, begin(path), now=NOW)
    second = read_batch(path, first.position, now=NOW + 60)
    assert [r.data for r in (*first.records, *second.records)] == [b"a", b"last"]
