"""The event log on disk: whole lines only, plans whole or not at all, whatever stands in it and whoever else writes."""

from __future__ import annotations

import json
import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.operations import Operation, record_of
from kbd.errors import FileUnreadable, FileUnwritable, LockTimeout, Refused
from kbd.store import eventlog
from kbd.store.eventlog import START, Log, Position, writing
from tests.core.graph_world import AT, create, relate


def line(operation: Operation, **more: object) -> bytes:
    return json.dumps(record_of(operation) | more).encode() + b"\n"


def read(path, start=START):
    with path.open("rb") as file:
        log = Log(file, start)
        return log, list(log)


def ids(lines):
    return [operation.id for line in lines for operation in line.operations]


def codes(lines):
    return {one.number: [fault.code for fault in one.faults] for one in lines if one.faults}


def append(path, *operations, plan="p"):
    with writing(path, 1.0) as writer:
        log, _ = read(path)
        return writer.append(operations, log.end, plan)


def test_what_was_appended_is_read(tmp_path):
    path = tmp_path / "deep" / "graph.jsonl"
    append(path, create("a", "T"))
    append(path, create("b", "T"), relate("a", "r", "b"))
    log, lines = read(path)
    assert ids(lines) == ["a", "b", "a"]
    assert log.end == Position(path.stat().st_size, 3)
    assert log.torn_bytes == 0


FOREIGN = [
    (b"\xef\xbb\xbf" + line(create("a", "T")), ["a"], {1: ["byte_order_mark"]}),
    (b"# note\n// note\n\n  \r\n" + line(create("a", "T")), ["a"], {1: ["comment_line"], 2: ["comment_line"]}),
    (line(create("a", "T"))[:-1] + b"\r\n", ["a"], {}),
    (b'{"op": "cre\n' + line(create("a", "T")), ["a"], {1: ["bad_json"]}),
    (b"\xff\xfe\n" + line(create("a", "T")), ["a"], {1: ["bad_json"]}),
    (b'{"op":"create","entity":{"id":"a","type":"T","properties":{"x":NaN}}}\n', [], {1: ["bad_json"]}),
    (b'{"op":"create","entity":{"id":"a","type":"T","properties":{"x":1e999}}}\n', [], {1: ["bad_json"]}),
    (b'{"op":"create","entity":{"id":"a","type":"T","properties":{"x":"\\ud800"}}}\n', [], {1: ["not_text"]}),
    (b"[" * 200_000 + b"\n" + line(create("a", "T")), ["a"], {1: ["bad_json"]}),
    (b'null\n3\n"x"\n[]\n', [], dict.fromkeys(range(1, 5), ["not_an_object"])),
    (
        b'{"op":"create","entity":{"id":"a","type":"T","properties":{"n":123456789012345678901234567890}},"timestamp":"'
        + AT.encode()
        + b'"}\n',
        ["a"],
        {},
    ),
    (b"x" * 20 + b"\0\n" + line(create("a", "T")), ["a"], {1: ["bad_json"]}),
]


