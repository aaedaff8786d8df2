"""What holds for all decoders of JSONL agents: stopping anywhere changes nothing, no bytes and values are too odd."""

import json
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_lines import NOON, at, line, messages, run

from kbd.core.model import Record
from kbd.sources.registry import formats

PATHS = {
    "gemini-cli": "chats/session-1.jsonl",
    "antigravity": "brain/A1/.system_generated/logs/transcript.jsonl",
    "qwen-code": "chats/Q1.jsonl",
    "copilot-cli": "session-state/C1/events.jsonl",
    "kimi": "sessions/wd/K1/agents/main/wire.jsonl",
    "cursor": "agent-transcripts/R1/R1.jsonl",
    "otel-genai": "spans.jsonl",
}
TIMES = [at(minutes) for minutes in (0, 1, 5, 11, 2000)]
TEXTS = ["Per X.", "Backoff must", "be capped", "", "<timestamp>2026-06-10T12:00:00Z</timestamp>"]
IDS = ["m1", "m2", "0123456789abcdef"]


def gemini(kind: str, name: str, time: str, text: str) -> object:
    message = {"id": name, "timestamp": time, "type": kind, "content": text}
    call = {"id": name, "name": "read_file", "args": {"file_path": text}}
    return (
        {"$set": {"messages": [message], "directories": [text]}} if kind == "$set" else {**message, "toolCalls": [call]}
    )


def step(kind: str, name: str, time: str, text: str) -> object:
    calls = [{"name": "view_file", "args": {"AbsolutePath": json.dumps(text)}}]
    return {"step_index": len(name), "type": kind, "created_at": time, "content": text, "tool_calls": calls}


def qwen(kind: str, name: str, time: str, text: str) -> object:
    parts = [{"text": text}, {"functionCall": {"id": name, "name": "read_file", "args": {"path": text}}}]
    fork = {"sessionId": "Q0", "messageUuid": "m1"}
    return {"uuid": name, "timestamp": time, "type": kind, "message": {"parts": parts}, "forkedFrom": fork}


def copilot(kind: str, name: str, time: str, text: str) -> object:
    requests = [{"toolCallId": name, "name": "view", "arguments": {"path": text}}]
    data = {
        "messageId": name,
        "content": text,
        "toolRequests": requests,
        "chunkIndex": 0,
        "sessionId": name,
        "cwd": text,
    }
    return {"type": kind, "id": name, "timestamp": time, "data": data}


def kimi(kind: str, name: str, time: str, text: str) -> object:
    event = {
        "type": kind,
        "stepUuid": name,
        "part": {"type": "text", "text": text},
        "name": "Read",
        "args": {"path": text},
    }
    return {"type": "context.append_loop_event", "event": event, "time": time}


def cursor(kind: str, name: str, time: str, text: str) -> object:
    read = {"type": "tool_use", "name": "Read", "input": {"path": text}}
    return {"role": kind, "message": {"content": [{"type": "text", "text": text}, read]}}


def span(kind: str, name: str, time: str, text: str) -> object:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    attributes = {"gen_ai.output.messages": said, "gen_ai.operation.name": kind}
    return {"traceId": "a", "spanId": name, "parentSpanId": "m1", "endTime": time, "attributes": attributes}


MAKERS = {
    "gemini-cli": (gemini, ["gemini", "gemini", "user", "$set"]),
    "antigravity": (step, ["PLANNER_RESPONSE", "VIEW_FILE"]),
    "qwen-code": (qwen, ["assistant", "assistant", "user"]),
    "copilot-cli": (copilot, ["assistant.message", "assistant.message", "session.start", "user.message"]),
    "kimi": (kimi, ["content.part", "tool.call", "tool.result"]),
    "cursor": (cursor, ["assistant", "assistant", "user"]),
    "otel-genai": (span, ["chat", "chat", "invoke_agent"]),
}
LINES = {
    name: st.builds(make, *(st.sampled_from(options) for options in (kinds, IDS, TIMES, TEXTS))).map(line)
    for name, (make, kinds) in MAKERS.items()
}
SOURCES = list(PATHS.items())


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    data = draw(LINES[name]) + draw(st.just(b"") | LINES[name])
    start = draw(st.integers(0, len(data)))
    return data[:start] + draw(st.binary(max_size=3)) + data[start + draw(st.integers(0, 3)) :]


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@settings(max_examples=30)
@given(st.data())
def test_stopping_anywhere_changes_nothing(name: str, relpath: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(LINES[name] | damaged(name) | st.binary(max_size=9), max_size=12))
    stops = data.draw(st.frozensets(st.integers(0, 11)))
    assert run(formats()[name], relpath, lines, stops=stops) == run(formats()[name], relpath, lines)


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["assistant", "R", "[", "1e9", '{"a":1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "R", "id"]), inner),
    max_leaves=8,
)


@st.composite
def odd(draw: st.DrawFn, name: str) -> bytes:
    """A line with some of its values replaced, at any depth."""
    value = json.loads(draw(LINES[name]))
    for _ in range(draw(st.integers(1, 3))):
        place = value
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys))
            if draw(st.booleans()) or not isinstance(place[key], dict | list):
                place[key] = draw(ODD)
                break
            place = place[key]
    return json.dumps(value).encode()


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@settings(max_examples=40)
@given(st.data())
def test_no_bytes_and_no_values_are_too_odd(name: str, relpath: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(odd(name) | damaged(name) | st.binary(max_size=40), max_size=6))
    for message in messages(run(formats()[name], relpath, lines)):
        assert message.blocks
        assert "".join(block.text for block in message.blocks).encode() is not None
        assert message.at is None or message.at.tzinfo is UTC


@pytest.mark.parametrize(("name", "relpath"), [*SOURCES, ("aider", ".aider.chat.history.md")])
@pytest.mark.parametrize("state", [b"", b"[]", b"{}", b"null", b"[{}]", b"\xff", b"[[1]]", b"[9]"])
def test_a_state_of_another_version_counts_as_none(name: str, relpath: str, state: bytes) -> None:
    source = formats()[name]
    assert source.decoder(relpath, state).state() == source.decoder(relpath, None).state()


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
def test_states_stay_small(name: str, relpath: str) -> None:
    decoder = formats()[name].decoder(relpath, None)
    make, kinds = MAKERS[name]
    for index in range(3000):
        record = make(kinds[0], f"message-{index:08}", at(index), f"src/file{index}.py")
        decoder.feed(Record(index, line(record)), NOON)
    assert len(decoder.state()) < 120_000
