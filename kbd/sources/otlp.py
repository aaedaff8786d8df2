"""Reads exported telemetry: OTLP/JSON envelopes of spans and log records, and spans written flat, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kbd.sources.jsonl import object_of, objects_of, text_of

MAX_DEPTH = 32

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Event:
    """Something noted within a span: its name, its attributes, the body it has as a log record."""

    name: str
    attributes: Json
    body: object = None


@dataclass(frozen=True, slots=True)
class Span:
    """A span, or the part of one that a log record tells.

    Attributes:
        trace: id of its trace; "" if unknown, as are id and parent.
        id: its own id.
        parent: id of the span around it.
        at: when it ended, as written: ISO, an epoch in any unit, or seconds and nanoseconds.
        attributes: plain values.
        events: in order.
    """

    trace: str
    id: str
    parent: str
    at: object
    attributes: Json
    events: tuple[Event, ...]


def spans_of(record: Json) -> tuple[Span, ...] | None:
    """Return the spans of one exported record; None if it has no shape that is known."""
    if "resourceSpans" in record or "resourceLogs" in record:
        return tuple(_enveloped(record))
    flat = any(key in ("attributes", "traceId", "trace_id") or key.startswith("gen_ai.") for key in record)
    return (_span(record),) if flat else None


def plain(value: object, depth: int = 0) -> object:
    """Return an OTLP value (`{"stringValue": …}`, arrays and key-value lists of such) as the value it stands for."""
    if depth > MAX_DEPTH or not isinstance(value, dict):
        return value
    if "kvlistValue" in value:
        return _attributes(object_of(value, "kvlistValue").get("values"), depth + 1)
    if "arrayValue" in value:
        values = object_of(value, "arrayValue").get("values")
        return [plain(inner, depth + 1) for inner in values] if isinstance(values, list) else []
    for key in ("stringValue", "intValue", "doubleValue", "boolValue"):
        if key in value:
            return value[key]
    return value


def _attributes(value: object, depth: int = 0) -> dict[str, object]:
    if isinstance(value, dict):
        return {key: plain(inner, depth) for key, inner in value.items()}
    pairs = [pair for pair in value if isinstance(pair, dict)] if isinstance(value, list) else []
    return {text_of(pair, "key"): plain(pair.get("value"), depth) for pair in pairs}


def _enveloped(record: Json) -> Iterator[Span]:
    for resource in objects_of(record, "resourceSpans"):
        for scope in (*objects_of(resource, "scopeSpans"), *objects_of(resource, "instrumentationLibrarySpans")):
            yield from map(_span, objects_of(scope, "spans"))
    for resource in objects_of(record, "resourceLogs"):
        for scope in objects_of(resource, "scopeLogs"):
            yield from map(_span, objects_of(scope, "logRecords"))


def _span(record: Json) -> Span:
    context = object_of(record, "context") or object_of(record, "spanContext") or record
    own = {key: plain(value) for key, value in record.items() if key.startswith("gen_ai.")}
    attributes = {**own, **_attributes(record.get("attributes"))}
    events = tuple(
        Event(text_of(event, "name"), _attributes(event.get("attributes")), plain(event.get("body")))
        for event in objects_of(record, "events")
    )
    if "body" in record or "eventName" in record or "event.name" in attributes:
        name = text_of(record, "eventName") or text_of(attributes, "event.name") or text_of(record, "name")
        events += (Event(name, attributes, plain(record.get("body"))),)
    return Span(
        _first(context, "traceId", "trace_id"),
        _first(context, "spanId", "span_id"),
        _first(record, "parentSpanId", "parent_span_id", "parent_id"),
        _time(record),
        attributes,
        events,
    )


def _first(record: Json, *keys: str) -> str:
    return next((found for key in keys if (found := text_of(record, key))), "")[:256]


def _time(record: Json) -> object:
    keys = ("endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time", "timeUnixNano", "observedTimeUnixNano",
            "timestamp", "time", "startTimeUnixNano", "startTime", "start_time")  # fmt: skip
    value = next((record[key] for key in keys if record.get(key) not in (None, "", 0, "0")), None)
    match value:
        case [int() as seconds, int() as nanos, *_]:
            return seconds + nanos / 1e9
        case _:
            return value
