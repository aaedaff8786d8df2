"""A rollout that Codex packed with zstd is read like a plain one."""

import pytest
import zstandard

from kbd.store.position import Verdict
from kbd.store.tail import begin, check, common_prefix, holds, read_batch, read_batches

NOW = 1_781_000_000.0
LINES = b"".join(b"%09d line\n" % i for i in range(20_000))


def packed(data):
    return zstandard.ZstdCompressor(level=3).compress(data)


def read_all(path, position, **limits):
    batches = list(read_batches(path, position, now=NOW, **limits))
    return b"".join(r.data + b"\n" for b in batches for r in b.records), batches[-1]


@pytest.mark.parametrize("limit_bytes", [700, 5_000, 4 << 20])
def test_packed_rollout_gives_the_lines_at_their_plain_offsets(tmp_path, limit_bytes):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(packed(LINES))
    data, last = read_all(path, begin(path), limit_bytes=limit_bytes)
    assert data == LINES
    assert (last.position.offset, last.lag_bytes, last.damage) == (len(LINES), 0, None)


def test_packed_rollout_of_a_known_plain_one_goes_on_behind_it(tmp_path):
    plain, path = tmp_path / "a.jsonl", tmp_path / "a.jsonl.zst"
    plain.write_bytes(LINES)
    position = read_batch(plain, begin(plain), now=NOW).position
    path.write_bytes(packed(LINES) + packed(b"late\n"))
    assert holds(path, position)
    assert common_prefix(plain, path, 1 << 30) == len(LINES)
    assert check(path, position) is Verdict.REPLACED


@pytest.mark.parametrize(
    "damage",
    [lambda z: z[: len(z) // 2], lambda z: z[:-400] + bytes(400), lambda z: z + b"garbage"],
    ids=["cut short", "overwritten", "garbage behind"],
)
def test_damaged_rest_gives_the_good_part_only(tmp_path, damage):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(damage(packed(LINES + b"torn")))
    data, _ = read_all(path, begin(path))
    assert LINES.startswith(data)


def test_window_over_the_limit_is_damage_not_memory(tmp_path):
    path = tmp_path / "a.jsonl.zst"
    huge = zstandard.ZstdCompressionParameters.from_level(3, window_log=30, enable_ldm=True)
    writer = zstandard.ZstdCompressor(compression_params=huge).compressobj()  # streamed: the frame states its window
    path.write_bytes(writer.compress(LINES) + writer.flush())
    data, last = read_all(path, begin(path))
    assert (data, "zstd" in (last.damage or "")) == (b"", True)
