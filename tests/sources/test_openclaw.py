"""OpenClaw's and Pi's session files."""

import pytest
from source_lines import NOON, at, kinds, messages, run, texts

from kbd.core.model import Author
from kbd.sources import openclaw, pi
from kbd.sources.contract import FileKind

FORMAT = openclaw.FORMAT
PATH = "agents/main/sessions/O1.jsonl"

Json = dict[str, object]


def header(**extra: object) -> Json:
    return {"type": "session", "version": 3, "id": "O1", "timestamp": at(0), "cwd": "/w/app", **extra}


def entry(content: object, role: str = "assistant", entry_id: str = "00000002", **extra: object) -> Json:
    message = {"role": role, "content": content, **extra}
    return {"type": "message", "id": entry_id, "timestamp": at(1), "message": message}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(name: str, **arguments: object) -> Json:
    return {"type": "toolCall", "id": "c1", "name": name, "arguments": arguments, "partialArgs": '{"content": "T"}'}


def test_prose_of_the_assistant_is_a_message_known_by_id_and_time() -> None:
    (message,) = messages(run(FORMAT, PATH, [header(), entry([text("R")])]))
    assert (message.session, message.cwd, message.record_id) == ("O1", "/w/app", "00000002")
    assert message.native_id == f"00000002@{at(1)}"


@pytest.mark.parametrize(
    "record",
    [
        header(),
        entry([text("T")], "user"),
        entry([text("T")], "toolResult"),
        entry([text("T")], "bashExecution"),
        entry([text("T")], "system"),
        entry([text("T")], model="delivery-mirror"),
        {"type": "compaction", "id": "1", "timestamp": at(0), "summary": "T"},
        {"type": "branch_summary", "id": "1", "timestamp": at(0), "summary": "T"},
        {"type": "custom_message", "id": "1", "timestamp": at(0), "content": "T"},
        {"type": "custom", "id": "1", "timestamp": at(0), "data": "T"},
    ],
)
def test_what_others_wrote_is_left_out(record: Json) -> None:
    decoded = run(FORMAT, PATH, [record])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize(("kind", "key"), [("toolUse", "input"), ("tool_use", "input"), ("functionCall", "arguments")])
def test_a_call_under_another_name_is_a_call(kind: str, key: str) -> None:
    part = {"type": kind, "id": "c1", "name": "write", key: {"path": "a.py", "content": "R"}}
    assert texts(run(FORMAT, PATH, [header(), entry([part])])) == ["R"]


def test_unknown_types_are_said_to_be_unknown() -> None:
    assert kinds(run(FORMAT, PATH, [{"type": "new"}, {"x": 1}])) == ["unknown", "unknown"]


def test_arguments_count_once_and_thinking_is_its_own_class() -> None:
    content = [{"type": "thinking", "thinking": "hm", "thinkingSignature": "T"}, call("write", path="a", content="c")]
    (message,) = messages(run(FORMAT, PATH, [entry(content)]))
    assert [(block.author, block.text) for block in message.blocks] == [
        (Author.THINKING, "hm"),
        (Author.AGENT_TOOL_INPUT, "c"),
    ]
    assert message.blocks[1].native_id == f"{message.native_id}:c1"


def test_a_reused_file_name_gives_other_ids() -> None:
    old, new = entry([text("R")]), {**entry([text("S")]), "timestamp": at(2)}
    ids = [message.native_id for message in messages(run(FORMAT, PATH, [old, new]))]
    assert len(set(ids)) == 2


def test_epoch_milliseconds_serve_where_the_entry_has_no_time() -> None:
    message = {"role": "assistant", "content": "R", "timestamp": 1781092800000}
    (message,) = messages(run(FORMAT, PATH, [{"type": "message", "id": "1", "message": message}]))
    assert (message.at, message.native_id) == (NOON, None)


@pytest.mark.parametrize("origin", ["P1", "/h/sessions/P1.jsonl", "/h/2026-01-01_P1.jsonl", {"id": "P1"}])
def test_a_copied_beginning_is_declared(origin: object) -> None:
    lines = [header(parentSession=origin), entry([text("R")])]
    assert messages(run(FORMAT, PATH, lines))[0].copied_from == ("P1",)


def test_the_first_header_is_identity_and_the_file_name_serves_without() -> None:
    lines = [header(), {**header(), "id": "O2", "cwd": "/x"}, entry([text("R")])]
    assert messages(run(FORMAT, PATH, lines))[0].session == "O1"
    assert messages(run(FORMAT, PATH + ".reset.2026", [entry([text("R")])]))[0].session == "O1"


@pytest.mark.parametrize(
    ("relpath", "taken"),
    [
        (PATH, True),
        ("sessions/O1.jsonl", True),
        ("O1.jsonl", True),
        (PATH + ".reset.2026-06-11T00-00-00.000Z", True),
        (PATH + ".deleted.2026", True),
        ("agents/main/sessions/O1-topic-3.jsonl", True),
        ("agents/main/sessions/O1.checkpoint.11-22.jsonl", False),
        ("agents/main/sessions/O1.trajectory.jsonl", False),
        ("agents/main/sessions/O1.trajectory-path.json", False),
        ("agents/main/sessions/sessions.json", False),
        ("agents/main/sessions/O1.jsonl.lock", False),
        ("logs/x.jsonl", False),
    ],
)
def test_copies_and_stores_are_not_taken(relpath: str, taken: bool) -> None:
    assert FORMAT.file_kind(relpath) == (FileKind.LINES if taken else None)


@pytest.mark.parametrize(
    ("relpath", "taken"),
    [
        ("agent/sessions/--w-app--/2026_u.jsonl", True),
        ("--w-app--/2026_u.jsonl", True),
        ("2026_u.jsonl", True),
        ("sessions/--w--/subagent-artifacts/a_transcript.jsonl", False),
        ("sessions/--w--/run-0/session.jsonl", False),
        ("sessions/--w--/forks/x.jsonl", False),
        ("agent/settings.json", False),
    ],
)
def test_pi_keeps_its_sessions_in_folders_of_their_own(relpath: str, taken: bool) -> None:
    assert pi.FORMAT.file_kind(relpath) == (FileKind.LINES if taken else None)


def test_pi_decodes_alike() -> None:
    decoded = run(pi.FORMAT, "--w--/2026-06-10_U1.jsonl", [entry([text("R")])])
    assert texts(decoded) == ["R"]
    assert messages(decoded)[0].session == "U1"


def test_roots_come_from_the_environment() -> None:
    assert FORMAT.default_roots({"OPENCLAW_STATE_DIR": "/o"}, "/h") == ["/o"]
    assert FORMAT.default_roots({}, "/h")[:2] == ["/h/.openclaw", "/h/.clawdbot"]
    assert pi.FORMAT.default_roots({}, "/h") == ["/h/.pi/agent"]
