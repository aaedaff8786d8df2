"""Agents that keep rows: one database for all sessions, each session a track of statements."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from tests.forms.disk import Track, sql
from tests.forms.history import BASE, History, Part, Session, Turn
from tests.forms.lines import Forms, Json, work
from tests.stores.agent_stores import GOOSE, HERMES, OPENCODE

Statement = tuple[str, Sequence[object]]


def insert(table: str, **columns: object) -> Statement:
    marks = ",".join("?" * len(columns))
    return f"INSERT INTO {table}({','.join(columns)}) VALUES ({marks})", list(columns.values())


class RowWriter:
    """What the three share: a transaction a step, in WAL mode or not."""

    agent, relpath, schema = "", "", ""
    forms: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    deep = True
    times = "record"

    def head(self, session: Session) -> list[Statement]:
        raise NotImplementedError

    def turn(self, session: Session, turn: Turn, ms: int, forms: Forms) -> list[list[Statement]]:
        raise NotImplementedError

    def noise(self, session: Session, ms: int) -> list[Statement]:
        return []

    def end(self, session: Session, forms: Forms, rng: random.Random) -> list[list[Statement]]:
        return []

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        """Insert all sessions first: a child's row follows that of its parent."""
        heads = [statement for session in history.sessions for statement in self.head(session)]
        mode = "PRAGMA journal_mode=wal;" if "wal" in forms else ""
        schema = mode + self.schema.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        first = sql(self.relpath, schema, [(s.replace("INSERT", "INSERT OR IGNORE", 1), v) for s, v in heads])
        return [
            [first, *(sql(self.relpath, schema, step) for step in self.steps(session, forms, rng))]
            for session in history.sessions
        ]

    def steps(self, session: Session, forms: Forms, rng: random.Random) -> list[list[Statement]]:
        steps: list[list[Statement]] = []
        for turn in session.visible:
            is_copy = turn in session.copied
            ms = int(turn.at.timestamp() * 1000)
            if is_copy and "restamped" in forms:
                ms = int(session.began.timestamp() * 1000) + session.visible.index(turn)
            if "injected" in forms and rng.random() < 0.5:
                steps.append(self.noise(session, ms))
            steps += self.turn(session, turn, ms, forms)
        return steps + self.end(session, forms, rng)


