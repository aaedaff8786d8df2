"""What the lines of a graph's event log say, decoded a block at a time where they are in the one exact form.

Nearly all lines are, and those cost a typed decoder that builds no tree. A block that holds any other line is read line
by line, so that both ways say the same of every line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from kbd.core.operations import (
    MAX_NESTING,
    Fault,
    Operation,
    Reading,
    is_too_deep,
    read_record,
)

OVERSIZE = b"\x00oversize"
"""Stands in a block for a line that is too long."""
_BOM = b"\xef\xbb\xbf"
_DECODER = msgspec.json.Decoder()
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BETWEEN = b"}\n{"

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Scalar = None | bool | int | float | str
_Inner = _Scalar | list[_Scalar] | dict[str, _Scalar]
# Bounded by its type, so that nothing in it need be looked at for its depth.
_Values = dict[str, _Scalar | list[_Inner] | dict[str, _Inner]]


class _Exact(msgspec.Struct, tag_field="op", kw_only=True, forbid_unknown_fields=True, gc=False):
    timestamp: _Text
    by: str = ""


class _Entity(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: _Text
    type: _Text
    properties: _Values
    created: str = ""
    updated: _Scalar = None


class _Create(_Exact, tag="create"):
    entity: _Entity


class _Change(_Exact):
    id: _Text
    properties: _Values = {}


class _Update(_Change, tag="update"):
    pass


class _Delete(_Change, tag="delete"):
    pass


class _Relation(_Exact, rename={"source": "from", "target": "to"}):
    source: _Text
    rel: _Text
    target: _Text
    properties: _Values = {}


class _Relate(_Relation, tag="relate"):
    pass


class _Unrelate(_Relation, tag="unrelate"):
    pass


_EXACT_DECODER = msgspec.json.Decoder(_Create | _Update | _Delete | _Relate | _Unrelate)


_RELATING: dict[type, str] = {_Relate: "relate", _Unrelate: "unrelate"}


class Mark(NamedTuple):
    """Of which plan a line is which step."""

    plan: str
    step: int
    steps: int


class Line(NamedTuple):
    """What one line of the log says; a line without operations and faults is blank. `mark`: it is part of a plan."""

    number: int
    operations: Sequence[Operation]
    faults: Sequence[Fault] = ()
    by: str = ""
    mark: Mark | None = None


def exact_operations(block: bytes) -> list[Operation] | None:
    """Return the operations of whole lines, one a line, if every line is one in the exact form and outside of plans."""
    count = block.count(b"\n")
    # A boundary within a value would not be JSON, so each line begins a value; of as many values each is one line.
    if not block.startswith(b"{") or not block.endswith(b"}\n") or block.count(_BETWEEN) != count - 1:
        return None
    try:
        records = _EXACT_DECODER.decode_lines(block)
    except _UNDECODABLE:
        return None
    if len(records) != count:
        return None
    return _made(records)


def _made(records: Sequence[Any]) -> list[Operation] | None:
    """Return the operations of exact records; names that many lines share become one text in memory."""
    intern, make, made = sys.intern, Operation._make, []
    for one in records:
        at, kind = one.timestamp, type(one)
        if kind is _Create:
            held = one.entity
            if held.type == "Relation":
                return None
            row = "create", held.id, intern(held.type), held.properties, "", "", at, held.created or at, one.by
        elif kind is _Update:
            row = "update", one.id, "", one.properties, "", "", at, "", one.by
        elif kind is _Delete:
            row = "delete", one.id, "", one.properties, "", "", at, "", one.by
        else:
            row = _RELATING[kind], one.source, "", one.properties, intern(one.rel), one.target, at, "", one.by
        made.append(make(row))
    return made


def lines_of(block: bytes, number: int) -> Iterator[tuple[bytes, Line]]:
    """Yield each whole line of a block with what it says; `number` is that of the line before the first."""
    raws = block.split(b"\n")[:-1]
    for at, raw in enumerate(raws, number + 1):
        yield raw, line_of(raw, at)


def line_of(raw: bytes, number: int) -> Line:
    """Return what one line says, whatever it is. Never raises."""
    try:
        record = _DECODER.decode(raw)
    except _UNDECODABLE:
        return _odd_line(raw, number)
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and is_too_deep(record):
        return Line(number, (), (Fault("too_deep"),))
    return _line_of(read_record(record), number, (), _mark_of(record))


def _line_of(reading: Reading, number: int, faults: Sequence[Fault], mark: Mark | None = None) -> Line:
    by = reading.operations[0].by if reading.operations else ""
    return Line(number, reading.operations, (*faults, *reading.faults), by, mark)


def _mark_of(record: object) -> Mark | None:
    if not isinstance(record, dict):
        return None
    plan, step, steps = record.get("plan"), record.get("step"), record.get("steps")
    if isinstance(plan, str) and type(step) is int and type(steps) is int and 1 <= step <= steps:
        return Mark(plan, step, steps)
    return None


def _odd_line(raw: bytes, number: int) -> Line:
    """Read a line that the fast decoder does not take: blank, a comment, with a byte order mark, or no JSON."""
    faults = (Fault("byte_order_mark"),) if raw.startswith(_BOM) else ()
    text = raw.removeprefix(_BOM).strip()
    if not text:
        return Line(number, (), faults)
    if text == OVERSIZE:
        return Line(number, (), (Fault("oversize_line"),))
    if text.startswith((b"#", b"//")):
        return Line(number, (), (*faults, Fault("comment_line")))
    try:
        record = json.loads(text, parse_constant=_no_constant)
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return Line(number, (), (*faults, Fault("not_text")))
    except (ValueError, RecursionError):
        return Line(number, (), (*faults, Fault("bad_json")))
    if is_too_deep(record):
        return Line(number, (), (*faults, Fault("too_deep")))
    return _line_of(read_record(record), number, faults)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
