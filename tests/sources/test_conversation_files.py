"""Agents that rewrite a whole file for each message, and their traps: Cline, Roo Code, Continue."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_lines import NOON, kinds, messages, run

from kbd.core.model import Author, Decoded, Message
from kbd.sources import cline, roo
from kbd.sources.contract import CompanionFormat, FileKind, SourceFormat
from kbd.sources.registry import formats
from kbd.sources.xmlcalls import split_calls

Json = dict[str, object]

CONTINUE = formats()["continue"]  # no import statement takes a keyword for a module's name

TS = 1781092800000
TASK = f"tasks/{TS}/api_conversation_history.json"
SESSION = "sessions/K1/K1.messages.json"
CONTINUED = "sessions/N1.json"


def assistant(text: str = "R", **extra: object) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], **extra}


def user(text: str = "T", **extra: object) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}], **extra}


def read(source: SourceFormat, relpath: str, *documents: object) -> list[Message]:
    return messages(run(source, relpath, [json.dumps(documents).encode()]))


def task(*turns: object) -> list[Message]:
    return read(cline.FORMAT, TASK, list(turns))


def session(turns: list[Json], manifest: Json | None = None, folder: str = "K1", **extra: object) -> list[Message]:
    document = {"version": 1, "sessionId": folder, "messages": turns, **extra}
    return read(cline.FORMAT, f"sessions/{folder}/{folder}.messages.json", document, manifest)


def continued(*steps: Json, index: object = None) -> list[Message]:
    document = {"sessionId": "N1", "workspaceDirectory": "file:///w/app", "history": list(steps)}
    return read(CONTINUE, CONTINUED, document, index)


def texts(found: list[Message]) -> list[str]:
    return [block.text for message in found for block in message.blocks if block.text]


@pytest.mark.parametrize("source", [cline.FORMAT, roo.FORMAT])
def test_a_task_is_a_list_of_turns(source: SourceFormat) -> None:
    turns = [user("# Current Workspace Directory (/w/app) Files\nT", ts=TS), assistant(ts=TS)]
    (message,) = read(source, TASK, turns)
    assert (texts([message]), message.session, message.cwd, message.at) == (["R"], str(TS), "/w/app", NOON)


def test_a_session_names_itself_and_its_messages() -> None:
    (message,) = session([user(), assistant(id="n2", ts=TS)], {"cwd": "/w/app"})
    assert (message.session, message.cwd, message.record_id) == ("K1", "/w/app", "n2")
    assert message.native_id == f"n2@{NOON.isoformat()}"


@pytest.mark.parametrize(
    "turn",
    [
        user(),
        user("[subagents] Result: T"),
        {"role": "user", "content": [{"type": "tool_result", "content": "T"}]},
        assistant("T", isSummary=True),
        assistant("T", isTruncationMarker=True),
        {"type": "reasoning", "encrypted_content": "T"},
    ],
)
def test_what_others_wrote_and_summaries_are_left_out(turn: Json) -> None:
    assert task(turn) == []


def test_messages_hidden_by_a_summary_were_said_once_for_all() -> None:
    assert texts(task(assistant(ts=1, condenseParent="x"), assistant("S", ts=2, truncationParent="y"))) == ["R", "S"]


def names(found: list[Message]) -> list[str | None]:
    return [message.native_id for message in found]


@pytest.mark.parametrize("times", [True, False])
def test_a_rewritten_file_gives_the_same_names(times: bool) -> None:
    turns = [user("a"), assistant(), user("b"), assistant("S"), user("c"), assistant("U")]
    turns = [{**turn, "ts": TS + index} if times else turn for index, turn in enumerate(turns)]
    whole = names(task(*turns))
    assert len(set(whole)) == 3
    assert names(task(*turns[:4])) == whole[:2]
    assert names(task(*turns[:3], {**turns[3], "content": "S and more"}))[1] == whole[1]


def test_another_answer_to_another_question_is_another_message() -> None:
    first, second = task(user("a"), assistant()), task(user("b"), assistant())
    assert names(first) != names(second)


def test_two_messages_of_one_moment_are_two() -> None:
    assert len(set(names(task(assistant(ts=TS), assistant("S", ts=TS))))) == 2


@pytest.mark.parametrize("given", [{"id": "n2", "ts": TS}, {"ts": TS}, {"id": "0123456789abcdef"}])
def test_a_fork_repeats_the_names_of_its_origin(given: Json) -> None:
    fork = {"metadata": {"fork": {"forkedFromSessionId": "K1"}}}
    (copied,) = session([assistant(**given)], fork, folder="K2")
    assert names([copied]) == names(session([assistant(**given)]))
    assert copied.copied_from == ("K1",)


def test_untimed_messages_take_the_time_above_or_of_the_task() -> None:
    found = task(assistant(), user(ts=TS + 60_000), assistant("S"))
    assert [message.at.minute for message in found if message.at] == [0, 1]


def test_torn_and_foreign_documents_say_so() -> None:
    assert kinds(run(cline.FORMAT, TASK, [b'[[{"role":'])) == ["malformed"]
    assert kinds(run(cline.FORMAT, TASK, [b'[{"x": 1}]'])) == ["unknown"]
    assert kinds(run(roo.FORMAT, TASK, [b"[1]"])) == ["unknown"]
    assert kinds(run(CONTINUE, CONTINUED, [b"[{}]"])) == ["unknown"]


WRITE = "<write_to_file>\n<path>src/a.py</path>\n<content>\nN <b> </content> N\n</content>\n</write_to_file>"


def test_calls_in_the_text_are_calls() -> None:
    (message,) = task(assistant(f"R first.\n\n{WRITE}\nand last"))
    assert [(block.author, block.text.strip()) for block in message.blocks] == [
        (Author.AGENT_TEXT, "R first."),
        (Author.AGENT_TOOL_INPUT, "N <b> </content> N"),
        (Author.AGENT_TEXT, "and last"),
    ]
    call = message.blocks[1].call
    assert call is not None
    assert (call.whole_file, [touch.path for touch in call.touched]) == (True, ["src/a.py"])


XML = [
    ("<read_file>\n<path>T.md</path>\n</read_file>", "", "T.md"),
    ("<read_file><args><file><path>T.md</path></file></args></read_file>", "", "T.md"),
    ("<search_files><path>src</path><regex>T</regex></search_files>", "", "src"),
    ("<execute_command>\n<command>echo N</command>\n</execute_command>", "echo N", None),
    ("<execute_command><command>cat T.md</command></execute_command>", "", "T.md"),
    ("<apply_diff><path>a.py</path><diff>\n<<<<<<< SEARCH\nT\n=======\nN\n>>>>>>> REPLACE\n</diff></apply_diff>",
     "N", "a.py"),
    ("<attempt_completion>\n<result>N</result>\n</attempt_completion>", "N", None),
    ("<write_to_file><path>a.py</path><content>N", "N", "a.py"),
    ("<use_mcp_tool><server_name>kbd</server_name><tool_name>search</tool_name><arguments>{\"query\":\"T\"}</arguments>"
     "</use_mcp_tool>", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "written", "path"), XML)
def test_a_call_in_the_text_follows_the_rules_of_calls(text: str, written: str, path: str | None) -> None:
    (block,) = split_calls(text)
    assert block.call is not None
    assert block.text.strip() == written
    assert [touch.path for touch in block.call.touched] == ([path] if path else [])


@pytest.mark.parametrize(
    "text", ["Use <b>bold</b>.", "see <my_tag> here", "<div>\n<p>R</p></div>", "a\n<not_closed", "<a_b>text</a_b>"]
)
def test_other_markup_is_prose(text: str) -> None:
    assert [block.author for block in split_calls(text)] == [Author.AGENT_TEXT]


def test_marked_thinking_is_thinking() -> None:
    assert [block.author for block in split_calls("<thinking>hm</thinking>\nR")] == [Author.THINKING, Author.AGENT_TEXT]


def test_native_calls_and_those_of_servers_are_read_alike() -> None:
    content = [
        {"type": "tool_use", "id": "t1", "name": "write_to_file", "input": {"path": "a.py", "content": "N"}},
        {"type": "tool_use", "id": "t2", "name": "use_mcp_tool", "input": {"server_name": "kbd", "tool_name": "search",
                                                                         "arguments": '{"query": "T"}'}},
    ]  # fmt: skip
    (message,) = task({"role": "assistant", "content": content})
    assert [(block.native_id, block.text) for block in message.blocks] == [("t1", "N"), ("t2", "")]
    assert message.blocks[1].call is not None
    assert message.blocks[1].call.own


CALLS = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "create_new_file", "arguments": '{"filepath":"a","contents":"N"}'},
    }
]


def test_continue_keeps_replies_and_calls() -> None:
    steps = [
        {
            "message": {"role": "user", "content": "T"},
            "contextItems": [{"content": "T"}],
            "promptLogs": [{"prompt": "T"}],
        },
        {"message": {"role": "thinking", "content": "hm"}},
        {"message": {"role": "assistant", "content": "R", "toolCalls": CALLS}, "toolCallStates": [{"output": ["T"]}]},
        {"message": {"role": "tool", "content": "T"}},
        {"message": {"role": "assistant", "content": [{"type": "text", "text": "S"}]}, "conversationSummary": "T"},
    ]
    found = continued(*steps)
    assert texts(found) == ["hm", "R", "N", "S"]
    assert {(message.session, message.cwd, message.at) for message in found} == {("N1", "/w/app", None)}
    assert len(set(names(found))) == 3


def test_the_index_tells_when_a_session_began() -> None:
    index = [{"sessionId": "N0", "dateCreated": "1"}, {"sessionId": "N1", "dateCreated": str(TS)}]
    step = {"message": {"role": "assistant", "content": "R"}}
    assert continued(step, index=index)[0].at == NOON
    assert names(continued(step, index=index)) == names(continued(step))


PATHS = [
    (cline.FORMAT, TASK, True),
    (cline.FORMAT, SESSION, True),
    (cline.FORMAT, f"tasks/{TS}/ui_messages.json", False),
    (cline.FORMAT, f"tasks/{TS}/task_metadata.json", False),
    (cline.FORMAT, "sessions/K1/K1.json", False),
    (cline.FORMAT, SESSION + ".tmp", False),
    (roo.FORMAT, TASK, True),
    (roo.FORMAT, "tasks/x/.api_conversation_history.json.new_1.tmp", False),
    (roo.FORMAT, "tasks/x/history_item.json", False),
    (CONTINUE, CONTINUED, True),
    (CONTINUE, "N1.json", True),
    (CONTINUE, "sessions/sessions.json", False),
    (CONTINUE, "sessions.json", False),
    (CONTINUE, "config.yaml", False),
]  # fmt: skip


@pytest.mark.parametrize(("source", "relpath", "taken"), PATHS)
def test_files_are_taken_by_name(source: SourceFormat, relpath: str, taken: bool) -> None:
    assert source.file_kind(relpath) is (FileKind.DOCUMENT if taken else None)


def test_companions_are_named_once() -> None:
    assert isinstance(CONTINUE, CompanionFormat)
    assert cline.FORMAT.companions(SESSION, [b""]) == ("sessions/K1/K1.json",)
    assert cline.FORMAT.companions(SESSION, [b"", b""]) == ()
    assert cline.FORMAT.companions(TASK, [b""]) == ()
    assert CONTINUE.companions(CONTINUED, [b""]) == ("sessions/sessions.json",)
    assert CONTINUE.companions("N1.json", [b""]) == ("sessions.json",)
    assert CONTINUE.companions("s[a]/N1.json", [b""]) == ()


def test_roots_are_those_of_the_editors_and_the_environment() -> None:
    assert cline.FORMAT.default_roots({"CLINE_DIR": "/c"}, "/h")[0] == "/c/data"
    assert cline.FORMAT.default_roots({}, "/h")[0] == "/h/.cline/data"
    assert "/h/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline" in roo.FORMAT.default_roots({}, "/h")
    assert CONTINUE.default_roots({"CONTINUE_GLOBAL_DIR": "/n"}, "/h") == ["/n/sessions"]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats()
    | st.sampled_from([WRITE, "assistant", "text", "R", "<a_b><c>"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "content", "type", "text", "ts", "id", "messages", "history", "message", "input",
                         "metadata", "sessionId", "toolCalls", "name", "fork", "cwd"]), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150)
@given(ODD | st.lists(st.fixed_dictionaries({"role": st.just("assistant"), "content": ODD})), ODD)
def test_no_document_is_too_odd(document: object, beside: object) -> None:
    for source, relpath in ((cline.FORMAT, TASK), (roo.FORMAT, TASK), (CONTINUE, CONTINUED)):
        for shape in (document, [document, beside]):
            for decoded in run(source, relpath, [json.dumps(shape).encode()]):
                assert isinstance(decoded, Decoded)
                assert all(message.blocks for message in decoded.messages)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(["<a_b>", "<path>", "</path>", "</a_b>", "<thinking>", "x\n", "<content>"]), max_size=12)
)
def test_no_markup_loses_words(pieces: list[str]) -> None:
    text = "R" + "".join(pieces)
    assert "R" in "".join(block.text for block in split_calls(text))


@pytest.mark.parametrize("piece", ["\n<a_b><c>", "<a_b>\n", "\n<thinking>", "\n<a_b><content></content>", " <a_a"])
def test_markup_is_read_in_linear_time(piece: str) -> None:
    assert list(split_calls("\n" + piece * 40_000))
