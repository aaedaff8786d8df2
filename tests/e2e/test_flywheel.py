"""The whole wheel by commands: cited while editing a file, first for that file next time, faded when unused."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.cli.world import World

LESSONS = """\
# Lessons

- [pitfall] **Lock fd leaked on exception path** — close it in finally (2026-05-20)
- [guideline] **Store timestamps in UTC** — convert where a person reads it (2026-05-21)
- [decision] **Chose SQLite over a server** — one process writes (2026-05-22)
"""
LOCK, UTC_TITLE, SQLITE = "Lock fd leaked on exception path", "Store timestamps in UTC", "Chose SQLite over a server"
CONFIG = """\
bases:
  - {name: lessons, files: ["kb/*.md"]}
sources:
  - {agent: claude-code, root: claude}
"""


class Agent:
    """Writes what Claude Code writes of a session."""

    def __init__(self, world):
        self.world, self.lines = world, 0
        self.folder = world.root / "claude" / "projects" / "-project"
        self.folder.mkdir(parents=True)

    def write(self, session, day, kind, content, **more):
        self.lines += 1
        at = datetime(day.year, day.month, day.day, 10, 0, self.lines % 60, tzinfo=UTC).isoformat()
        line = {
            "type": kind,
            "uuid": f"u{self.lines}",
            "sessionId": session,
            "timestamp": at,
            "cwd": str(self.world.root),
        }
        line |= {"message": {"id": f"m{self.lines}", "role": kind, "content": content}} if content else {}
        with open(self.folder / f"{session}.jsonl", "a") as file:
            file.write(json.dumps(line | more) + "\n")

    def is_told(self, session, day, text):
        """What a hook adds: an attachment to the session, and, with some versions, a line of the user's."""
        self.write(session, day, "attachment", None, attachment={"type": "hook_additional_context", "content": [text]})
        self.write(session, day, "user", f"<system-reminder>\n{text}\n</system-reminder>")

    def says(self, session, day, text):
        self.write(session, day, "assistant", [{"type": "text", "text": text}])

    def edits(self, session, day, path, new):
        tool = {"type": "tool_use", "id": f"t{self.lines}", "name": "Edit",
                "input": {"file_path": path, "old_string": "a", "new_string": new}}  # fmt: skip
        self.write(session, day, "assistant", [tool])


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    world.note("lessons.md", LESSONS)
    yield world


def at(world, day):
    world.now = day.isoformat()
    passed = world.run("run", "--once")
    assert passed.exit_code == 0, passed.output


def refs(world):
    return {one["title"]: one["ref"] for one in world.answer("list", "--all")["entries"]}


def told(world, *args):
    return [one["title"] for one in world.answer("context", *args)["entries"]]


def test_the_wheel_turns(world, monkeypatch):
    monkeypatch.chdir(world.root)
    agent, day = Agent(world), date(2026, 6, 1)
    at(world, day)
    net = str(world.root / "src" / "net.py")
    assert told(world, "--file", "src/net.py")[0] != LOCK  # the oldest of equals

    # A session is told all lessons, repeats what it was told, and uses one while it works on a file.
    given = json.loads(world.run("hook", "session-start").stdout)["hookSpecificOutput"]["additionalContext"]
    agent.is_told("S1", day, given)
    agent.says("S1", day, f"What I was told:\n{given}")
    handle = world.answer("show", LOCK)["handle"]
    agent.edits("S1", day, net, "with closing(fd):")
    agent.says("S1", day, f"Closed the descriptor in finally, see [{handle}].")
    day += timedelta(days=1)
    at(world, day)
    assert refs(world) == {LOCK: 1, UTC_TITLE: 0, SQLITE: 0}

    # It comes first for that file, and only for it.
    assert told(world, "--file", net)[0] == LOCK
    best = world.answer("context", "--file", net)["entries"][0]
    assert best["terms"]["relation"] == 8

    # A new lesson comes in by the agent's own hand: it does not cite itself that day, and takes the place of another.
    new = "Store timestamps in UTC with their offset"
    added = world.run("add", new, "the offset tells what the clock on the wall said", "--supersedes", UTC_TITLE)
    assert added.exit_code == 0, added.output
    command = {"type": "tool_use", "id": "add", "name": "Bash", "input": {"command": f"kbd add '{new}' --supersedes x"}}
    agent.write("S2", day, "assistant", [command])
    agent.says("S2", day, f"From now on: {new}.")
    at(world, day)
    assert refs(world)[new] == 0
    assert UTC_TITLE not in told(world)
    assert new in told(world)

    # Months in which only one lesson is of use: the others fade, and nothing that was only told gains anything.
    for week in range(10):
        day += timedelta(days=13)
        session = f"W{week}"
        agent.is_told(session, day, world.run("context").stdout)
        agent.edits(session, day, net, f"retry({week})")
        agent.says(session, day, "Again: lock fd leaked on exception path, closed it.")
        at(world, day)
    assert refs(world) == {LOCK: 11, UTC_TITLE: 0, SQLITE: 0, new: 0}
    assert told(world) == [LOCK]
    states = {one["title"]: one["state"] for one in world.answer("list", "--all")["entries"]}
    assert (states[LOCK], states[SQLITE], states[new]) == ("active", "dormant", "dormant")

    # Faded is not gone: it is found, and comes back when it is used.
    assert [one["state"] for one in world.answer("search", "sqlite")["entries"]] == ["dormant"]
    agent.says("W99", day, "We use one file, as decided: chose SQLite over a server.")
    at(world, day)
    assert set(told(world)) == {LOCK, SQLITE}
