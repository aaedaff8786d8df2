"""Agents that write JSONL, and their traps: Gemini CLI, Antigravity, Qwen Code, Copilot CLI, Kimi, Cursor."""

import json
from datetime import timedelta, timezone

import pytest
from source_lines import NOON, at, kinds, line, messages, run, texts

from kbd.core.model import Author, RecordKind
from kbd.sources import antigravity, copilot_cli, cursor, gemini_cli, kimi, qwen_code
from kbd.sources.contract import FileKind, SourceFormat

Json = dict[str, object]

GEMINI = (gemini_cli.FORMAT, "tmp/app/chats/session-2026-06-10T12-00-aaaa1111.jsonl")
ANTIGRAVITY = (antigravity.FORMAT, "brain/A1/.system_generated/logs/transcript.jsonl")
QWEN = (qwen_code.FORMAT, "projects/-w/chats/Q1.jsonl")
COPILOT = (copilot_cli.FORMAT, "session-state/C1/events.jsonl")
KIMI = (kimi.FORMAT, "sessions/wd_app/K1/agents/main/wire.jsonl")
CURSOR = (cursor.FORMAT, "projects/w-app/agent-transcripts/R1/R1.jsonl")


def gemini(message_id: str = "g1", **extra: object) -> Json:
    return {"id": message_id, "timestamp": at(1), "type": "gemini", "content": "R", **extra}


def step(kind: str = "PLANNER_RESPONSE", **extra: object) -> Json:
    return {"step_index": 3, "source": "MODEL", "type": kind, "created_at": at(1), **extra}


def qwen(parts: list[Json], uuid: str = "u2", **extra: object) -> Json:
    base = {"uuid": uuid, "sessionId": "Q1", "timestamp": at(1), "type": "assistant", "cwd": "/w/app"}
    return {**base, "message": {"role": "model", "parts": parts}, **extra}


def event(kind: str = "assistant.message", **content: object) -> Json:
    return {"type": kind, "data": content, "id": "e2", "timestamp": at(1)}


def loop(kind: str, minutes: float = 1, **extra: object) -> Json:
    told = {"type": kind, "stepUuid": "s1", "turnId": "0", "step": 1, **extra}
    return {
        "type": "context.append_loop_event",
        "event": told,
        "time": (NOON + timedelta(minutes=minutes)).timestamp() * 1000,
    }


def part(text: str, minutes: float = 1, **extra: object) -> Json:
    return loop("content.part", minutes, part={"type": "text", "text": text}, **extra)


def cursor_line(role: str, *content: Json) -> Json:
    return {"role": role, "message": {"content": list(content)}}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


CALL = {"name": "write_file", "args": {"file_path": "a.py", "content": "N"}, "id": "t1"}
AGENT_LINES = [
    (GEMINI, gemini()),
    (GEMINI, gemini(content=[{"text": "no", "thought": True}, {"text": "R"}])),
    (ANTIGRAVITY, step(content="R")),
    (QWEN, qwen([{"text": "R"}])),
    (QWEN, qwen([{"text": "R"}], provenance="assistant_output")),
    (COPILOT, event(content="R", messageId="m1", toolRequests=[])),
    (KIMI, part("R")),
    (CURSOR, cursor_line("assistant", text("R"))),
    (CURSOR, {"role": "assistant", "message": {"content": "R"}}),
]


@pytest.mark.parametrize(("source", "record"), AGENT_LINES, ids=range(len(AGENT_LINES)))
def test_words_of_the_agent_count(source: tuple[SourceFormat, str], record: Json) -> None:
    found = [block for message in messages(run(*source, [record])) for block in message.blocks]
    assert [block.text for block in found if block.author is Author.AGENT_TEXT] == ["R"]


