"""Claude Code's transcripts and their traps."""

import pytest
from source_lines import NOON, at, kinds, line, messages, run, texts

from kbd.core.model import Author, RecordKind
from kbd.sources.claude_code import FORMAT
from kbd.sources.contract import FileKind

PATH = "projects/-w-app/S1.jsonl"


Json = dict[str, object]


def said(*blocks: Json, minutes: float = 0, message_id: str = "msg_1", **extra: object) -> Json:
    message = {"id": message_id, "role": "assistant", "model": "m", "content": list(blocks)}
    return {"type": "assistant", "uuid": f"u{minutes}", "timestamp": at(minutes), "cwd": "/w/app", "sessionId": "S1",
            "message": message, **extra}  # fmt: skip


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def tool(name: str, **values: object) -> Json:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": values}


def user(content: object, **extra: object) -> Json:
    message = {"role": "user", "content": content}
    return {"type": "user", "timestamp": at(0), "sessionId": "S1", "message": message, **extra}


def test_prose_of_the_assistant_is_a_message() -> None:
    (message,) = messages(run(FORMAT, PATH, [said(text("Per X."))]))
    assert (message.native_id, message.session, message.record_id, message.at) == ("msg_1", "S1", "u0", NOON)
    assert (message.cwd, message.offset, message.blocks[0].author) == ("/w/app", 0, Author.AGENT_TEXT)


@pytest.mark.parametrize(
    "record",
    [
        user("T"),
        user([{"type": "tool_result", "content": "T"}], toolUseResult={"file": {"content": "T"}}),
        user("T", isMeta=True),
        user("T", isCompactSummary=True),
        {"type": "attachment", "attachment": {"type": "nested_memory", "content": "T"}},
        {"type": "system", "subtype": "informational", "content": "T"},
        {"type": "summary", "summary": "T", "leafUuid": "x"},
        {"type": "queue-operation", "content": "T"},
        {"type": "progress", "data": {"type": "agent_progress", "message": said(text("T"))}},
        {"type": "result", "result": "T"},
        said(text("T"), isApiErrorMessage=True),
        said(text("T"), isCompactSummary=True),
        {"type": "assistant", "message": {"role": "assistant", "model": "<synthetic>", "content": [text("T")]}},
        {"type": "assistant", "message": {"id": "m", "role": "user", "content": [text("T")]}},
        {"type": "assistant", "message": "T"},
        {"type": "assistant"},
    ],
)
def test_what_others_wrote_is_recognised_and_left_out(record: Json) -> None:
    decoded = run(FORMAT, PATH, [record])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize("record", [{"type": "new-kind"}, {"no": "type"}, {"type": ["x"]}, {"type": 1}])
def test_unknown_types_are_said_to_be_unknown(record: Json) -> None:
    assert kinds(run(FORMAT, PATH, [record])) == ["unknown"]


def test_a_message_in_pieces_keeps_the_time_of_its_first_record() -> None:
    lines = [
        said({"type": "thinking", "thinking": "", "signature": "z"}, minutes=0, message_id="msg_a"),
        user([{"type": "tool_result", "content": "x"}]),
        said(text("other"), minutes=1, message_id="msg_b"),
        said(text("I apply X"), minutes=3, message_id="msg_a"),
        said(tool("Bash", command="ls"), minutes=4, message_id="msg_a"),
    ]
    found = [message for message in messages(run(FORMAT, PATH, lines)) if message.native_id == "msg_a"]
    assert [message.at for message in found] == [NOON, NOON]


def test_the_newest_time_is_of_any_author() -> None:
    decoded = run(FORMAT, PATH, [user("x")])
    assert decoded[0].newest == NOON


def test_thinking_is_its_own_class_and_sealed_thinking_nothing() -> None:
    lines = [said({"type": "thinking", "thinking": thought}) for thought in ("hm", " ", "")]
    (message,) = messages(run(FORMAT, PATH, lines))
    assert message.blocks[0].author is Author.THINKING


def test_old_content_is_a_plain_string() -> None:
    old = {"type": "assistant", "timestamp": at(0), "message": {"role": "assistant", "content": "Per X."}}
    (message,) = messages(run(FORMAT, PATH, [old]))
    assert (message.native_id, message.session, message.blocks[0].text) == (None, "S1", "Per X.")


def test_tool_calls_keep_their_id() -> None:
    (message,) = messages(run(FORMAT, PATH, [said(tool("Write", file_path="a", content="c"))]))
    assert (message.blocks[0].native_id, message.blocks[0].text) == ("toolu_Write", "c")


@pytest.mark.parametrize(
    ("relpath", "session"),
    [
        ("projects/-w/S6/subagents/workflows/wf/agent-a.jsonl", "S6"),
        ("S6/subagents/agent-a.jsonl", "S6"),
        ("projects/-w/agent-a.jsonl", "S1"),
        ("subagents/agent-a.jsonl", "S1"),
        ("projects/-w/other.jsonl", "S1"),
    ],
)
def test_a_sub_agent_belongs_to_its_trunk(relpath: str, session: str) -> None:
    (message,) = messages(run(FORMAT, relpath, [said(text("x"), isSidechain=True, agentId="a")]))
    assert message.session == session


