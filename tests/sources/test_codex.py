"""Codex rollouts and their traps."""

import pytest
from source_lines import NOON, at, kinds, messages, run, texts

from kbd.core.model import Author, LineCite
from kbd.sources.codex import FORMAT
from kbd.sources.contract import FileKind

THREAD = "01900000-0000-7000-8000-000000000001"
PATH = f"sessions/2026/06/10/rollout-2026-06-10T09-00-00-{THREAD}.jsonl"

Json = dict[str, object]

RANDOM_ID = "msg_68c1a7f0e2b94d3f"


def wrap(kind: str, payload: Json, minutes: float = 0) -> Json:
    return {"timestamp": at(minutes), "type": kind, "payload": payload}


def meta(thread: str = "T1", **extra: object) -> Json:
    return wrap("session_meta", {"id": thread, "cwd": "/w/app", "timestamp": at(0), **extra})


def reply(text: str, role: str = "assistant", **extra: object) -> Json:
    parts = [{"type": "output_text", "text": text}]
    return wrap("response_item", {"type": "message", "role": role, "content": parts, **extra})


def event(kind: str, **values: object) -> Json:
    return wrap("event_msg", {"type": kind, **values})


def item(kind: str, **values: object) -> Json:
    return wrap("response_item", {"type": kind, **values})


def test_a_reply_of_the_assistant_is_a_message() -> None:
    (message,) = messages(run(FORMAT, PATH, [meta(), reply("Per X.", id=RANDOM_ID)]))
    assert (message.native_id, message.session, message.at, message.cwd) == (RANDOM_ID, "T1", NOON, "/w/app")
    assert not message.renumbered


def test_an_id_that_numbers_an_item_is_its_own_with_its_time_and_words_only() -> None:
    one, other = messages(run(FORMAT, PATH, [meta(), reply("Per X.", id="msg_1"), reply("Per Y.", id="msg_1")]))
    assert one.native_id != other.native_id
    assert one.record_id == other.record_id == "msg_1"
    assert one.renumbered


@pytest.mark.parametrize(
    "record",
    [
        meta(base_instructions={"text": "T"}),
        reply("T", "user"),
        reply("T", "developer"),
        reply("T", "system"),
        item("function_call_output", output="T"),
        item("custom_tool_call_output", output=[{"type": "input_text", "text": "T"}]),
        item("agent_message", author="x", content=[{"type": "input_text", "text": "T"}]),
        item("reasoning", encrypted_content="T"),
        wrap("turn_context", {"cwd": "/w", "user_instructions": "T"}),
        wrap("world_state", {"agents_md": "T"}),
        wrap("compacted", {"message": "T", "replacement_history": [reply("T")["payload"]]}),
        wrap("inter_agent_communication", {"content": "T"}),
        event("user_message", message="T"),
        event("task_complete", last_agent_message="T"),
        event("item_completed", item={"type": "AgentMessage", "content": [{"type": "Text", "text": "T"}]}),
        event("exited_review_mode", review_output="T"),
        {"record_type": "state"},
    ],
)
def test_what_others_wrote_and_repetitions_are_left_out(record: Json) -> None:
    decoded = run(FORMAT, PATH, [record])
    assert messages(decoded) == []
    assert kinds(decoded) == ["recognised"]


@pytest.mark.parametrize("record", [wrap("new_line", {}), item("new_item"), {"x": 1}, {"type": []}])
def test_unknown_lines_are_said_to_be_unknown(record: Json) -> None:
    assert kinds(run(FORMAT, PATH, [record])) == ["unknown"]


def test_a_reply_written_three_times_is_one_message() -> None:
    lines = [meta(), event("agent_message", message="R"), reply("R"), event("task_complete", last_agent_message="R")]
    assert texts(run(FORMAT, PATH, lines)) == ["R"]


def test_files_without_items_have_their_replies_in_events() -> None:
    lines = [meta(), event("user_message", message="q"), event("agent_message", message="R"), event("user_message")]
    decoded = run(FORMAT, PATH, lines)
    assert texts(decoded) == ["R"]
    assert messages(decoded)[0].native_id is None


def test_a_reply_waits_for_the_end_of_its_turn_and_flush_shows_it() -> None:
    decoded = run(FORMAT, PATH, [meta(), event("agent_message", message="R")])
    assert texts(decoded[:-1]) == []
    assert texts(decoded[-1:]) == ["R"]


def test_the_first_versions_wrote_items_without_an_envelope() -> None:
    old = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "R"}]}
    lines = [{"id": "T0", "timestamp": at(0), "instructions": "T"}, {"record_type": "state"}, old]
    (message,) = messages(run(FORMAT, PATH, lines))
    assert (message.session, message.at, message.native_id) == ("T0", NOON, None)