class OpenCode(RowWriter):
    agent, relpath, schema = "opencode", "opencode.db", OPENCODE
    kinds, deep = ("fork", "sub"), False
    forms = ("wal", "grows", "restamped", "injected", "deleted", "compaction")

    def head(self, session: Session) -> list[Statement]:
        ms = int(session.began.timestamp() * 1000)
        title = f"s{session.number}"
        if session.kind == "fork" and session.parent:
            title = f"s{session.parent.number} (fork #1)"
        above = session.parent.id if session.kind == "sub" and session.parent else None
        return [insert("session", id=session.id, parent_id=above, directory="/w/app", title=title, time_created=ms,
                       time_updated=ms)]  # fmt: skip

    def message(self, session: Session, name: str, ms: int, **said: object) -> Statement:
        data = json.dumps({"time": {"created": ms}, "path": {"cwd": "/w/app"}, **said})
        return insert("message", id=name, session_id=session.id, time_created=ms, time_updated=ms, data=data)

    def part(self, session: Session, name: str, message: str, ms: int, data: Json) -> Statement:
        return insert("part", id=name, message_id=message, session_id=session.id, time_created=ms, time_updated=ms,
                      data=json.dumps(data))  # fmt: skip

    def turn(self, session: Session, turn: Turn, ms: int, forms: Forms) -> list[list[Statement]]:
        name = f"msg_{session.number}_{turn.id}"
        steps = [[self.message(session, name, ms, role="assistant")]]
        for i, part in enumerate(turn.parts):
            data = self.data(part, i)
            begun = (
                {**data, "text": part.text[: len(part.text) // 2]} if "grows" in forms and not part.is_tool else data
            )
            steps.append([self.part(session, f"prt_{name}_{i}", name, ms, begun)])
            if begun != data:
                grown = [json.dumps(data), ms + 5000, f"prt_{name}_{i}"]
                steps.append([("UPDATE part SET data=?, time_updated=? WHERE id=?", grown)])
        return steps

    def data(self, part: Part, number: int) -> Json:
        if not part.is_tool:
            return {"type": "text", "text": part.text}
        tool, given = work(part, "bash", "edit")
        return {"type": "tool", "tool": tool, "callID": f"c{number}", "state": {"input": given, "output": BASE}}

    def noise(self, session: Session, ms: int) -> list[Statement]:
        self.count = getattr(self, "count", 0) + 1
        name = f"n{self.count}"
        return [self.message(session, name, ms, role="user"),
                self.part(session, f"p{name}", name, ms, {"type": "text", "text": BASE}),
                self.message(session, f"s{name}", ms, role="assistant"),
                self.part(session, f"ps{name}", f"s{name}", ms, {"type": "text", "text": BASE, "synthetic": True}),
                ]  # fmt: skip

    def end(self, session: Session, forms: Forms, rng: random.Random) -> list[list[Statement]]:
        ms = int(session.began.timestamp() * 1000) + 9 * 86_400_000
        steps: list[list[Statement]] = []
        if "compaction" in forms:
            name = f"sum{session.number}"
            steps.append([self.message(session, name, ms, role="assistant", summary=True, mode="compaction"),
                          self.part(session, f"p{name}", name, ms, {"type": "text", "text": BASE})])  # fmt: skip
        return steps


class Goose(RowWriter):
    agent, relpath, schema = "goose", "sessions.db", GOOSE
    forms = ("wal", "injected", "replaced", "compaction")

    def head(self, session: Session) -> list[Statement]:
        return [insert("sessions", id=session.id, working_dir="/w/app", session_type="user")]

    def row(self, session: Session, ms: int, role: str, content: object, **shown: bool) -> Statement:
        return insert("messages", session_id=session.id, role=role, content_json=json.dumps(content),
                      created_timestamp=ms // 1000, metadata_json=json.dumps(shown))  # fmt: skip

    def turn(self, session: Session, turn: Turn, ms: int, forms: Forms) -> list[list[Statement]]:
        content: list[Json] = []
        for part in turn.parts:
            name, given = work(part, "developer__shell", "developer__text_editor")
            call = {"status": "success", "value": {"name": name, "arguments": given}}
            request: Json = {"type": "toolRequest", "id": "c1", "toolCall": call}
            content.append(request if part.is_tool else {"type": "text", "text": part.text})
        return [[self.row(session, ms, "assistant", content)]]

    def noise(self, session: Session, ms: int) -> list[Statement]:
        answer = {"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": BASE}}
        return [
            self.row(session, ms, "user", [{"type": "text", "text": BASE}]),
            self.row(session, ms, "user", [answer]),
        ]

    def end(self, session: Session, forms: Forms, rng: random.Random) -> list[list[Statement]]:
        steps: list[list[Statement]] = []
        ms = int(session.began.timestamp() * 1000)
        for _ in range(rng.randrange(1, 3) if "replaced" in forms else 0):
            said = [(turn, int(turn.at.timestamp() * 1000)) for turn in session.visible]
            rows = [s for turn, at in said for step in self.turn(session, turn, at, ()) for s in step]
            summary = self.row(session, ms, "assistant", [{"type": "text", "text": BASE}], userVisible=False)
            steps.append([("DELETE FROM messages WHERE session_id=?", [session.id]), summary, *rows])
        return steps


class Hermes(RowWriter):
    agent, relpath, schema = "hermes", "state.db", HERMES
    kinds, forms = ("sub",), ("wal", "injected", "restamped", "compaction", "curator")

    def head(self, session: Session) -> list[Statement]:
        above = session.parent.id if session.parent else None
        return [insert("sessions", id=session.id, source="cli", parent_session_id=above, cwd="/w/app")]

    def row(self, session: Session, ms: int, role: str, content: str, calls: object = None) -> Statement:
        given = json.dumps(calls) if calls else None
        return insert(
            "messages", session_id=session.id, role=role, content=content, tool_calls=given, timestamp=ms / 1000
        )

    def turn(self, session: Session, turn: Turn, ms: int, forms: Forms) -> list[list[Statement]]:
        calls = [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                 for name, given in (work(part, "terminal", "patch") for part in turn.parts if part.is_tool)
                 ]  # fmt: skip
        text = "\n\n".join(part.text for part in turn.parts if not part.is_tool)
        return [[self.row(session, ms, "assistant", text, calls)]]

    def noise(self, session: Session, ms: int) -> list[Statement]:
        return [self.row(session, ms, role, BASE) for role in ("user", "tool", "system")]

    def end(self, session: Session, forms: Forms, rng: random.Random) -> list[list[Statement]]:
        ms = int(session.began.timestamp() * 1000) + 9 * 86_400_000
        steps = []
        if "compaction" in forms:
            steps.append([self.row(session, ms, "assistant", f"[CONTEXT COMPACTION] {BASE}")])
        if "curator" in forms:
            asked = "Review the conversation above and update the skill library"
            steps.append([self.row(session, ms, "user", asked), self.row(session, ms + 1, "assistant", BASE)])
        return steps
