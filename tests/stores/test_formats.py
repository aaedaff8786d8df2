"""Decoders of agents that keep rows: stopping anywhere changes nothing, no value is too odd, files of each session."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.model import Author, Decoded, Message, Record, RecordKind, TouchMode
from kbd.sources.contract import FileKind
from kbd.sources.registry import formats

OBSERVED = datetime(2026, 6, 10, tzinfo=UTC)
AGENTS = ["opencode", "goose", "hermes"]
BACKOFF = "Backoff must be capped"


def run(agent, rows, stops=frozenset()) -> list[Decoded]:
    source = formats()[agent]
    decoder = source.decoder("x.db", None)
    decoded = []
    for index, row in enumerate(rows):
        data = row if isinstance(row, bytes) else json.dumps(row).encode()
        decoded.append(decoder.feed(Record(index + 1, data), OBSERVED))
        if index in stops:
            decoder = source.decoder("x.db", decoder.state())
    return [*decoded, decoder.flush()]


def messages(decoded: list[Decoded]) -> list[Message]:
    return [message for one in decoded for message in one.messages]


def opencode(session, role, at, words, kind="text"):
    part = {"type": kind, "text": words, "tool": "read", "callID": "c", "state": {"input": {"filePath": words}}}
    row = {
        "table": "part",
        "id": f"p{at}",
        "message": f"m{at}",
        "session": session,
        "role": role,
        "at": at,
        "began": at,
    }
    return row | {"data": json.dumps(part), "cwd": "/w", "root": session}


def goose(session, role, at, words, kind="text"):
    call = {"type": "toolRequest", "toolCall": {"value": {"name": "read", "arguments": {"path": words}}}}
    content = [{"type": "text", "text": words}] if kind == "text" else [call]
    return {
        "table": "messages",
        "session": session,
        "role": role,
        "at": at,
        "content": json.dumps(content),
        "cwd": "/w",
    }


def hermes(session, role, at, words, kind="text"):
    call = {"function": {"name": "read", "arguments": json.dumps({"path": words})}}
    calls = json.dumps([call]) if kind != "text" else None
    row = {"table": "messages", "session": session, "role": role, "at": at, "content": words, "calls": calls}
    return row | {"cwd": "/w", "root": session}


MAKE = {"opencode": opencode, "goose": goose, "hermes": hermes}
WORDS = [BACKOFF, "a.md", "", "Review the conversation above and update the skill library now", "[CONTEXT SUMMARY]: x"]
TIMES = [1781082000 + seconds for seconds in (0, 1, 500, 700, 99_999)]


def rows_of(agent: str) -> st.SearchStrategy[object]:
    given_as = [["s", "t", "u"], ["assistant", "assistant", "user", "system"], TIMES, WORDS, ["text", "tool"]]
    return st.builds(MAKE[agent], *map(st.sampled_from, given_as))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def odd_rows(draw: st.DrawFn, agent: str) -> object:
    """Draw a row one of whose fields holds anything, or whose JSON text does."""
    row = dict(draw(rows_of(agent)))
    value = draw(JSON)
    return row | {draw(st.sampled_from(sorted(row))): draw(st.sampled_from([value, json.dumps(value)]))}


@pytest.mark.parametrize("agent", AGENTS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_stopping_anywhere_changes_nothing(agent, data):
    rows = data.draw(st.lists(rows_of(agent) | odd_rows(agent), max_size=12))
    assert run(agent, rows, data.draw(st.frozensets(st.integers(0, 11)))) == run(agent, rows)


@pytest.mark.parametrize("agent", AGENTS)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_row_is_too_odd(agent, data):
    rows = data.draw(st.lists(odd_rows(agent) | st.binary(max_size=20), max_size=4))
    for message in messages(run(agent, rows)):
        assert message.blocks
        assert message.at is None or message.at.tzinfo is UTC


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "row", [b"", b"[]", b"[[]]", b"[null,1]", b"{}", b"7", b"{" * 9999, b'{"data":' + b"[" * 999, b"\xff"]
)
def test_odd_records_give_nothing(agent, row):
    assert messages(run(agent, [row])) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_state_stays_small(agent):
    decoder = formats()[agent].decoder("x.db", None)
    for index in range(2000):
        row = MAKE[agent](f"s{index % 300}", "assistant", 1781082000 + index, f"f{index}.md", "tool")
        decoder.feed(Record(index, json.dumps(row).encode()), OBSERVED)
    assert len(decoder.state()) < 60_000


@pytest.mark.parametrize("agent", AGENTS)
def test_files_are_those_of_the_same_session(agent):
    make = MAKE[agent]
    rows = [make("s", "assistant", TIMES[0], "a.md", "tool"), make("t", "assistant", TIMES[1], BACKOFF)]
    rows.append(make("s", "assistant", TIMES[2], BACKOFF))
    found = [[(touch.path, touch.mode) for touch in message.recent] for message in messages(run(agent, rows))]
    assert found == [[], [], [("/w/a.md", TouchMode.READ)]]


@pytest.mark.parametrize(
    ("agent", "path", "kind"),
    [
        ("opencode", "opencode.db", FileKind.DATABASE),
        ("opencode", "opencode-dev.db", FileKind.DATABASE),
        ("opencode", "opencode.db-wal", None),
        ("opencode", "other.db", None),
        ("opencode", "storage/part/msg_1/prt_1.json", FileKind.DOCUMENT),
        ("opencode", "part/msg_1/prt_1.json", FileKind.DOCUMENT),
        ("opencode", "storage/message/ses_1/msg_1.json", None),
        ("opencode", "storage/session_diff/ses_1.json", None),
        ("opencode", "storage/part/msg_1/.prt_1.json", None),
        ("goose", "sessions.db", FileKind.DATABASE),
        ("goose", "sessions/sessions.db", FileKind.DATABASE),
        ("goose", "sessions/20250101_1.jsonl", FileKind.LINES),
        ("goose", "logs/cli/20250101_1.jsonl", None),
        ("hermes", "state.db", FileKind.DATABASE),
        ("hermes", "profiles/x/state.db", FileKind.DATABASE),
        ("hermes", "sessions/session_1.json", FileKind.DOCUMENT),
        ("hermes", "sessions/sessions.json", None),
        ("hermes", "kanban.db", None),
    ],
)
def test_names_that_are_transcripts(agent, path, kind):
    assert formats()[agent].file_kind(path) is kind


@pytest.mark.parametrize(
    ("agent", "path", "database"),
    [
        ("goose", "sessions/20250101_1.jsonl", "sessions/sessions.db"),
        ("goose", "20250101_1.jsonl", "sessions.db"),
        ("goose", "sessions/sessions.db", None),
        ("hermes", "profiles/x/sessions/session_1.json", "profiles/x/state.db"),
        ("hermes", "session_1.json", "../state.db"),
        ("hermes", "state.db", None),
    ],
)
def test_an_old_session_names_the_database_that_took_it_over(agent, path, database):
    assert formats()[agent].superseded_by(path) == database


@pytest.mark.parametrize("above", ["", "storage/", "apart/storage/", "part/x/storage/"])
def test_companions_of_an_old_part_lie_beside_its_folder(above):
    part, message = b'{"messageID": "xpart", "sessionID": "s"}', b'{"role": "assistant"}'
    source, path = formats()["opencode"], f"{above}part/xpart/p.json"
    assert source.companions(path, [part]) == (f"{above}message/s/xpart.json",)
    assert source.companions(path, [part, message]) == (f"{above}session/*/s.json",)
    assert source.companions(path, [part, message, b'{"parentID": "t"}']) == (f"{above}session/*/t.json",)
    assert source.companions(path, [part, message, b"null"]) == ()


def test_default_roots_follow_the_environment():
    def roots(agent, **env):
        return formats()[agent].default_roots(env, "/h")

    assert roots("opencode") == ["/h/.local/share/opencode"]
    assert roots("opencode", XDG_DATA_HOME="/x") == ["/x/opencode"]
    assert roots("goose", GOOSE_PATH_ROOT="/g") == ["/g/data/sessions"]
    assert roots("goose")[0] == "/h/.local/share/goose/sessions"
    assert roots("hermes") == ["/h/.hermes"]
    assert roots("hermes", HERMES_HOME="/e") == ["/e"]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "text", "text": BACKOFF}, RecordKind.MESSAGE),
        ({"type": "text", "text": BACKOFF, "synthetic": True}, RecordKind.RECOGNISED),
        ({"type": "text", "text": " "}, RecordKind.RECOGNISED),
        ({"type": "step-finish"}, RecordKind.RECOGNISED),
        ({"type": "hologram", "text": BACKOFF}, RecordKind.UNKNOWN),
        ({"text": BACKOFF}, RecordKind.UNKNOWN),
        ([BACKOFF], RecordKind.MALFORMED),
    ],
)
def test_opencode_parts_by_type(part, kind):
    row = opencode("s", "assistant", TIMES[0], "") | {"data": json.dumps(part)}
    assert run("opencode", [row])[0].kinds == (kind,)


def test_opencode_tool_input_counts_and_its_output_does_not():
    state = {
        "input": {"command": f"echo '{BACKOFF}'"},
        "output": "Store timestamps in UTC",
        "metadata": {"output": "x"},
    }
    part = {"type": "tool", "tool": "bash", "callID": "c9", "state": state}
    (message,) = messages(run("opencode", [opencode("s", "assistant", TIMES[0], "") | {"data": json.dumps(part)}]))
    assert [(block.author, block.text, block.native_id) for block in message.blocks] == [
        (Author.AGENT_TOOL_INPUT, f"echo {BACKOFF}", "c9")
    ]


def test_message_has_the_time_at_which_it_began_and_its_part_the_files_before_it():
    late = opencode("s", "assistant", TIMES[2], BACKOFF) | {"began": TIMES[0], "message": "m"}
    (message,) = messages(run("opencode", [late]))
    assert (message.native_id, message.at) == ("m", datetime.fromtimestamp(TIMES[0], UTC))


def test_curator_has_the_word_in_its_own_session_only():
    review = "Review the conversation above and consider saving to memory: …"
    rows = [hermes("s", "user", TIMES[0], review), hermes("t", "assistant", TIMES[0], BACKOFF)]
    rows += [hermes("s", "assistant", TIMES[1], BACKOFF), hermes("s", "user", TIMES[2], "go on")]
    rows.append(hermes("s", "assistant", TIMES[3], BACKOFF))
    assert [message.thread for message in messages(run("hermes", rows))] == ["t", "s"]