ADDED = "*** Begin Patch\n*** Add File: a\n+T\n*** End Patch"


@pytest.mark.parametrize(
    ("kind", "values", "name", "written"),
    [
        ("function_call", {"name": "exec_command", "arguments": '{"cmd": "echo T"}'}, "exec_command", "echo T"),
        ("function_call", {"name": "shell", "arguments": '{"command": ["bash", "-lc", "rg T"]}'}, "shell", ""),
        ("function_call", {"name": "x", "arguments": "no json"}, "x", "no json"),
        ("function_call", {"name": "add", "namespace": "mcp__kbd__", "arguments": "{}"}, "mcp__kbd__add", ""),
        ("custom_tool_call", {"name": "apply_patch", "input": ADDED}, "apply_patch", "T"),
        ("local_shell_call", {"action": {"command": ["echo", "T"]}}, "local_shell", "echo T"),
        ("web_search_call", {"action": {"query": "T"}}, "web_search", ""),
    ],
)
def test_tool_calls_of_all_kinds(kind: str, values: Json, name: str, written: str) -> None:
    (message,) = messages(run(FORMAT, PATH, [meta(), item(kind, call_id="c", **values)]))
    (block,) = message.blocks
    assert block.call is not None
    assert (block.native_id, block.call.name, block.text.strip()) == ("c", name, written)


def test_reasoning_in_the_open_is_thinking() -> None:
    record = item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    assert messages(run(FORMAT, PATH, [record]))[0].blocks[0].author is Author.THINKING


def test_memory_citations_leave_the_text_and_come_as_lines() -> None:
    entries = "<citation_entries>\nMEMORY.md:10-14|note=[a]\n/k b/l.md:3|note=[b: 7]\n\n</citation_entries>\n"
    block = f"<oai-mem-citation>\n{entries}<rollout_ids>\n</rollout_ids>\n</oai-mem-citation>"
    (message,) = messages(run(FORMAT, PATH, [meta(), reply(f"Done.\n{block}")]))
    assert message.blocks[0].text == "Done.\n"
    assert message.cites == (LineCite("MEMORY.md", 10, 14), LineCite("/k b/l.md", 3, 3))


def test_a_reply_that_only_cites_is_a_message_and_an_open_block_ends_with_the_text() -> None:
    (message,) = messages(run(FORMAT, PATH, [reply("<oai-mem-citation>a.md:1-2")]))
    assert (message.blocks[0].text, message.cites) == ("", (LineCite("a.md", 1, 2),))


def test_only_the_first_session_meta_is_identity() -> None:
    lines = [meta("CHILD", forked_from_id="PARENT"), meta("PARENT", cwd="/other"), reply("R")]
    (message,) = messages(run(FORMAT, PATH, lines))
    assert (message.session, message.cwd, message.copied_from) == ("CHILD", "/w/app", ("PARENT",))


@pytest.mark.parametrize(
    "extra",
    [
        {"session_id": "PARENT"},
        {"parent_thread_id": "PARENT"},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "PARENT"}}}},
    ],
)
def test_a_sub_agent_belongs_to_its_trunk_and_declares_its_lineage(extra: Json) -> None:
    (message,) = messages(run(FORMAT, PATH, [meta("CHILD", **extra), reply("R")]))
    assert (message.session, message.copied_from) == ("PARENT", ("PARENT",))


def test_without_a_header_the_file_name_says_the_thread() -> None:
    assert messages(run(FORMAT, PATH, [reply("R")]))[0].session == THREAD


def test_the_directory_is_that_of_the_turn() -> None:
    lines = [meta(), wrap("turn_context", {"cwd": "/w/b"}), reply("R")]
    assert messages(run(FORMAT, PATH, lines))[0].cwd == "/w/b"


@pytest.mark.parametrize(
    ("relpath", "kind"),
    [
        (PATH, FileKind.LINES),
        (f"archived_sessions/rollout-x-{THREAD}.jsonl", FileKind.LINES),
        (f"archived_sessions/rollout-x-{THREAD}.jsonl.zst", FileKind.ZSTD),
        (f"rollout-x-{THREAD}.jsonl", FileKind.LINES),
        ("history.jsonl", None),
        ("session_index.jsonl", None),
        ("sessions/rollout-compress-1.tmp", None),
        ("sessions/rollout-compress-1.jsonl", None),
        ("logs_1.sqlite", None),
    ],
)
def test_only_rollouts_are_taken(relpath: str, kind: FileKind | None) -> None:
    assert FORMAT.file_kind(relpath) is kind


def test_roots_come_from_the_environment() -> None:
    assert FORMAT.default_roots({}, "/h") == ["/h/.codex"]
    assert FORMAT.default_roots({"CODEX_HOME": "/c"}, "/h") == ["/c"]