OTHER_LINES = [
    (GEMINI, {"sessionId": "G1", "projectHash": "h", "kind": "main"}),
    (GEMINI, {"id": "u1", "type": "user", "content": [{"text": "T"}]}),
    (GEMINI, {"id": "i", "type": "info", "content": "T"}),
    (GEMINI, {"$set": {"summary": "T", "memoryScratchpad": {"text": "T"}}}),
    (GEMINI, {"$rewindTo": "g1"}),
    (GEMINI, gemini(content="")),
    (ANTIGRAVITY, step("VIEW_FILE", content="T")),
    (ANTIGRAVITY, step("RUN_COMMAND", content="T")),
    (ANTIGRAVITY, step("CHECKPOINT", content="T")),
    (QWEN, qwen([{"text": "T"}], type="user")),
    (QWEN, qwen([{"functionResponse": {"response": {"output": "T"}}}], type="tool_result")),
    (QWEN, qwen([{"text": "T"}], type="system", subtype="turn_result")),
    (QWEN, qwen([{"text": "T"}], type="system", systemPayload={"compressedHistory": [{"text": "T"}]})),
    (QWEN, qwen([{"text": "T"}], provenance="goal_runtime")),
    (COPILOT, event("user.message", content="T", transformedContent="T")),
    (COPILOT, event("system.message", content="T")),
    (COPILOT, event("tool.execution_start", toolCallId="c", arguments={"content": "T"})),
    (COPILOT, event("tool.execution_complete", result={"content": "T"})),
    (COPILOT, event("assistant.reasoning", content="T")),
    (COPILOT, event("assistant.message_delta", deltaContent="T")),
    (COPILOT, event("hook.start", input={"prompt": "T"})),
    (COPILOT, event("session.compaction_complete", summaryContent="T")),
    (KIMI, {"type": "turn.prompt", "input": [text("T")], "time": 1}),
    (KIMI, {"type": "context.append_message", "message": {"role": "user", "content": [text("T")]}, "time": 1}),
    (KIMI, {"type": "context.append_message", "message": {"role": "assistant", "content": [text("T")]}, "time": 1}),
    (KIMI, {"type": "context.apply_compaction", "summary": "T", "time": 1}),
    (KIMI, {"type": "llm.tools_snapshot", "tools": [{"description": "T"}], "time": 1}),
    (KIMI, loop("tool.result", result={"output": "T"}, toolCallId="c")),
    (CURSOR, cursor_line("user", text("<user_query>T</user_query>"))),
    (CURSOR, cursor_line("user", {"type": "tool_result", "content": [text("T")]})),
    (CURSOR, {"type": "turn_ended", "status": "success"}),
]


@pytest.mark.parametrize(("source", "record"), OTHER_LINES, ids=range(len(OTHER_LINES)))
def test_what_others_wrote_is_left_out(source: tuple[SourceFormat, str], record: Json) -> None:
    decoded = run(*source, [record])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize(
    "source", [GEMINI, ANTIGRAVITY, QWEN, COPILOT, KIMI, CURSOR], ids=lambda source: source[0].agent
)
def test_an_unknown_form_is_said_to_be_unknown(source: tuple[SourceFormat, str]) -> None:
    assert kinds(run(*source, [{"x": 1}])) == ["unknown"]


WRITES = [
    (
        GEMINI,
        gemini(content="", toolCalls=[{**CALL, "result": [{"x": "T"}], "resultDisplay": "T", "description": "T"}]),
    ),
    (GEMINI, gemini(content=[{"functionCall": CALL}])),
    (ANTIGRAVITY, step(tool_calls=[{"name": "write_file", "args": {"TargetFile": '"a.py"', "CodeContent": '"N"'}}])),
    (QWEN, qwen([{"functionCall": CALL}])),
    (COPILOT, event(content="", toolRequests=[{"toolCallId": "t1", "name": "create", "arguments": CALL["args"]}])),
    (KIMI, loop("tool.call", toolCallId="t1", name="Write", args=json.dumps(CALL["args"]))),
    (KIMI, loop("tool.call", toolCallId="t1", name="Write", args=CALL["args"])),
    (CURSOR, cursor_line("assistant", {"type": "tool_use", "name": "Write", "input": CALL["args"]})),
]


@pytest.mark.parametrize(("source", "record"), WRITES, ids=range(len(WRITES)))
def test_what_a_tool_was_told_to_write_counts(source: tuple[SourceFormat, str], record: Json) -> None:
    (message,) = messages(run(*source, [record]))
    (block,) = message.blocks
    assert (block.author, block.text) == (Author.AGENT_TOOL_INPUT, "N")
    assert block.call is not None
    assert [touch.path for touch in block.call.touched] == ["a.py"]


