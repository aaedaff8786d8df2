"""`kbd hook` run as the clients run it: a process, an event on stdin, an envelope on stdout, exit code 0."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.cli.shelves import read
from tests.cli.world import World

START = {
    "session_id": "S1",
    "transcript_path": "/t/S1.jsonl",
    "cwd": "/",
    "hook_event_name": "SessionStart",
    "source": "startup",
}
PROMPT = START | {"hook_event_name": "UserPromptSubmit", "permission_mode": "default"}
ENVELOPE = {"hookSpecificOutput"}
SPECIFIC = {"hookEventName", "additionalContext"}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """A world that is read once and only looked at."""
    return read(World(tmp_path_factory.mktemp("kb")))


def command(world, *args):
    return [sys.executable, "-m", "kbd", *world.options(), "hook", *args]


def client(world, event, given, **env):
    """Send an event as a client does; return what it would add to the session, "" for nothing."""
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    environment = {**os.environ, "HOME": str(world.root / "home"), **env}
    done = subprocess.run(
        command(world, event), input=data, capture_output=True, env=environment, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        return ""
    # Both clients refuse keys that they do not know.
    told = json.loads(done.stdout)
    assert set(told) == ENVELOPE
    assert set(told["hookSpecificOutput"]) == SPECIFIC
    assert told["hookSpecificOutput"]["hookEventName"] == (
        "SessionStart" if event == "session-start" else "UserPromptSubmit"
    )
    assert len(done.stdout.decode()) <= 9_500
    return told["hookSpecificOutput"]["additionalContext"]


def told(world, event, given):
    """Return what a client gets that waits its turn: on a machine busy with tests the time limit may strike first."""
    return next(filter(None, (client(world, event, given) for _ in range(6))), "")


def test_session_start_gets_what_context_prints(kb):
    assert told(kb, "session-start", START) == kb.run("context").stdout


@pytest.mark.parametrize("source", ["resume", "clear", "something new"])
def test_other_beginnings_get_it_too(kb, source):
    assert "Store timestamps" in told(kb, "session-start", START | {"source": source})


def test_compaction_is_not_told_again(kb):
    assert client(kb, "session-start", START | {"source": "compact"}) == ""


def test_prompt_gets_only_what_it_calls_for(kb):
    text = told(kb, "prompt", PROMPT | {"prompt": "Why is the lock fd leaked again?"})
    assert "Lock fd leaked" in text
    assert "Store timestamps" not in text


def test_prompt_that_names_a_file_gets_its_lessons(world):
    read(world, log="2026-06-10 10:00 fixed src/net.py: Store timestamps in UTC, I said\n")
    assert "Store timestamps" in told(world, "prompt", PROMPT | {"prompt": "please look at src/net.py"})


@pytest.mark.parametrize("prompt", ["hello", "", "   ", "?!", "\u2603", None, 7])
def test_prompt_that_calls_for_nothing_gets_nothing(kb, prompt):
    assert client(kb, "prompt", PROMPT | {"prompt": prompt}) == ""


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"cwd": 3, "source": []}', b"[" * 100_000])
def test_odd_input_never_fails_a_session(kb, given):
    client(kb, "session-start", given)
    assert client(kb, "prompt", given) == ""


@pytest.mark.parametrize("args", [(), ("nonsense",), ("prompt", "--bogus"), ("session-start", "--json", "x")])
def test_wrong_use_never_keeps_a_prompt_from_being_sent(kb, args):
    done = subprocess.run(command(kb, *args), input=b"{}", capture_output=True, timeout=20, check=False)
    assert done.returncode == 0


def test_a_hook_of_another_name_is_told_on_stderr(kb):
    done = subprocess.run(command(kb, "session-end"), input=b"{}", capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"kbd: no hook is named 'session-end'; known: session-start, prompt\n"


def test_broken_configuration_never_fails_a_session(world):
    (world.root / "config.yaml").write_text("bases: [")
    assert client(world, "session-start", START) == ""


def test_damaged_ledger_never_fails_a_session(world):
    read(world)
    (world.state / "ledger.db").write_bytes(b"no database" * 1000)
    assert client(world, "session-start", START) == ""


def test_nothing_read_yet_is_silence(world):
    done = subprocess.run(command(world, "session-start"), input=b"{}", capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_input_that_never_ends_is_left_after_the_limit(kb):
    started = time.monotonic()
    with subprocess.Popen(command(kb, "prompt"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiting:
        assert waiting.wait(timeout=20) == 0
        assert waiting.stdout.read() == b""
    assert time.monotonic() - started < 10  # 1.5 s on an idle machine; the suite shares it


@pytest.mark.parametrize("body", ["plain words of some length " * 6, '引号"和反斜杠\\以及中文' * 12])
def test_long_knowledge_is_cut_by_rank(world, body):
    lines = [f"- [pitfall] **Lesson {n} of a long list** — {body} (2026-06-{1 + n % 10:02d})\n" for n in range(120)]
    read(world, "# Lessons\n\n" + "".join(lines))
    text = told(world, "session-start", START)
    order = [one["handle"] for one in world.answer("context", "--budget", "1000000")["entries"]]
    handles = [line[3:11] for line in text.splitlines() if line.startswith("- [k-")]
    assert 5 < len(handles) < 60
    assert handles == order[: len(handles)]
    assert text.endswith("<!-- /kbd -->\n")


def test_the_limit_of_characters_holds_where_tokens_would_allow_more(world):
    lines = [f"- [pitfall] **Lesson {n} of spaces** — {'- ' * 200}(2026-06-01)\n" for n in range(60)]
    read(world, "# Lessons\n\n" + "".join(lines))
    assert len(told(world, "session-start", START)) > 0


def test_hooks_files_call_commands_that_exist(kb):
    root = os.path.join(os.path.dirname(__file__), "..", "..", "integrations")
    for path in ("claude-code/hooks/hooks.json", "codex/hooks.json"):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            hooks = json.load(file)["hooks"]
        assert set(hooks) == {"SessionStart", "UserPromptSubmit"}
        for [group] in hooks.values():
            [hook] = group["hooks"]
            words = hook["command"].removesuffix(" || true").split()
            assert words[:2] == ["kbd", "hook"]
            assert told(kb, words[2], START | {"prompt": "lock fd leaked"}) != ""
