"""OpenTelemetry GenAI exports and their traps."""

import json

import pytest
from source_lines import NOON, kinds, line, messages, run, texts

from kbd.core.model import Author
from kbd.sources.contract import FileKind
from kbd.sources.otel_genai import FORMAT

PATH = "spans.jsonl"
NANOS = str(int(NOON.timestamp()) * 10**9)
Json = dict[str, object]


def said(words: str, role: str = "assistant") -> list[Json]:
    return [{"role": role, "parts": [{"type": "text", "content": words}], "finish_reason": "stop"}]


def span(attributes: object, span_id: str = "b2", **extra: object) -> Json:
    return {
        "name": "chat m",
        "traceId": "a1",
        "spanId": span_id,
        "endTimeUnixNano": NANOS,
        "attributes": attributes,
        **extra,
    }


def output(words: str = "R", **extra: object) -> Json:
    return {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said(words), **extra}


def value(plain: object) -> Json:
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(inner) for inner in plain]}}
    if isinstance(plain, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": value(inner)} for key, inner in plain.items()]}}
    return {"stringValue": plain}


def listed(attributes: Json) -> list[Json]:
    return [{"key": key, "value": value(plain)} for key, plain in attributes.items()]


def enveloped(*spans: Json) -> Json:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


def log(name: str, body: object, **extra: object) -> Json:
    record = {"timeUnixNano": NANOS, "traceId": "a1", "spanId": "b2", "eventName": name, "body": value(body), **extra}
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


FORMS = [
    span(output()),
    span(output() | {"gen_ai.output.messages": json.dumps(said("R"))}),
    span(listed(output())),
    span(listed(output() | {"gen_ai.output.messages": json.dumps(said("R"))})),
    enveloped(span(listed(output()))),
    span(output() | {"gen_ai.output.messages": [{"role": "assistant", "content": "R"}]}),
    span({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "R"}),
    {"trace_id": "a1", "span_id": "b2", "end_time": NOON.isoformat(), "gen_ai.output.messages": said("R")},
    {"context": {"trace_id": "a1", "span_id": "b2"}, "end_time": NOON.isoformat(), "attributes": output()},
    span(output(), endTimeUnixNano=None, endTime=[int(NOON.timestamp()), 0]),
    span({}, events=[{"name": "gen_ai.choice", "attributes": {"message": '{"role": "assistant", "content": "R"}'}}]),
    span({}, events=[{"name": "gen_ai.choice", "attributes": {"content": "R"}}]),
    log("gen_ai.choice", {"index": "0", "message": {"role": "assistant", "content": "R"}}),
    log("gen_ai.assistant.message", {"content": "R"}),
    log("gen_ai.client.inference.operation.details", {}, attributes=listed(output())),
]  # fmt: skip


@pytest.mark.parametrize("record", FORMS, ids=range(len(FORMS)))
def test_the_output_is_found_in_every_form(record: Json) -> None:
    (message,) = messages(run(FORMAT, PATH, [record]))
    assert [block.text for block in message.blocks] == ["R"]
    assert (message.at, message.record_id) == (NOON, "b2")


INPUTS = [
    {"gen_ai.input.messages": said("T")},
    {"gen_ai.system_instructions": [{"type": "text", "content": "T"}]},
    {"gen_ai.output.messages": said("T", "user")},
    {"gen_ai.output.messages": [{"role": "tool", "parts": [{"type": "tool_call_response", "response": "T"}]}]},
    {"gen_ai.tool.call.result": "T"},
    {"gen_ai.prompt.0.content": "T"},
    {"gen_ai.output.messages": "not json"},
    {"http.url": "T"},
]


@pytest.mark.parametrize("attributes", INPUTS)
def test_what_was_put_in_is_left_out(attributes: Json) -> None:
    decoded = run(FORMAT, PATH, [span(attributes)])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize("name", ["gen_ai.user.message", "gen_ai.system.message", "gen_ai.tool.message"])
def test_events_of_others_are_left_out(name: str) -> None:
    assert messages(run(FORMAT, PATH, [log(name, {"content": "T"})])) == []


def test_calls_and_reasoning_have_their_classes() -> None:
    parts = [
        {"type": "reasoning", "content": "hm"},
        {"type": "tool_call", "id": "c1", "name": "write_file", "arguments": {"path": "a.py", "content": "N"}},
        {"type": "tool_call_response", "id": "c1", "response": "T"},
    ]
    (message,) = messages(
        run(FORMAT, PATH, [span({"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]})])
    )
    assert [(block.author, block.text) for block in message.blocks] == [
        (Author.THINKING, "hm"),
        (Author.AGENT_TOOL_INPUT, "N"),
    ]


PARENT = output() | {"gen_ai.operation.name": "invoke_agent"}
REPEATS = [
    [span(output(), parentSpanId="p"), span(PARENT, "p")],
    [span(PARENT, "p"), span(output(), parentSpanId="p")],
    [enveloped(span(output(), parentSpanId="p"), span(output(), "p"))],
    [span(output(), parentSpanId="x"), span(PARENT, "grandparent")],
]


@pytest.mark.parametrize("records", REPEATS)
def test_a_span_around_another_repeats_its_words(records: list[Json]) -> None:
    assert texts(run(FORMAT, PATH, records)) == ["R"]


def test_two_calls_that_say_the_same_are_two() -> None:
    found = messages(run(FORMAT, PATH, [span(output(), "b1"), span(output(), "b2")]))
    assert len({message.native_id for message in found}) == 2


def test_a_span_exported_again_keeps_its_name() -> None:
    found = messages(run(FORMAT, PATH, [span(output()), span(output())]))
    assert {message.native_id for message in found} == {"a1:b2"}


def test_a_reply_told_again_as_history_keeps_its_name() -> None:
    told = [
        log("gen_ai.choice", {"message": {"content": "R"}}),
        log("gen_ai.assistant.message", {"content": "R"}, spanId="c3"),
    ]
    assert len({message.native_id for message in messages(run(FORMAT, PATH, told))}) == 1


@pytest.mark.parametrize(
    ("attributes", "session"),
    [({"gen_ai.conversation.id": "C1"}, "C1"), ({"session.id": "S1"}, "S1"), ({}, "a1")],
)
def test_the_conversation_is_the_session(attributes: Json, session: str) -> None:
    assert messages(run(FORMAT, PATH, [span(output(**attributes))]))[0].session == session


def test_foreign_lines_are_unknown() -> None:
    assert kinds(run(FORMAT, PATH, [{"x": 1}])) == ["unknown"]


def test_nested_values_have_a_limit() -> None:
    deep: object = "x"
    for _ in range(200):
        deep = {"arrayValue": {"values": [deep]}}
    assert messages(run(FORMAT, PATH, [line(span([{"key": "gen_ai.output.messages", "value": deep}]))])) == []


@pytest.mark.parametrize(("relpath", "kind"), [
    ("a/spans.jsonl", FileKind.LINES), ("spans.json", FileKind.LINES), ("s.jsonl.gz", FileKind.GZIP), ("s.txt", None),
])  # fmt: skip
def test_files_are_taken_by_suffix(relpath: str, kind: FileKind | None) -> None:
    assert FORMAT.file_kind(relpath) is kind
    assert FORMAT.default_roots({}, "/h") == []