THOUGHTS = [
    (GEMINI, gemini(content="", thoughts=[{"subject": "S", "description": "hm"}])),
    (ANTIGRAVITY, step(thinking="hm")),
    (QWEN, qwen([{"text": "hm", "thought": True}])),
    (COPILOT, event(content="", reasoningText="hm")),
    (KIMI, loop("content.part", part={"type": "think", "think": "hm"})),
    (CURSOR, cursor_line("assistant", {"type": "thinking", "thinking": "hm"})),
]


@pytest.mark.parametrize(("source", "record"), THOUGHTS, ids=range(len(THOUGHTS)))
def test_thoughts_are_a_class_of_their_own(source: tuple[SourceFormat, str], record: Json) -> None:
    (message,) = messages(run(*source, [record]))
    assert {block.author for block in message.blocks} == {Author.THINKING}


def ids(source: tuple[SourceFormat, str], *records: Json) -> list[str | None]:
    return [message.native_id for message in messages(run(*source, list(records)))]


@pytest.mark.parametrize(
    ("source", "first", "again"),
    [
        (GEMINI, gemini(), gemini(content="R and more", toolCalls=[CALL])),
        (ANTIGRAVITY, step(content="R"), step(content="R and more")),
        (QWEN, qwen([{"text": "R"}]), {**qwen([{"text": " and more"}]), "timestamp": at(2)}),
        (COPILOT, event(content="R", messageId="m1", chunkIndex=0), event(content="S", messageId="m1", chunkIndex=1)),
        (KIMI, part("R"), part("and more", 2)),
        (KIMI, part("R", stepUuid=None), part("and more", 2, stepUuid=None)),
    ],
)
def test_one_message_keeps_its_name_and_its_first_time(
    source: tuple[SourceFormat, str], first: Json, again: Json
) -> None:
    found = messages(run(*source, [first, again]))
    assert len(found) == 2
    assert found[0].native_id == found[1].native_id is not None
    assert found[0].at == found[1].at == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("source", "first", "second"),
    [
        (QWEN, qwen([{"text": "Backoff must"}]), qwen([{"text": " be capped"}])),
        (KIMI, part("Backoff must"), part(" be capped")),
        (COPILOT, event(content="Backoff must", messageId="m", chunkIndex=0),
         event(content=" be capped", messageId="m", chunkIndex=1)),
    ],
)  # fmt: skip
def test_fragments_of_a_message_are_joined(source: tuple[SourceFormat, str], first: Json, second: Json) -> None:
    assert messages(run(*source, [first, second]))[1].before == "Backoff must"


def test_a_snapshot_of_a_message_is_no_fragment() -> None:
    assert messages(run(*GEMINI, [gemini(), gemini(content="R more")]))[1].before == ""


@pytest.mark.parametrize(
    ("source", "record", "other"),
    [
        (QWEN, qwen([{"text": "R"}]), "projects/-w/chats/Q2.jsonl"),
        (COPILOT, event(content="R", messageId="m1"), "session-state/C1.jsonl"),
        (KIMI, part("R"), "sessions/wd_app/K2/agents/main/wire.jsonl"),
    ],
)
def test_a_copied_record_keeps_its_name(source: tuple[SourceFormat, str], record: Json, other: str) -> None:
    assert ids(source, record) == ids((source[0], other), record)


def test_a_short_id_used_twice_is_told_apart_by_time() -> None:
    first, second = event(content="R", messageId="m1"), {**event(content="S", messageId="m1"), "timestamp": at(9)}
    assert ids(COPILOT, first) != ids((COPILOT[0], "session-state/C2/events.jsonl"), second)


def test_what_enters_by_a_replaced_list_after_the_agent_spoke_is_the_programs() -> None:
    replaced = {"$set": {"messages": [gemini("summary", content="T"), gemini("g1", content="R and more")]}}
    assert texts(run(*GEMINI, [gemini(), replaced])) == ["R", "R and more"]


def test_a_list_set_before_any_message_is_the_resumed_conversation() -> None:
    resumed = {"$set": {"messages": [{"id": "u", "type": "user", "content": "T"}, gemini()]}}
    assert texts(run(*GEMINI, [{"sessionId": "G1"}, resumed])) == ["R"]


def test_gemini_subagents_count_for_their_parent() -> None:
    lines = [{"sessionId": "S9", "kind": "subagent", "directories": ["/w/app"]}, gemini()]
    (message,) = messages(run(GEMINI[0], "tmp/app/chats/P1/S9.jsonl", lines))
    assert (message.session, message.cwd) == ("P1", "/w/app")
    assert str(message.native_id).startswith("S9:g1")