@pytest.mark.parametrize(("data", "found", "faults"), FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_lines_are_reported_and_the_others_read(tmp_path, data, found, faults):
    path = tmp_path / "graph.jsonl"
    path.write_bytes(data)
    log, lines = read(path)
    assert (ids(lines), codes(lines)) == (found, faults)
    assert log.end == Position(len(data), data.count(b"\n"))


@pytest.mark.parametrize("value", ["[" * 90 + "]" * 90, '{"a":' * 900 + "1" + "}" * 900])
def test_a_line_that_is_nested_too_deep_says_nothing(tmp_path, value):
    path = tmp_path / "graph.jsonl"
    path.write_bytes(line(create("a", "T", x=7)).replace(b"7", value.encode()) + line(create("b", "T")))
    assert (ids(read(path)[1]), codes(read(path)[1])) == (["b"], {1: ["too_deep"]})


def test_a_line_that_is_too_long_is_skipped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(eventlog, "MAX_LINE_BYTES", 5000)
    monkeypatch.setattr(eventlog, "_BLOCK_BYTES", 1000)
    path = tmp_path / "graph.jsonl"
    long = line(create("long", "T", text="x" * 30_000))
    path.write_bytes(line(create("a", "T")) + long + line(create("b", "T")) + line(create("c", "T")))
    log, lines = read(path)
    assert (ids(lines), codes(lines)) == (["a", "b", "c"], {2: ["oversize_line"]})
    assert log.end == Position(path.stat().st_size, 4)
    path.write_bytes(line(create("a", "T")) + long[:-1])
    log, lines = read(path)
    assert (ids(lines), log.tail, log.torn_bytes) == (["a"], None, len(long) - 1)
    with pytest.raises(Refused):
        append(path, create("x", "T", text="x" * 6000))


@pytest.mark.parametrize("before", [0, 1, 900])
def test_the_longest_line_that_is_written_is_read(tmp_path, monkeypatch, before):
    monkeypatch.setattr(eventlog, "MAX_LINE_BYTES", 5000)
    monkeypatch.setattr(eventlog, "_BLOCK_BYTES", 1000)
    frame = len(eventlog._ENCODE(record_of(create("long", "T", text="")))) + 1
    path = tmp_path / "graph.jsonl"
    path.write_bytes(line(create("a", "T")) * before)
    append(path, create("long", "T", text="x" * (5000 - frame)))
    append(path, create("b", "T"))
    assert ids(read(path)[1])[before:] == ["long", "b"]
    with pytest.raises(Refused):
        append(path, create("longer", "T", text="x" * (5000 - frame)))


def test_a_torn_line_does_not_count_and_is_cut_only_if_nobody_wrote_on(tmp_path):
    path = tmp_path / "graph.jsonl"
    whole = line(create("a", "T"))
    path.write_bytes(whole + b'{"op":"crea')
    log, lines = read(path)
    assert (ids(lines), log.end, log.torn_bytes, log.tail) == (["a"], Position(len(whole), 1), 11, None)
    with writing(path, 1.0) as writer:
        assert not writer.cut(log.end, 10)
        assert writer.cut(log.end, 11)
    assert path.read_bytes() == whole


def test_a_whole_operation_without_its_line_end_counts(tmp_path):
    path = tmp_path / "graph.jsonl"
    path.write_bytes(line(create("a", "T")) + line(create("b", "T"))[:-1])
    log, lines = read(path)
    assert (ids(lines), [one.id for one in log.tail.operations], log.end.line) == (["a"], ["b"], 1)
    with writing(path, 1.0) as writer:
        writer.close_tail()
    assert ids(read(path)[1]) == ["a", "b"]


STEPS = [create("a", "T"), create("b", "T"), relate("a", "r", "b")]
PLAN = b"".join(line(step, plan="p", step=number, steps=3) for number, step in enumerate(STEPS, 1))


@pytest.mark.parametrize("cut", range(len(PLAN) + 1))
def test_a_plan_cut_anywhere_is_whole_or_absent(tmp_path, cut):
    path = tmp_path / "graph.jsonl"
    first = line(create("z", "T"))
    path.write_bytes(first + PLAN[:cut])
    log, lines = read(path)
    if cut == len(PLAN):
        assert ids(lines) == ["z", "a", "b", "a"]
    else:
        assert ids(lines) == ["z"]
        assert (log.end, log.torn_bytes, log.tail) == (Position(len(first), 1), cut, None)


@pytest.mark.parametrize("kept", [(1,), (1, 2), (2, 3), (1, 3), (3,), (1, 2, 1, 2, 3)])
def test_steps_without_the_others_never_count(tmp_path, kept):
    path = tmp_path / "graph.jsonl"
    steps = PLAN.splitlines(keepends=True)
    path.write_bytes(b"".join(steps[number - 1] for number in kept) + line(create("z", "T")))
    _, lines = read(path)
    assert ids(lines) == (["a", "b", "a", "z"] if len(kept) == 5 else ["z"])
    assert [code for found in codes(lines).values() for code in found] == ["incomplete_plan"] * (
        len(kept) % 3 or 2 * (len(kept) > 3)
    )


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*PLAN.splitlines(keepends=True), line(create("x", "T")), b"bad\n", b"\n"]), max_size=12),
    st.integers(1, 300),
)
def test_reading_on_from_any_end_gives_the_same_lines(pieces, at):
    data = b"".join(pieces)
    whole = _read_bytes(data)
    before = _read_bytes(data[:at])
    after = _read_bytes(data, before[0])
    assert before[1] + after[1] == whole[1]
    assert after[0] == whole[0]


def _read_bytes(data, start=START):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        log = Log(file, start)
        lines = [(one.number, one.operations, one.faults) for one in log if one.operations or one.faults]
        return log.end, lines


def test_another_writer_without_lock_is_written_after_and_noticed(tmp_path):
    path = tmp_path / "graph.jsonl"
    append(path, create("a", "T"))
    with writing(path, 1.0) as writer:
        log, _ = read(path)
        with path.open("ab") as other:
            other.write(line(create("b", "T")))
        assert writer.append([create("c", "T")], log.end, "p") is None
    assert ids(read(path)[1]) == ["a", "b", "c"]


def test_a_held_lock_times_out(tmp_path):
    path = tmp_path / "graph.jsonl"
    waits = []
    with writing(path, 1.0), pytest.raises(LockTimeout), writing(path, 0.01, waits.append):
        pass
    assert waits


def test_a_writer_that_waited_for_a_replaced_log_takes_the_new_one(tmp_path):
    path = tmp_path / "graph.jsonl"
    append(path, create("a", "T"))

    def replaced(_):
        if not (tmp_path / "old").exists():
            os.rename(path, tmp_path / "old")
            path.write_bytes(line(create("n", "T")))
            held.close()

    held = open(path, "rb+")  # noqa: SIM115 - closed to let the lock go
    assert eventlog.try_flock(held.fileno())
    with writing(path, 1.0, replaced) as writer:
        assert writer.append([create("b", "T")], read(path)[0].end, "p")
    assert ids(read(path)[1]) == ["n", "b"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_only_a_regular_file_is_a_log(tmp_path, make):
    path = tmp_path / "graph.jsonl"
    make(path)
    with pytest.raises(FileUnreadable), writing(path, 1.0):
        pass
    with pytest.raises(FileUnreadable), eventlog.reading(path):
        pass


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "graph.jsonl"
    append(path, create("a", "T"))
    before = path.read_bytes()
    real = os.write

    def full(fd, data):
        if bytes(data).startswith(b'{"op"'):
            return real(fd, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileUnwritable):
        append(path, create("b", "T"))
    assert path.read_bytes() == before
