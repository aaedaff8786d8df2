"""One line of JSONL: every whole record in it, whatever happened to the rest."""

import json
import time

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbd.sources.jsonl import Json, LineOfRecords, parsed_arguments, read_line

GOOD = b'{"type":"a","timestamp":"t"}'
VALUE = {"type": "a", "timestamp": "t"}


def is_record(value: Json) -> bool:
    return isinstance(value.get("type"), str) and "timestamp" in value


def read(data: bytes) -> LineOfRecords:
    return read_line(data, lambda _: None, is_record)


@pytest.mark.parametrize(
    ("name", "data", "found", "damaged"),
    [
        ("whole", GOOD, 1, False),
        ("with a BOM", b"\xef\xbb\xbf" + GOOD, 1, False),
        ("with CR", GOOD + b"\r", 1, False),
        ("with blanks", b" \t" + GOOD + b"  ", 1, False),
        ("after NUL", b"\0" * 700 + GOOD, 1, True),
        ("before NUL", GOOD + b"\0" * 700, 1, True),
        ("NUL only", b"\0" * 700, 0, True),
        ("empty", b"", 0, False),
        ("blank", b" \r", 0, False),
        ("glued", GOOD + GOOD + GOOD, 3, True),
        ("glued with NUL between", GOOD + b"\0\0" + GOOD, 2, True),
        ("spliced in a text", b'{"type":"a","x":"half ' + GOOD, 1, True),
        ("spliced in a key", b'{"uuid":"0000' + GOOD, 1, True),
        ("spliced after a nested object", b'{"type":"a","d":' + GOOD + b',"m":"cut ' + GOOD, 1, True),
        ("two splices", b'{"type":"' + b'{"type":"' + GOOD, 1, True),
        ("garbage after", GOOD + b"garbage", 1, True),
        ("garbage before", b"\xff\xfe " + GOOD, 1, True),
        ("no JSON", b"not json at all", 0, True),
        ("cut", GOOD[:-3], 0, True),
        ("NaN", b'{"type":"a","timestamp":"t","n":NaN}', 1, False),
        ("raw control characters", b'{"type":"a","timestamp":"t\x01\t"}', 1, False),
        ("invalid UTF-8", b'{"type":"a","timestamp":"\xff"}', 1, False),
        ("lone surrogate", b'{"type":"a","timestamp":"\\ud83d"}', 1, False),
        ("5000 digits", b'{"type":"a","timestamp":"t","n":' + b"9" * 5000 + b"}", 1, False),
        ("deep", b'{"type":"a","timestamp":"t","n":' + b"[" * 9999 + b"]" * 9999 + b"}", 0, True),
        ("U+2028", b'{"type":"a","timestamp":"\xe2\x80\xa8"}', 1, False),
    ],
)
def test_each_whole_record_is_found(name: str, data: bytes, found: int, damaged: bool) -> None:
    line = read(data)
    assert (len(line.records), line.damaged) == (found, damaged), name


@pytest.mark.parametrize("data", [b"42", b"[1]", b'"x"', b"null", b"true", b"NaN"])
def test_other_values_are_legal(data: bytes) -> None:
    assert read(data) == LineOfRecords(others=1)


def test_lone_surrogates_become_replacements_and_pairs_stay() -> None:
    line = read(b'{"type":"a","timestamp":"\\ud83d x","\\udc00":["\\ud83d\\ude00"]}')
    assert line.records[0] == {"type": "a", "timestamp": "\ufffd x", "\ufffd": ["😀"]}


def test_duplicate_keys_take_the_last() -> None:
    assert read(b'{"type":"b","type":"a","timestamp":"t"}').records == (VALUE,)


@pytest.mark.parametrize("unit", [b"\0", b'{"', b'{"a":', b'{"a', b"{", b'{"a":"', b'{"a":[', b"x", b"[", b'"', GOOD])
def test_eight_hostile_megabytes_take_seconds_at_most(unit: bytes) -> None:
    began = time.process_time()  # others may use the machine
    assert read(unit * (4 * 2**20 // len(unit))).damaged
    assert time.process_time() - began < 5


@given(st.binary(max_size=300))
@example(b'{"a":' * 5000)
def test_any_bytes_have_a_reading(data: bytes) -> None:
    assert isinstance(read(data), LineOfRecords)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS
VALUES = st.recursive(LEAVES, lambda v: st.lists(v) | st.dictionaries(TEXTS, v))


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.integers(0, 400))
def test_a_record_after_any_cut_one_is_found(rest: dict[str, object], cut: int) -> None:
    whole = json.dumps({"type": "x", "timestamp": "1", "rest": rest}, ensure_ascii=False).encode()
    line = read(whole[: min(cut, len(whole) - 1)] + GOOD)
    assert line.records[-1] == VALUE
    assert len(line.records) == 1


def test_a_skimmed_line_is_not_decoded_further() -> None:
    class Head(msgspec.Struct):
        type: str

    head = msgspec.json.Decoder(Head)
    line = read_line(b'{"type":"a","big":[1,2,3]}', lambda data: {"type": head.decode(data).type}, is_record)
    assert line.records == ({"type": "a"},)


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        (' {"a": 1} ', {"a": 1}),
        ("*** Begin Patch", {"input": "*** Begin Patch"}),
        ('{"a": 1} x', {"input": '{"a": 1} x'}),
        ("[1]", {"input": "[1]"}),
        (None, {}),
        (3, {}),
    ],
)
def test_arguments_are_objects_in_the_end(given_value: object, expected: dict[str, object]) -> None:
    assert parsed_arguments(given_value) == expected
