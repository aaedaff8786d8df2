"""What holds for every decoder: stopping anywhere changes nothing, and no bytes are too odd."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_lines import at, line, messages, run

from kbd.core.model import Decoded, Record
from kbd.sources.contract import SourceFormat
from kbd.sources.registry import formats

PATHS = {"claude-code": "projects/-w/S.jsonl", "codex": "rollout-1.jsonl", "openclaw": "O.jsonl", "pi": "P.jsonl"}
SOURCES = [(name, PATHS.get(name, "a.jsonl")) for name in formats() if name in (*PATHS, "text", "chat-jsonl")]
TIMES = [at(minutes) for minutes in (0, 1, 5, 11, 30, 2000)]
TEXTS = ["Per X.", "Backoff must", "be capped", "", "<oai-mem-citation>a.md:1-2</oai-mem-citation>"]


def claude(kind: str, message_id: str, time: str, text: str) -> object:
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": text}}
    blocks = [{"type": "text", "text": text}, call]
    message = {"id": message_id, "role": "assistant", "content": blocks}
    return {"type": kind, "timestamp": time, "sessionId": "S", "cwd": "/w", "message": message}


def codex(kind: str, item: str, time: str, text: str) -> object:
    content = [{"type": "output_text", "text": text}]
    payload = {"type": item, "role": "assistant", "id": text, "name": "shell", "message": text, "cwd": text}
    payload |= {"content": content, "arguments": json.dumps({"command": f"cat {text}.md"})}
    return {"type": kind, "timestamp": time, "payload": payload}


def entry(kind: str, role: str, time: str, text: str) -> object:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": text}}
    content = [{"type": "text", "text": text}, call]
    return {"type": kind, "id": text, "timestamp": time, "message": {"role": role, "content": content}, "cwd": text}


def chat(role: str, time: str, text: str, delta: bool) -> object:
    return {"role": role, "content": text, "timestamp": time, "delta": delta}


def built(make, *options):
    return st.builds(make, *(st.sampled_from(option) for option in options)).map(line)


WIDE = [b"\xff\xfea\0", b"\0b\0", b"\xfe\xff\0a\0", b"\0", b"N"]
CODEX_ITEMS = ["message", "function_call", "agent_message", "user_message", "function_call_output"]
LINES = {
    "claude-code": built(claude, ["assistant", "assistant", "user", "odd"], ["msg_1", "msg_2"], TIMES, TEXTS),
    "codex": built(codex, ["response_item", "event_msg", "session_meta", "turn_context"], CODEX_ITEMS, TIMES, TEXTS),
    "openclaw": built(entry, ["message", "message", "session"], ["assistant", "user"], TIMES, TEXTS),
    "chat-jsonl": built(chat, ["assistant", "assistant", "user"], TIMES, TEXTS, [True, False])
    | st.lists(built(chat, ["assistant", "user"], TIMES, TEXTS, [False]), max_size=4).map(
        lambda turns: line({"messages": [json.loads(turn) for turn in turns]})
    ),
    "text": st.sampled_from([b"", b"Backoff must", b"be capped", b"09:00 x", b"2026-06-09 z", b"2026-06-09", *WIDE]),
}
LINES["pi"] = LINES["openclaw"]


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    data = draw(LINES[name]) + draw(st.just(b"") | LINES[name])
    start = draw(st.integers(0, len(data)))
    return data[:start] + draw(st.binary(max_size=3)) + data[start + draw(st.integers(0, 3)) :]


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@settings(max_examples=60)
@given(st.data())
def test_stopping_anywhere_changes_nothing(name: str, relpath: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(LINES[name] | damaged(name) | st.binary(max_size=9), max_size=12))
    stops = data.draw(st.frozensets(st.integers(0, 11)))
    observed = [datetime(2026, 6, 10, tzinfo=UTC) + timedelta(hours=7 * index) for index in range(len(lines))]
    once = run(formats()[name], relpath, lines, observed=observed)
    assert run(formats()[name], relpath, lines, stops=stops, observed=observed) == once


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@settings(max_examples=60)
@given(st.data())
def test_no_bytes_are_too_odd(name: str, relpath: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(damaged(name) | st.binary(max_size=40), max_size=6))
    for message in messages(run(formats()[name], relpath, lines)):
        assert message.blocks
        assert "".join(block.text for block in message.blocks).encode() is not None
        assert message.at is None or message.at.tzinfo is UTC


DEEP = b"[" * 900 + b"]" * 900
ODD = [
    b"{}",
    b'{"type":',
    b'{"a":' * 9999,
    b"9" * 5000,
    b'{"type":"assistant","message":{"content":' + DEEP + b"}}",
    b'{"role":"assistant","content":' + DEEP + b"}",
    b'{"type":["x"],"message":[1]}',
    b'{"messages":[{"role":"assistant","content":' + b"9" * 400 + b"}]}",
    b'{"type":"response_item","payload":[]}',
    b'{"type":"message","timestamp":1e999,"message":{"role":"assistant","content":"x","timestamp":-1e300}}',
    b'{"type":"assistant","timestamp":"9999-12-31T23:59:59-14:00","message":{"id":{},"content":[null,1,{"type":{}}]}}',
    b'{"type":"response_item","payload":{"type":"function_call","name":7,"arguments":"{\\"command\\":[1,null]}"}}',
    b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":{}}}]}}',
]


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@pytest.mark.parametrize("data", ODD, ids=range(len(ODD)))
def test_odd_values_are_read_calmly(name: str, relpath: str, data: bytes) -> None:
    assert all(isinstance(decoded, Decoded) for decoded in run(formats()[name], relpath, [data]))


@pytest.mark.parametrize(("name", "relpath"), SOURCES)
@pytest.mark.parametrize("state", [b"", b"[]", b"{}", b"null", b'[{}]', b"\xff", b"[[1]]", b"[9]"])
def test_a_state_of_another_version_counts_as_none(name: str, relpath: str, state: bytes) -> None:
    source = formats()[name]
    assert source.decoder(relpath, state).state() == source.decoder(relpath, None).state()


@pytest.mark.parametrize(("name", "relpath"), [source for source in SOURCES if source[0] != "text"])
def test_states_stay_small(name: str, relpath: str) -> None:
    decoder = formats()[name].decoder(relpath, None)
    observed = datetime(2026, 6, 10, tzinfo=UTC)
    makers = {"claude-code": claude, "codex": codex}
    for index in range(3000):
        kind = "assistant" if name == "claude-code" else "message"
        record = makers.get(name, entry)(kind, f"m{index}", at(index), f"f{index}")
        decoder.feed(Record(index, line(record)), observed)
    assert len(decoder.state()) < 40_000


def test_every_format_of_the_registry_keeps_the_contract() -> None:
    for name, source in formats().items():
        checked: SourceFormat = source
        assert checked.agent == name
        assert all(isinstance(root, str) for root in checked.default_roots({}, "/h"))
        assert checked.file_kind("x/.hidden") is None