def test_the_old_chat_and_its_resumed_copy_give_the_same_names() -> None:
    chat = {"sessionId": "G1", "messages": [{"id": "u", "type": "user", "content": "T"}, gemini()]}
    old = run(GEMINI[0], "tmp/app/chats/session-2026-06-10T12-00-aaaa1111.json", [line(chat)])
    new = run(*GEMINI, [{"sessionId": "G1"}, gemini()])
    assert texts(old) == ["R"]
    assert [m.native_id for m in messages(old)] == [m.native_id for m in messages(new)]


@pytest.mark.parametrize(("data", "kind"), [(b'{"messages": [', "malformed"), (b"[1]", "unknown")])
def test_a_torn_or_foreign_document_says_so(data: bytes, kind: str) -> None:
    assert kinds(run(GEMINI[0], "chats/session-1.json", [data])) == [kind]


def test_qwen_copies_count_for_the_session_they_were_copied_from() -> None:
    fork = {"sessionId": "Q0", "messageUuid": "u2"}
    copied, own = qwen([{"text": "R"}], forkedFrom=fork), qwen([{"text": "S"}], "u3")
    assert [m.session for m in messages(run(*QWEN, [copied, own]))] == ["Q0", "Q1"]


def test_qwens_first_versions_wrote_gemini_chats() -> None:
    assert texts(run(QWEN[0], "tmp/h/chats/session-1.json", [line({"sessionId": "G", "messages": [gemini()]})])) == [
        "R"
    ]


def test_copilot_takes_identity_and_directory_from_its_start() -> None:
    start = event("session.start", sessionId="C9", parentSessionId="C8", context={"cwd": "/w/app"})
    (message,) = messages(run(*COPILOT, [start, event(content="R")]))
    assert (message.session, message.cwd, message.copied_from) == ("C9", "/w/app", ("C8",))
    assert messages(run(*COPILOT, [event(content="R")]))[0].session == "C1"


def test_kimi_agents_count_for_their_session() -> None:
    lines = [{"type": "config.update", "cwd": "/w/app", "time": 1}, part("R")]
    (message,) = messages(run(KIMI[0], KIMI[1].replace("main", "agent-0"), lines))
    assert (message.session, message.cwd) == ("K1", "/w/app")


def test_calls_of_different_agents_are_not_one() -> None:
    record = loop("tool.call", toolCallId="Bash_0", name="Bash", args={"command": "echo N"}, stepUuid=None, step=None)
    names = [
        message.blocks[0].native_id
        for path in (KIMI[1], KIMI[1].replace("main", "agent-0"))
        for message in messages(run(KIMI[0], path, [record]))
    ]
    assert len(set(names)) == 2


TAGS = [
    ("2026-06-10T12:00:00Z", NOON),
    ("Wednesday, Jun 10, 2026, 12:00 PM (UTC+0)", NOON),
    ("Wednesday, Jun 10, 2026, 2:00 PM (UTC+2)", NOON),
    ("Wednesday, Jun 10, 2026, 6:30 AM (UTC-5:30)", NOON),
    ("June 10, 2026 at 11:00 AM", NOON),
    ("Jun 10, 2026, 11:00:00 AM", NOON),
]


@pytest.mark.parametrize(("tag", "time"), TAGS)
def test_cursor_takes_its_times_from_the_users_tags(tag: str, time: object) -> None:
    asked = cursor_line("user", text(f"<timestamp>{tag}</timestamp>\n<user_query>T</user_query>"))
    lines = [cursor_line("assistant", text("before")), asked, *[cursor_line("assistant", text("R"))] * 2]
    before, first, second = messages(run(*CURSOR, lines, tz=timezone(timedelta(hours=-1))))
    assert before.at is None
    assert first.at == NOON + timedelta(microseconds=1)
    assert second.at == NOON + timedelta(microseconds=2)
    assert (first.native_id, first.record_id) == (None, "3")


@pytest.mark.parametrize(
    "tag", ["Smarch 13, 2026, 1:00 PM", "Jun 99, 2026, 1:00 PM (UTC)", "Jun 1, 2026, 1:00 PM (UTC+99)", "now"]
)
def test_a_tag_that_says_no_time_is_passed_over(tag: str) -> None:
    lines = [cursor_line("user", text(f"<timestamp>{tag}</timestamp>")), cursor_line("assistant", text("R"))]
    assert messages(run(*CURSOR, lines))[0].at is None


