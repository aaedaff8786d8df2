"""What a growing, torn, truncated, replaced or hostile file gives to its reader."""

import json
import os

import msgspec
import pytest
from msgspec.structs import replace

from kbd.errors import FileUnreadable
from kbd.store.position import Position, Verdict
from kbd.store.tail import Batch, begin, check, holds, read_batch, read_batches

NOW = 1_781_000_000.0


def append(path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def datas(batch: Batch) -> list[bytes]:
    return [record.data for record in batch.records]


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "session.jsonl"
    path.touch()
    return path


def test_title_in_one_byte_appends_comes_once_and_whole(log):
    line = "不要 𝒂 async 🔒\n".encode()
    position, seen = begin(log), []
    for byte in line:
        append(log, bytes([byte]))
        batch = read_batch(log, position, now=NOW)
        position = batch.position
        seen += datas(batch)
    assert seen == [line[:-1]]
    assert position.offset == len(line)


def test_torn_line_waits_and_is_lag(log):
    append(log, b'{"a":1}\n{"b":')
    batch = read_batch(log, begin(log), now=NOW)
    assert (datas(batch), batch.lag_bytes, batch.more) == ([b'{"a":1}'], 5, False)
    append(log, b"2}\n")
    batch = read_batch(log, batch.position, now=NOW)
    assert [(r.offset, r.data) for r in batch.records] == [(8, b'{"b":2}')]
    assert batch.lag_bytes == 0


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\r\nb\n", [b"a", b"b"]),
        (b"a\r\r\nb\rc\n", [b"a\r", b"b\rc"]),
        (b"\xef\xbb\xbf{}\n", [b"\xef\xbb\xbf{}"]),
        ("a\u2028b\u0085c\x0b\x0cd\n".encode(), ["a\u2028b\u0085c\x0b\x0cd".encode()]),
        (b"\xff\xfe\xed\xa0\x80\n", [b"\xff\xfe\xed\xa0\x80"]),
        (b"a\n\n\nb\n", [b"a", b"", b"", b"b"]),
        (b"a\n" + b"\0" * 143_000 + b"{}\nb\n", [b"a", b"\0" * 143_000 + b"{}", b"b"]),
    ],
)
def test_only_a_line_feed_ends_a_record_and_nothing_else_is_stripped(log, data, records):
    append(log, data)
    assert datas(read_batch(log, begin(log), now=NOW)) == records


def test_offsets_are_those_of_the_first_byte(log):
    append(log, "é\r\n\nx\n".encode())
    assert [r.offset for r in read_batch(log, begin(log), now=NOW).records] == [0, 4, 5]


def test_nul_run_at_the_end_is_passed_by_when_valid_lines_follow(log):
    append(log, b"a\n" + b"\0" * 700)
    batch = read_batch(log, begin(log), now=NOW)
    append(log, b"\nb\n")
    assert datas(read_batch(log, batch.position, now=NOW)) == [b"\0" * 700, b"b"]


# The file is or is not the one it was.


def consumed(log, data: bytes) -> Position:
    log.write_bytes(data)
    return read_batch(log, begin(log), now=NOW).position


LINES = b"".join(b'{"id":%06d}\n' % i for i in range(2_000))
OTHER = b"".join(b'{"id":%06d}\n' % i for i in range(5_000, 8_000))


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda p: p.write_bytes(LINES[:140]), Verdict.TRUNCATED),
        (lambda p: p.write_bytes(b""), Verdict.TRUNCATED),
        (lambda p: p.write_bytes(OTHER), Verdict.REWRITTEN),
        (lambda p: p.write_bytes(LINES[:4096] + OTHER), Verdict.REWRITTEN),
        (lambda p: p.write_bytes(b"x" + LINES[1:]), Verdict.REWRITTEN),
    ],
    ids=["shorter", "emptied", "regrown", "same head regrown past the offset", "head changed"],
)
def test_changed_file_is_read_again_from_zero_with_the_reason(log, change, verdict):
    position = consumed(log, LINES)
    change(log)
    assert check(log, position) is verdict
    batch = read_batch(log, position, now=NOW)
    assert batch.restarted is verdict
    assert b"".join(d + b"\n" for d in datas(batch)) == log.read_bytes()
    assert check(log, batch.position) is Verdict.CONTINUES


