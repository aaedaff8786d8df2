"""Generic chat JSONL in its dialects."""

import pytest
from source_lines import NOON, at, kinds, messages, run, texts

from kbd.core.model import Author
from kbd.sources.chat_jsonl import FORMAT
from kbd.sources.contract import FileKind

Json = dict[str, object]


def turn(role: str, content: object, **extra: object) -> Json:
    return {"role": role, "content": content, **extra}


PART = [{"type": "text", "text": "R"}]
OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "R"}]}]
CHOICES = {"choices": [{"message": turn("assistant", "R")}]}
OPENAI_CALL = {"id": "c", "function": {"name": "write", "arguments": '{"path": "a.py", "content": "R"}'}}

DIALECTS = {
    "role and content": turn("assistant", "R"),
    "text parts": turn("assistant", PART),
    "parts that are one stream": turn("assistant", [{"type": "output_text", "text": part} for part in ("", "R")]),
    "strings as parts": turn("assistant", ["R"]),
    "tool calls": turn("assistant", None, tool_calls=[OPENAI_CALL]),
    "legacy function call": turn("assistant", None, function_call={"name": "say", "arguments": '{"text": "R"}'}),
    "a conversation": {"messages": [turn("system", "T"), turn("user", "T"), turn("assistant", "R"), turn("tool", "T")]},
    "ShareGPT": {"conversations": [{"from": "human", "value": "T"}, {"from": "gpt", "value": "R"}]},
    "a completion": {"request": {"messages": [turn("user", "T")]}, "response": CHOICES},
    "a bare completion": CHOICES,
    "Responses": {"input": "T", "output": OUTPUT},
    "a Responses item": OUTPUT[0],
    "Responses call": {"output": [{"type": "function_call", "name": "say", "arguments": '{"text": "R"}'}]},
    "Anthropic blocks": turn("assistant", [{"type": "tool_use", "id": "t", "name": "say", "input": {"text": "R"}}]),
    "Claude's stream": {"type": "assistant", "session_id": "S", "message": turn("assistant", PART)},
    "Gemini": turn("model", None, parts=[{"text": "T", "thought": True}, {"text": "R"}]),
    "Gemini call": {"role": "model", "parts": [{"functionCall": {"name": "say", "args": {"text": "R"}}}]},
    "Codex exec": {"type": "item.completed", "item": {"type": "agent_message", "text": "R"}},
    "Codex exec command": {"type": "item.completed", "item": {"type": "command_execution", "command": "echo R"}},
}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_assistants_words_are_found(name: str) -> None:
    (message,) = messages(run(FORMAT, "chats/a.jsonl", [DIALECTS[name]]))
    counted = [block.text for block in message.blocks if block.author is not Author.THINKING]
    assert [text.removeprefix("echo ") for text in counted] == ["R"]


@pytest.mark.parametrize(
    "record",
    [
        turn("user", "T"),
        turn("system", "T"),
        turn("tool", "T"),
        turn("developer", "T"),
        {"type": "result", "result": "T"},
        {"type": "system", "subtype": "init"},
        {"type": "user", "message": turn("user", "T")},
        {"type": "assistant", "message": turn("assistant", "T", model="<synthetic>")},
        {"type": "item.completed", "item": {"type": "error", "text": "T"}},
        {"conversations": [{"from": "human", "value": "T"}]},
        {"messages": []},
    ],
)
def test_what_others_wrote_is_left_out(record: Json) -> None:
    decoded = run(FORMAT, "a.jsonl", [record])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize("record", [{}, {"a": 1}, {"content": "R"}])
def test_other_objects_are_unknown(record: Json) -> None:
    assert kinds(run(FORMAT, "a.jsonl", [record])) == ["unknown"]


def test_the_file_is_the_session_unless_the_record_says() -> None:
    lines = [turn("assistant", "R"), turn("assistant", "R", session_id="S")]
    assert [message.session for message in messages(run(FORMAT, "chats/a.jsonl", lines))] == ["chats/a", "S"]


