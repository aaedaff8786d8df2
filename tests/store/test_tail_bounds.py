"""Records over the limit, windows, and the memory they may take."""

import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.store.tail import begin, common_prefix, read_batch, read_batches

NOW = 1_781_000_000.0
PIECES = st.sampled_from([b"\n", b"\n\n", b"\r\n", b"\r", b"a", b"bc" * 9, b"\0" * 30, "é🔒\u2028".encode()])


def drain(path, position, limit_bytes, max_record, now=NOW):
    """Read until nothing more is there; return records, oversize count and position."""
    records, oversize = [], 0
    while True:
        batch = read_batch(path, position, now=now, limit_bytes=limit_bytes, max_record=max_record)
        assert batch.more is False or batch.position.offset > position.offset
        records += batch.records
        oversize += batch.oversize
        position = batch.position
        if not batch.more:
            return records, oversize, position


@settings(max_examples=300, deadline=None)
@given(
    appends=st.lists(st.lists(PIECES, max_size=6).map(b"".join), max_size=8),
    limit_bytes=st.integers(1, 40),
    max_record=st.integers(1, 60),
    closed=st.booleans(),
)
def test_any_cutting_into_appends_and_batches_gives_exactly_the_lines(
    tmp_path_factory, appends, limit_bytes, max_record, closed
):
    path = tmp_path_factory.mktemp("t") / "f"
    path.touch()
    position, records, oversize = begin(path), [], 0
    for part in appends:
        with open(path, "ab") as file:
            file.write(part)
        got, over, position = drain(path, position, limit_bytes, max_record)
        records += got
        oversize += over
    if closed:
        got, over, position = drain(path, position, limit_bytes, max_record, now=NOW + 60)
        records += got
        assert over == 0

    data = b"".join(appends)
    *lines, last = data.split(b"\n")
    expected = [line.removesuffix(b"\r") for line in lines if len(line) <= max_record]
    if closed and 0 < len(last) <= max_record:
        expected.append(last.removesuffix(b"\r"))
    assert [r.data for r in records] == expected
    assert all(data[r.offset :].startswith(r.data) for r in records)
    assert oversize == sum(len(line) > max_record for line in [*lines, last])


def test_record_over_the_limit_is_passed_over_across_appends_and_counted_once(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a\n" + b"x" * 50)
    position, counts, seen = begin(path), [], []
    for part in (b"y" * 50, b"z" * 50, b"\nb\n"):
        batch = read_batch(path, position, now=NOW, limit_bytes=16, max_record=40)
        while batch.more:
            counts.append(batch.oversize)
            seen += batch.records
            batch = read_batch(path, batch.position, now=NOW, limit_bytes=16, max_record=40)
        counts.append(batch.oversize)
        seen += batch.records
        position = batch.position
        assert position.skipping
        with open(path, "ab") as file:
            file.write(part)
    batch = read_batch(path, position, now=NOW, max_record=40)
    assert [r.data for r in [*seen, *batch.records]] == [b"a", b"b"]
    assert sum(counts) + batch.oversize == 1
    assert not batch.position.skipping


def test_unterminated_record_over_the_limit_is_never_accepted_as_the_last_line(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 50)
    position = read_batch(path, begin(path), now=NOW, max_record=40).position
    batch = read_batch(path, position, now=NOW + 3600, max_record=40)
    assert (batch.records, batch.oversize, batch.lag_bytes) == ((), 0, 0)


def test_file_truncated_inside_a_record_over_the_limit_starts_anew(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 50)
    position = read_batch(path, begin(path), now=NOW, max_record=40).position
    path.write_bytes(b"a\n")
    batch = read_batch(path, position, now=NOW, max_record=40)
    assert [r.data for r in batch.records] == [b"a"]


@pytest.fixture
def peak():
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1] / (1 << 20)
    finally:
        tracemalloc.stop()


def test_line_of_200_mb_is_passed_over_in_24_mb(tmp_path, peak):
    path = tmp_path / "f"
    with open(path, "wb") as file:
        file.write(b"before\n")
        file.seek(200 << 20, os.SEEK_CUR)
        file.write(b"\nafter\n")
    records, oversize, position = drain(path, begin(path), 4 << 20, 8 << 20)
    assert [r.data for r in records] == [b"before", b"after"]
    assert (oversize, position.offset) == (1, path.stat().st_size)
    assert peak() < 24


def test_records_of_8_mb_are_read_one_by_one_in_24_mb(tmp_path, peak):
    path = tmp_path / "f"
    size = 8 << 20
    with open(path, "wb") as file:
        for _ in range(4):
            file.seek(size, os.SEEK_CUR)
            file.write(b"\n")
    for batch in read_batches(path, begin(path), now=NOW):
        assert [len(r.data) for r in batch.records] in ([size], [])
        del batch
    assert peak() < 24


def test_millions_of_bare_line_ends_come_in_bounded_batches(tmp_path, peak):
    path = tmp_path / "f"
    path.write_bytes(b"\n" * 100_000)
    batches = read_batches(path, begin(path), now=NOW)
    assert sum(len(b.records) for b in batches) == 100_000
    assert peak() < 24


@pytest.mark.parametrize(
    ("a", "b", "limit", "equal"),
    [
        (b"", b"abc", 10, 0),
        (b"abc", b"abc", 10, 3),
        (b"abcd", b"abXd", 10, 2),
        (b"abcd", b"abcd", 3, 3),
        (b"abc", b"abcdef", 10, 3),
        (b"x" * 3_000_000 + b"a", b"x" * 3_000_000 + b"b", 1 << 30, 3_000_000),
    ],
)
def test_common_beginning_is_counted_in_bytes(tmp_path, a, b, limit, equal):
    (tmp_path / "a").write_bytes(a)
    (tmp_path / "b").write_bytes(b)
    assert common_prefix(tmp_path / "a", tmp_path / "b", limit) == equal
