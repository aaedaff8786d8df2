"""The MCP server as a client meets it: a process on stdio, spoken to by the official client."""

import asyncio
import json
import os
import sys
import threading
import time

import mcp
import pytest

from tests.cli.shelves import read
from tests.cli.world import World
from tests.leases import need_leases


@pytest.fixture
def world(tmp_path):
    return read(World(tmp_path), log="2026-06-10 10:00 fixed src/net.py: lock fd leaked on exception path\n")


def converse(world, *calls, inspect=lambda listed: None, after=lambda: None):
    """Call tools one after the other in one session; return (is it an error, text) of each."""

    async def session():
        args = ["-m", "kbd", *world.options(), "mcp"]
        server = mcp.StdioServerParameters(command=sys.executable, args=args, cwd=world.root)
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as client:
            await client.initialize()
            inspect((await client.list_tools()).tools)
            answers = [await client.call_tool(name, arguments) for name, arguments in calls]
            after()
            return [(bool(answer.is_error), answer.content[0].text) for answer in answers]

    return asyncio.run(asyncio.wait_for(session(), 60))


def test_a_session_of_an_agent_over_stdio(world):
    names = []
    answers = converse(
        world,
        ("context", {"files": ["src/net.py"]}),
        ("search", {"query": "jitter"}),
        ("show", {"title": "k-sfyp60"}),
        ("add", {"title": "Retry only what is idempotent", "text": "twice charged", "type": "pitfall",
                 "applies_to": ["src/pay.py"], "supersedes": ["Retry storm"]}),
        ("context", {"files": ["src/pay.py"], "types": ["pitfall"]}),
        ("relate", {"subject": "k-sfyp60", "predicate": "requires", "object": "k-aygzpx"}),
        ("status", {}),
        inspect=lambda tools: names.extend(tool.name for tool in tools),
    )  # fmt: skip
    assert names == ["context", "search", "show", "add", "relate", "status"]
    assert not any(failed for failed, _ in answers)
    context, search, show, add, again, relate, status = [text for _, text in answers]
    assert context.startswith("<!-- kbd:context -->\n")
    assert context.index("Lock fd leaked") < context.index("Store timestamps")
    assert json.loads(search)["entries"][0]["title"] == "Retry storm after an outage"
    assert json.loads(show)["evidence"][0]["files"] == ["src/net.py"]
    assert json.loads(add)["handle"] == world.answer("show", "Retry only")["handle"]
    assert again.index("Retry only what is idempotent") < again.index("Lock fd leaked")
    assert json.loads(relate)["o"] == "Store timestamps in UTC"
    assert json.loads(status)["bases"][0]["entries"] == 6


def test_what_is_refused_is_an_error_that_says_why(world):
    answers = converse(
        world,
        ("add", {"title": "Store timestamps in UTC", "text": "x"}),
        ("add", {"title": "A key that leaks out", "text": "AKIAIOSFODNN7EXAMPLE"}),
        ("show", {"title": "nothing like it"}),
        ("context", {"stage": "party"}),
        ("relate", {"subject": "a", "predicate": "supersedes", "object": "b"}),
        ("add", {"text": "no title"}),
        ("context", {}),
    )
    assert [failed for failed, _ in answers] == [True] * 6 + [False]
    assert "[k-aygzpx]" in answers[0][1]
    assert "AKIAIOSFODNN7EXAMPLE" not in answers[1][1]


def test_tools_describe_their_arguments(world):
    tools = []
    converse(world, inspect=tools.extend)
    assert all(tool.description for tool in tools)
    required = {tool.name: tool.input_schema.get("required", []) for tool in tools}
    assert required["add"] == ["title", "text"]
    assert required["relate"] == ["subject", "predicate", "object"]


def test_text_that_an_editor_writes_late_is_saved_before_a_call_of_add_ends(world):
    need_leases(world.root)
    note = world.root / "kb" / "lessons.md"
    with open(note, "r+b", buffering=0) as editor:
        inode = os.fstat(editor.fileno()).st_ino

        def wait_until(reached):
            deadline = time.monotonic() + 30
            while not reached() and time.monotonic() < deadline:
                os.sched_yield()

        def write_late():
            wait_until(lambda: note.stat().st_ino != inode and not list(note.parent.glob(".kbd-*.tmp")))
            editor.write(b"# written late\n")
            wait_until(lambda: list(note.parent.glob("*.kbd-conflict.md")))
            editor.write(b"# and more\n")
            editor.close()

        writer = threading.Thread(target=write_late)
        writer.start()
        lesson = {"title": "Retry only what is idempotent", "text": "twice charged"}
        saved = []

        def look():
            saved.extend(path.read_bytes() for path in note.parent.glob("*.kbd-conflict.md"))

        [(failed, answer)] = converse(world, ("add", lesson), after=look)
        writer.join()
    assert not failed, answer
    assert any(text.startswith(b"# written late\n# and more\n") for text in saved), saved