def test_recent_files_are_those_of_the_last_ten_minutes_newest_first() -> None:
    lines = [said(tool("Read", file_path=f"/w/{index}.py"), minutes=index) for index in range(8)]
    lines += [said(tool("Grep", pattern="x", path="/w/none"), minutes=8), said(text("x"), minutes=12.5)]
    recent = messages(run(FORMAT, PATH, lines))[-1].recent
    assert [touch.path for touch in recent] == ["/w/7.py", "/w/6.py", "/w/5.py", "/w/4.py", "/w/3.py"]


def test_a_message_is_not_recent_to_itself_and_later_files_are_not_before() -> None:
    lines = [said(tool("Write", file_path="a.py", content="c"), minutes=5), said(text("x"), minutes=4)]
    assert [message.recent for message in messages(run(FORMAT, PATH, lines))] == [(), ()]


def test_relative_recent_files_are_joined_with_the_directory_of_their_time() -> None:
    lines = [said(tool("Read", file_path="a.py")), said(text("x"), minutes=1, cwd="/elsewhere")]
    assert messages(run(FORMAT, PATH, lines))[-1].recent[0].path == "/w/app/a.py"


def test_damaged_lines_are_counted_once_and_give_their_records() -> None:
    whole = line(said(text("one")))
    decoded = run(FORMAT, PATH, [b"\0" * 700, whole + line(said(text("two"))), whole[:40] + line(said(text("three")))])
    assert texts(decoded) == ["one", "two", "three"]
    assert [one.kinds.count(RecordKind.MALFORMED) for one in decoded] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("relpath", "taken"),
    [
        ("projects/-w-app/S1.jsonl", True),
        ("-w-app/S1.jsonl", True),
        ("S1.jsonl", True),
        ("projects/-w/agent-1.jsonl", True),
        ("projects/-w/S/subagents/agent-1.jsonl", True),
        ("projects/-w/S/subagents/a/b/c/agent-1.jsonl", True),
        ("-w/S/subagents/agent-1.jsonl", True),
        ("S/subagents/agent-1.jsonl", True),
        ("x/.claude/projects/-w/S.jsonl", True),
        ("history.jsonl", False),
        ("projects/x.jsonl", False),
        ("projects/-w/S/subagents/journal.jsonl", False),
        ("projects/-w/S/subagents/workflows/wf/journal.jsonl", False),
        ("projects/-w/memory/notes.jsonl", False),
        ("projects/-w/S/tool-results/x.jsonl", False),
        ("projects/-w/S1.json", False),
        ("projects/-w/.S1.jsonl", False),
        ("todos/x.jsonl", False),
        ("file-history/x.jsonl", False),
        ("projects/-w/S/subagents/agent-1.meta.json", False),
    ],
)
def test_only_transcripts_are_taken(relpath: str, taken: bool) -> None:
    assert FORMAT.file_kind(relpath) == (FileKind.LINES if taken else None)


@pytest.mark.parametrize(
    ("env", "roots"),
    [
        ({}, ["/h/.claude", "/h/.config/claude"]),
        ({"XDG_CONFIG_HOME": "/x"}, ["/h/.claude", "/x/claude"]),
        ({"CLAUDE_CONFIG_DIR": "/a, /b"}, ["/a", "/b"]),
    ],
)
def test_roots_come_from_the_environment(env: dict[str, str], roots: list[str]) -> None:
    assert FORMAT.default_roots(env, "/h") == roots


ODD: list[Json] = [
    said(text("Per X."), tool("Bash", command="echo x"), {"type": "thinking", "thinking": "so"}),
    said(text("Per X."), {"type": "text", "text": None}, {"type": "text"}, {"type": "image"}),
    said(tool("Edit", file_path="a.py", old_string="a", new_string="b"), {"type": "tool_use", "id": 7, "name": "Bash"}),
    said(text("Per X."), message_id=""),
    said(text("Per X."), isApiErrorMessage=False, requestId=None),
    {"type": "assistant", "uuid": "u", "message": {"content": "a plain text"}},
    {"type": "assistant", "timestamp": 1_780_000_000, "message": {"id": 4, "content": [text("Per X.")]}},
]


@pytest.mark.parametrize("record", ODD)
def test_a_line_that_needs_the_patient_decoder_says_the_same(record: Json) -> None:
    lone = line(record).replace(b"{", b'{"odd":"\\ud800",', 1)
    patient, quick = run(FORMAT, PATH, [lone]), run(FORMAT, PATH, [record])
    assert patient == quick
    assert messages(quick)


@pytest.mark.parametrize("extra", [{"uuid": 7}, {"cwd": None}, {"sessionId": ["S1"]}])
def test_a_value_of_another_type_costs_no_message(extra: Json) -> None:
    (message,) = messages(run(FORMAT, PATH, [said(text("Per X.")) | extra]))
    assert texts([*run(FORMAT, PATH, [said(text("Per X.")) | extra])]) == ["Per X."]
    assert message.session == "S1"


def test_items_of_a_message_that_are_no_blocks_are_passed_over() -> None:
    record = said(text("Per X."))
    record["message"]["content"].append("loose")  # type: ignore[index]
    assert texts(run(FORMAT, PATH, [record])) == ["Per X."]