def test_atomic_replacement_is_read_again_from_zero(log, tmp_path):
    position = consumed(log, LINES)
    other = tmp_path / "other"
    other.write_bytes(LINES[:280] + b"new\n")
    os.replace(other, log)
    batch = read_batch(log, position, now=NOW)
    assert (batch.restarted, datas(batch)[-1]) == (Verdict.REPLACED, b"new")


def test_reused_inode_is_told_by_its_content(log):
    position = consumed(log, LINES)
    log.unlink()
    log.write_bytes(OTHER + OTHER)
    # The file system need not give the same inode again: say that it did.
    reused = replace(position, ino=log.stat().st_ino)
    assert read_batch(log, reused, now=NOW).restarted is Verdict.REWRITTEN


def test_renamed_file_goes_on_where_it_was(log, tmp_path):
    position = consumed(log, LINES)
    moved = tmp_path / "archived.jsonl"
    log.rename(moved)
    append(moved, b"new\n")
    batch = read_batch(moved, position, now=NOW)
    assert (batch.restarted, datas(batch)) == (None, [b"new"])


def test_other_device_number_of_the_same_file_is_no_change(log):
    position = consumed(log, LINES)
    moved = replace(position, dev=position.dev + 1)
    batch = read_batch(log, moved, now=NOW)
    assert (batch.restarted, batch.records, batch.position.dev) == (None, (), position.dev)


def test_copied_and_truncated_log_is_known_in_its_copy(log, tmp_path):
    position = consumed(log, LINES)
    copy, twin = tmp_path / "log.1", tmp_path / "twin"
    copy.write_bytes(LINES + b"late\n")
    log.write_bytes(b"")
    twin.write_bytes(LINES[:5_000] + OTHER)
    assert holds(copy, position)
    assert not holds(log, position)
    assert not holds(twin, position)


