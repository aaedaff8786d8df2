"""Lines decoded a block at a time say what each of them says by itself, or the block is read line by line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.operations import Operation, record_of
from kbd.store.eventlines import exact_operations, line_of
from tests.core.graph_world import create, delete, relate, unrelate, update

TEXT = st.text(max_size=4) | st.sampled_from(["Relation", "\ud800", "__proto__", "a\nb"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=6,
)
FIELDS = st.sampled_from(["op", "id", "type", "properties", "from", "rel", "to", "timestamp", "by", "plan", "created"])
RECORDS = [
    record_of(one)
    for one in (create("a", "T", n=1), update("a", n=[1]), delete("a"), relate("a", "r", "b"), unrelate("a", "r", "b"))
]


@st.composite
def records(draw):
    record = json.loads(json.dumps(draw(st.sampled_from(RECORDS))))
    for held in (record, record.get("entity", {})):
        held |= draw(st.dictionaries(FIELDS, VALUES, max_size=1))
        for name in draw(st.sets(st.sampled_from(sorted(held)), max_size=1) if held else st.just(set())):
            held.pop(name)
    return record


def said(block: bytes) -> list[list[Operation]]:
    return [list(line_of(raw, 1).operations) for raw in block.split(b"\n")[:-1]]


def agree(block: bytes) -> bool:
    """Tell whether a block was taken at once; then it says what its lines say, and nothing is odd about them."""
    operations = exact_operations(block)
    if operations is None:
        return False
    assert said(block) == [[one] for one in operations]
    assert [line_of(raw, 1) for raw in block.split(b"\n")[:-1] if line_of(raw, 1).faults or line_of(raw, 1).mark] == []
    return True


@settings(deadline=None, max_examples=300)
@given(st.lists(records(), min_size=1, max_size=3))
def test_what_is_taken_at_once_is_what_each_line_says(given_records):
    agree(b"".join(json.dumps(one, ensure_ascii=True).encode() + b"\n" for one in given_records))


@pytest.mark.parametrize("record", RECORDS)
def test_what_kbd_writes_is_taken_at_once(record):
    block = json.dumps(record).encode() + b"\n"
    assert agree(block + block)


A = b'{"op":"delete","id":"a","timestamp":"t"}'


@pytest.mark.parametrize(
    "block",
    [
        A + A + b"\n\n",
        A + b" " + A + b"\n \n" + A + b"\n",
        b'{"op":"delete",\n"id":"a","timestamp":"t"}' + A + b"\n",
        A + b"\r\n",
        A.replace(b'"delete"', b'"delete","op":"create"') + b"\n",
        A.replace(b"}", b',"plan":"p","step":1,"steps":2}') + b"\n",
        A.replace(b"}", b',"properties":{"n":NaN}}') + b"\n",
        A.replace(b"}", b',"properties":{"n":' + b"[" * 70 + b"]" * 70 + b"}}") + b"\n",
        A.replace(b'"a"', rb'"\ud800"') + b"\n",
        A.replace(b'"a"', b'"\xff"') + b"\n",
        A.replace(b'"a"', b'""') + b"\n",
        A.replace(b'"t"', b'""') + b"\n",
        b"\xef\xbb\xbf" + A + b"\n",
        A,
        b"",
    ],
)
def test_what_is_in_any_other_form_is_read_line_by_line(block):
    assert exact_operations(block) is None


def test_numbers_and_repeated_keys_are_read_as_by_the_careful_reader():
    block = A.replace(b"}", b',"id":"b","properties":{"n":123456789012345678901234567890,"n":-0.0,"m":1e22}}') + b"\n"
    assert agree(block)
    assert exact_operations(block)[0].id == "b"