@pytest.mark.parametrize("key", ["timestamp", "ts", "created_at", "created"])
def test_times_go_by_many_names(key: str) -> None:
    value = NOON.timestamp() if key == "created" else at(0)
    assert messages(run(FORMAT, "a.jsonl", [turn("assistant", "R", **{key: value})]))[0].at == NOON


def test_without_a_time_there_is_none() -> None:
    assert messages(run(FORMAT, "a.jsonl", [turn("assistant", "R")]))[0].at is None


def test_a_logged_call_repeats_history_that_counts_once() -> None:
    first = [turn("user", "q1"), turn("assistant", "a1")]
    second = [*first, turn("user", "q2"), turn("assistant", "a2")]
    third = [*second, turn("user", "q3"), turn("assistant", "a3")]
    lines = [{"messages": history, "timestamp": at(index)} for index, history in enumerate((first, second, third))]
    assert texts(run(FORMAT, "a.jsonl", lines)) == ["a1", "a2", "a3"]


def test_history_without_answers_counts_when_first_seen() -> None:
    lines = [{"messages": [turn("user", "q1"), turn("assistant", "a1"), turn("user", "q2")]}] * 2
    assert texts(run(FORMAT, "a.jsonl", lines)) == ["a1"]


def test_an_equal_answer_on_another_day_is_new() -> None:
    nightly = [turn("user", "go"), turn("assistant", "done")]
    lines = [{"messages": nightly, "timestamp": at(1440 * day)} for day in range(3)]
    assert texts(run(FORMAT, "a.jsonl", lines)) == ["done"] * 3


@pytest.mark.parametrize(
    "delta",
    [
        lambda text: {"type": "message", "role": "assistant", "content": text, "delta": True},
        lambda text: {"object": "chat.completion.chunk", "choices": [{"delta": {"content": text}}]},
        lambda text: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
    ],
)
def test_deltas_of_a_stream_are_joined(delta) -> None:
    lines = [delta("Backoff mu"), delta("st be"), delta(""), delta(" capped"), turn("user", "T")]
    assert texts(run(FORMAT, "a.jsonl", lines)) == ["Backoff must be capped"]


def test_an_open_stream_is_shown_by_flush_under_the_same_id() -> None:
    def piece(text: str) -> Json:
        return {"role": "assistant", "content": text, "delta": True}

    short, long = run(FORMAT, "a.jsonl", [piece("a")]), run(FORMAT, "a.jsonl", [piece("a"), piece("b")])
    assert (texts(short), texts(long)) == (["a"], ["ab"])
    assert messages(short)[0].record_id == messages(long)[0].record_id


def test_claude_stream_keeps_the_ids_of_its_transcript() -> None:
    content = [{"type": "tool_use", "id": "toolu_1", "name": "say", "input": {"text": "R"}}]
    record = {"type": "assistant", "message": {"id": "msg_1", "content": content}}
    (message,) = messages(run(FORMAT, "a.jsonl", [record]))
    assert (message.native_id, message.blocks[0].native_id) == ("msg_1", "toolu_1")


def test_ids_that_are_unique_only_here_are_not_native() -> None:
    (message,) = messages(run(FORMAT, "a.jsonl", [turn("assistant", None, tool_calls=[OPENAI_CALL], id="1")]))
    assert (message.native_id, message.blocks[0].native_id) == (None, None)


@pytest.mark.parametrize(
    ("relpath", "kind"),
    [
        ("a.jsonl", FileKind.LINES),
        ("x/a.ndjson", FileKind.LINES),
        ("a.jsonl.gz", FileKind.GZIP),
        (".a.jsonl", None),
        ("a.json", None),
        ("a.jsonl.tmp", None),
    ],
)
def test_only_jsonl_is_taken(relpath: str, kind: FileKind | None) -> None:
    assert FORMAT.file_kind(relpath) is kind