def test_position_that_consumed_nothing_knows_no_beginning(log, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(LINES)
    assert not holds(other, begin(log))


def test_file_truncated_to_a_part_of_its_torn_line_loses_nothing(log):
    append(log, b"a\nbcdef")
    batch = read_batch(log, begin(log), now=NOW)
    log.write_bytes(b"a\nbc\n")
    batch = read_batch(log, batch.position, now=NOW)
    assert (batch.restarted, datas(batch)) == (None, [b"bc"])


def test_position_survives_being_stored(log):
    position = consumed(log, LINES)
    assert msgspec.json.decode(msgspec.json.encode(position), type=Position) == position


def test_file_is_current_only_when_all_was_read_and_nothing_waits_or_moved(log):
    append(log, b"a\nb\nc")

    def is_current(position: Position) -> bool:
        seen = log.stat()
        return position.is_current(seen.st_ino, seen.st_size, seen.st_mtime_ns)

    part = read_batch(log, begin(log), now=NOW, limit_bytes=2).position
    waiting = read_batch(log, part, now=NOW).position
    done = read_batch(log, waiting, now=NOW + 60).position
    assert [is_current(p) for p in (begin(log), part, waiting, done)] == [False, False, False, True]
    append(log, b"\n")
    assert not is_current(done)


# The last line without line end.


def test_last_line_without_line_end_comes_after_two_reads_a_minute_apart(log):
    append(log, b'{"a":1}\n{"b":2}')
    first = read_batch(log, begin(log), now=NOW, accept_last=is_json)
    early = read_batch(log, first.position, now=NOW + 59.9, accept_last=is_json)
    late = read_batch(log, early.position, now=NOW + 60, accept_last=is_json)
    again = read_batch(log, late.position, now=NOW + 600, accept_last=is_json)
    assert [datas(b) for b in (first, early, late, again)] == [[b'{"a":1}'], [], [b'{"b":2}'], []]
    assert (late.records[0].offset, late.position.offset, late.lag_bytes) == (8, 15, 0)


def test_last_line_of_a_file_that_rests_comes_at_once_if_it_is_whole(log):
    append(log, b'{"a":1}\n{"b":2}')
    since = log.stat().st_mtime
    fresh, rested = (read_batch(log, begin(log), now=since + s, accept_last=is_json) for s in (59.9, 60.1))
    assert [datas(b) for b in (fresh, rested)] == [[b'{"a":1}'], [b'{"a":1}', b'{"b":2}']]
    unjudged = read_batch(log, begin(log), now=since + 60.1)
    assert datas(unjudged) == [b'{"a":1}']


def test_last_line_that_does_not_parse_is_never_returned(log):
    append(log, b'{"b":')
    position = begin(log)
    for minute in range(4):
        batch = read_batch(log, position, now=NOW + 60 * minute, accept_last=is_json)
        position = batch.position
        assert batch.records == ()
    append(log, b"2}\n")
    assert datas(read_batch(log, position, now=NOW + 300)) == [b'{"b":2}']


def test_last_line_of_a_text_needs_no_judge(log):
    append(log, b"done\r")
    position = read_batch(log, begin(log), now=NOW).position
    assert datas(read_batch(log, position, now=NOW + 61)) == [b"done"]


def test_growth_touch_and_a_clock_set_back_begin_the_wait_anew(log):
    append(log, b"torn")
    position = read_batch(log, begin(log), now=NOW).position
    append(log, b" more")
    position = read_batch(log, position, now=NOW + 60).position
    assert position.pending_since == NOW + 60
    os.utime(log, (NOW, NOW))
    position = read_batch(log, position, now=NOW + 120).position
    assert position.pending_since == NOW + 120
    position = read_batch(log, position, now=NOW).position
    assert position.pending_since == NOW
    assert datas(read_batch(log, position, now=NOW + 60)) == [b"torn more"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_late_line_end_of_an_accepted_line_gives_nothing(log, line_end):
    append(log, b"a\nlast")
    position = read_batch(log, begin(log), now=NOW).position
    position = read_batch(log, position, now=NOW + 60).position
    append(log, line_end + b"next\n")
    batch = read_batch(log, position, now=NOW + 61)
    assert datas(batch) == [b"next"]
    assert batch.position.offset == log.stat().st_size


def test_accepted_line_that_grows_comes_again_whole_at_its_offset(log):
    append(log, b"a\nlast")
    position = read_batch(log, begin(log), now=NOW).position
    position = read_batch(log, position, now=NOW + 60).position
    append(log, b" words")
    batch = read_batch(log, position, now=NOW + 61)
    assert batch.records == ()
    append(log, b".\n")
    batch = read_batch(log, batch.position, now=NOW + 62)
    assert [(r.offset, r.data) for r in batch.records] == [(2, b"last words.")]


# What is no transcript.


def test_absent_file_is_its_own_answer(tmp_path):
    with pytest.raises(FileNotFoundError):
        begin(tmp_path / "gone")


def test_fifo_directory_and_link_are_refused_without_hanging(tmp_path, log):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(log)
    for path in (fifo, tmp_path, link, "/dev/zero"):
        with pytest.raises(FileUnreadable, match="not a regular file"):
            begin(path)


def test_failing_read_is_an_error_not_an_empty_batch():
    with pytest.raises(FileUnreadable):
        read_batch("/proc/self/mem", Position(0, os.stat("/proc/self/mem").st_ino, size=1), now=NOW)


def test_one_opening_gives_all_batches(log):
    append(log, LINES)
    batches = list(read_batches(log, begin(log), now=NOW, limit_bytes=1_000))
    assert b"".join(d + b"\n" for b in batches for d in datas(b)) == LINES
    assert [b.more for b in batches] == [True] * (len(batches) - 1) + [False]
    assert all(sum(len(d) for d in datas(b)) <= 1_000 for b in batches)


def test_file_unlinked_while_being_read_is_read_to_its_end(log):
    append(log, LINES)
    batches = read_batches(log, begin(log), now=NOW, limit_bytes=1_000)
    seen = datas(next(batches))
    log.unlink()
    assert b"".join(d + b"\n" for d in seen + [d for b in batches for d in datas(b)]) == LINES
