"""Reads one line of a JSONL transcript: fast when it is whole, patient when it is damaged, linear always.

The fast way is msgspec with the format's own `skim`, which decodes only the few fields that tell whether anyone needs
the line. What msgspec refuses (lone surrogates, NaN, raw control characters) goes to the standard library's decoder.
What that refuses is damage: runs of NUL, records glued together, a record cut off with the next one on the same line.
Every whole record in such a line is still found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from kbd.core.model import Decoded, Record, RecordKind
from kbd.sources.contract import IGNORED, Item, gather

Json = dict[str, object]

MAX_FAILED_STARTS = 64  # where a cut record may nest a few starts, a hostile line nests millions

_BOM = b"\xef\xbb\xbf"
_PADDING = b"\x00 \t\r\n"
_START = re.compile(r'\{\s*"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = re.compile(r"[\x00\s\ufeff]*")
_MAX_DIGITS = 18  # longer ones fit no 64-bit integer, and CPython refuses to convert very long ones

_whole = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class LineOfRecords:
    """What a line holds.

    Attributes:
        records: the objects in it, in order; a skimmed one has only the fields the skim kept.
        others: number of JSON values that are no objects; legal, without meaning.
        damaged: some of the line is no JSON, or no line end stands between records.
        glued: all of the line is JSON.
    """

    records: tuple[Json, ...] = ()
    others: int = 0
    damaged: bool = False
    glued: bool = False


Skim = Callable[[bytes], Json | None]
IsRecord = Callable[[Json], bool]


def read_line(data: bytes, skim: Skim, is_record: IsRecord) -> LineOfRecords:
    """Return the records of one line; never raises on any bytes.

    `skim` returns the fields of a line nobody needs in full, None if it is needed, and may raise what msgspec raises.
    `is_record` tells a record from an object nested in a cut one.
    """
    try:
        skimmed = skim(data)
        value: object = _whole.decode(data) if skimmed is None else skimmed
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _read_patiently(data, is_record)
    if isinstance(value, dict):
        return LineOfRecords((value,))
    return LineOfRecords(others=1)


class _Head(msgspec.Struct):
    type: str | None = None
    timestamp: object = None
    time: object = None
    created_at: object = None


_head = msgspec.json.Decoder(_Head)


def skim_by_type(needed: Container[str]) -> Skim:
    """Return a skim for lines told by their `type`: one that is not `needed` keeps its type and time alone."""

    def skim(data: bytes) -> Json | None:
        head = _head.decode(data)
        return None if head.type is None or head.type in needed else msgspec.structs.asdict(head)

    return skim


def read_all(data: bytes) -> Json | None:
    """Skim nothing: every line is needed in full."""
    return None


def decode_record(
    record: Record, skim: Skim, is_record: IsRecord, item: Callable[[Json, int], Item], *, may_glue: bool = False
) -> Decoded:
    """Decode one line with `item`, which takes a record and the offset of its line.

    `may_glue` says that the agent writes whole records without a line end between them, which is no damage.
    """
    line = read_line(record.data, skim, is_record)
    if len(line.records) == 1 and not line.others and not line.damaged:  # nearly always
        one = item(line.records[0], record.offset)
        return Decoded((one.kind,), one.messages, one.at)
    items = [item(found, record.offset) for found in line.records]
    items += [IGNORED] * line.others
    is_damaged = line.damaged and not (may_glue and line.glued)
    return gather(items + [Item(RecordKind.MALFORMED)] * is_damaged)


def read_value(data: bytes) -> object:
    """Return the one JSON value these bytes are, of any type; None if they are not one whole value, or `null`."""
    try:
        return _whole.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        text = data.removeprefix(_BOM).strip(_PADDING).decode("utf-8", "replace")
        value, end = _decode(text, 0)
        return value if end == len(text) else None


def is_json(data: bytes) -> bool:
    """Tell whether these bytes are one whole value, as a last line without line end may be."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _read_patiently(data: bytes, is_record: IsRecord) -> LineOfRecords:
    stripped = data.removeprefix(_BOM).strip(_PADDING).removeprefix(_BOM)
    if not stripped:
        return LineOfRecords(damaged=b"\x00" in data)
    text = stripped.decode("utf-8", "replace")
    value, end = _decode(text, 0)
    if end == len(text):
        padded = b"\x00" in data[: data.find(stripped[:1])] or data.endswith(b"\x00")
        return LineOfRecords((value,), damaged=padded) if isinstance(value, dict) else LineOfRecords(others=1)
    return LineOfRecords(tuple(_salvage(text, is_record)), damaged=True, glued=_is_glued(text))


def _is_glued(text: str) -> bool:
    at = 0
    while 0 <= at < len(text):
        blank = _BLANK.match(text, at)
        at = _decode(text, blank.end() if blank else at)[1]
    return at == len(text)


def _salvage(text: str, is_record: IsRecord) -> Iterator[Json]:
    """Yield the records of a damaged line.

    An object inside a cut record decodes as well; it is known by the comma or closer after it. Where no cut came
    before, an object is a record whatever follows.
    """
    at, failed, whole = 0, 0, True
    while failed < MAX_FAILED_STARTS:
        start = _START.search(text, at)
        if start is None:
            return
        whole = whole and not text[at : start.start()].strip("\x00 \t\r\n\ufeff")
        value, end = _decode(text, start.start())
        if end < 0:
            failed, whole, at = failed + 1, False, start.start() + 1
            continue
        at = end
        rest = _BLANK.match(text, end)
        following = rest.end() if rest else end
        nested = not whole and text[following : following + 1] in (",", "}", "]", ":")
        if isinstance(value, dict) and not nested and is_record(value):
            yield value


def _decode(text: str, start: int) -> tuple[object, int]:
    """Return the value at `start` and its end; the end is -1 if there is none."""
    try:
        value, end = _patient.raw_decode(text, start)
        return _without_surrogates(value), end
    except (ValueError, RecursionError):
        return None, -1


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_patient = json.JSONDecoder(strict=False, parse_int=_integer)


def _without_surrogates(value: object) -> object:
    """Return a decoded value with lone surrogates replaced; they cannot be stored or matched as UTF-8."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(inner) for inner in value]
    return value


def text_of(record: Mapping[str, object], key: str) -> str:
    """Return a field that is a text, "" if it is not."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def object_of(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return a field that is an object, an empty one if it is not."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def objects_of(record: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects of a field that is a list."""
    value = record.get(key)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def parsed_arguments(value: object) -> Mapping[str, object]:
    """Return a tool's arguments: an object, an object as JSON text, or any other text under the key `input`."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return {}
    decoded, end = _decode(value, _leading_blanks(value))
    return decoded if isinstance(decoded, dict) and not value[end:].strip() else {"input": value}


def _leading_blanks(text: str) -> int:
    return len(text) - len(text.lstrip())