def test_cursor_subagents_count_for_their_parent() -> None:
    (message,) = messages(
        run(CURSOR[0], "agent-transcripts/R1/subagents/x.jsonl", [cursor_line("assistant", text("R"))])
    )
    assert (message.session, message.record_id) == ("R1", "x:1")


PATHS = [
    (GEMINI, "tmp/app/chats/session-1.jsonl", FileKind.LINES),
    (GEMINI, "tmp/app/chats/session-1.json", FileKind.DOCUMENT),
    (GEMINI, "session-1.jsonl", FileKind.LINES),
    (GEMINI, "chats/P1/S9.jsonl", FileKind.LINES),
    (GEMINI, "tmp/app/logs.json", None),
    (GEMINI, "tmp/app/checkpoint-x.json", None),
    (GEMINI, "tmp/app/chats/session-1.jsonl.tmp-77", None),
    (GEMINI, "tmp/app/chats/session-1.json.unreadable-5", None),
    (ANTIGRAVITY, ANTIGRAVITY[1], FileKind.LINES),
    (ANTIGRAVITY, "brain/A1/plan.md", None),
    (QWEN, QWEN[1], FileKind.LINES),
    (QWEN, "projects/-w/chats/archive/Q1.jsonl", FileKind.LINES),
    (QWEN, "019f0000-0000-7000-8000-000000000002.jsonl", FileKind.LINES),
    (QWEN, "tmp/h/chats/session-1.json", FileKind.DOCUMENT),
    (QWEN, "projects/-w/logs/x.jsonl", None),
    (COPILOT, COPILOT[1], FileKind.LINES),
    (COPILOT, "session-state/C1.jsonl", FileKind.LINES),
    (COPILOT, "C1/events.jsonl", FileKind.LINES),
    (COPILOT, "otel/events.jsonl", None),
    (COPILOT, "session-state/C1/checkpoints/x.jsonl", None),
    (KIMI, KIMI[1], FileKind.LINES),
    (KIMI, "agents/main/wire.jsonl", FileKind.LINES),
    (KIMI, "sessions/wd_app/K1/state.json", None),
    (CURSOR, CURSOR[1], FileKind.LINES),
    (CURSOR, "agent-transcripts/R1.jsonl", FileKind.LINES),
    (CURSOR, "agent-transcripts/R1/subagents/x.jsonl", FileKind.LINES),
    (CURSOR, "R1/R1.jsonl", FileKind.LINES),
    (CURSOR, "R1/subagents/x.jsonl", FileKind.LINES),
    (CURSOR, "projects/w-app/terminals/1.jsonl", None),
]


@pytest.mark.parametrize(("source", "relpath", "kind"), PATHS)
def test_files_are_taken_by_name(source: tuple[SourceFormat, str], relpath: str, kind: FileKind | None) -> None:
    assert source[0].file_kind(relpath) is kind


ROOTS = [
    (GEMINI, {"GEMINI_CLI_HOME": "/g"}, "/g/.gemini"),
    (ANTIGRAVITY, {}, "/h/.gemini/antigravity-cli"),
    (QWEN, {"QWEN_HOME": "/q"}, "/q"),
    (QWEN, {}, "/h/.qwen"),
    (COPILOT, {"COPILOT_HOME": "/c"}, "/c"),
    (KIMI, {}, "/h/.kimi-code"),
    (CURSOR, {}, "/h/.cursor"),
]


@pytest.mark.parametrize(("source", "env", "root"), ROOTS)
def test_roots_come_from_the_environment(source: tuple[SourceFormat, str], env: dict[str, str], root: str) -> None:
    assert source[0].default_roots(env, "/h") == [root]


def test_glued_records_on_one_line_are_all_read() -> None:
    glued = line(qwen([{"text": "R"}])) + b" " + line(qwen([{"text": "S"}], "u3"))
    whole, cut = run(*QWEN, [glued]), run(*QWEN, [b'{"uuid":"u1", "cut' + glued])
    assert texts(whole) == texts(cut) == ["R", "S"]
    malformed = [sum(one.kinds.count(RecordKind.MALFORMED) for one in decoded) for decoded in (whole, cut)]
    assert malformed == [0, 1]  # Qwen glues now and then: no damage, and no alarm
