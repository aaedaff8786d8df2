"""More agents that append lines of JSON, and the generic forms of chats and telemetry."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from datetime import datetime

from tests.forms.history import BASE, Session, Turn
from tests.forms.lines import Forms, Json, LineWriter, iso, work


class Qwen(LineWriter):
    agent, kinds = "qwen-code", ("fork",)
    forms = ("partials", "compaction", "injected", "moved", "rewritten")

    def path(self, session: Session) -> str:
        return f"projects/-w-app/chats/{session.id}.jsonl"

    def moved(self, session: Session) -> str:
        return f"projects/-w-app/chats/archive/{session.id}.jsonl"

    def line(self, session: Session, at: datetime, kind: str, uuid: str, **more: object) -> Json:
        return {"uuid": uuid, "parentUuid": None, "sessionId": session.id, "timestamp": iso(at), "type": kind,
                "cwd": "/w/app", **more}  # fmt: skip

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        parts: list[Json] = []
        for i, part in enumerate(turn.parts):
            name, given = work(part, "run_shell_command", "edit")
            call: Json = {"functionCall": {"id": f"c_{turn.id}_{i}", "name": name, "args": given}}
            half = len(part.text) // 2
            if part.is_tool:
                parts.append(call)
            elif "partials" in forms:
                parts += [{"text": part.text[:half]}, {"text": f"{part.text[half:]}\n"}]
            else:
                parts.append({"text": f"{part.text}\n"})
        lines = [[part] for part in parts] if "partials" in forms else [parts]
        said = [{"role": "model", "parts": some} for some in lines]
        return [self.line(session, at, "assistant", turn.id, message=message) for message in said]

    def copied(self, session: Session, turn: Turn, forms: Forms) -> list[Json]:
        origin = next(s for s in _line_of(session) if turn in s.own)
        fork = {"sessionId": origin.id, "messageUuid": turn.id}
        return [{**line, "forkedFrom": fork} for line in self.turn(session, turn, turn.at, forms)]

    def noise(self, session: Session, at: datetime) -> list[Json]:
        message = {"role": "user", "parts": [{"text": BASE}]}
        return [self.line(session, at, kind, f"n-{kind}", message=message) for kind in ("user", "tool_result")]

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        at = max(turn.at for turn in turns)
        history = [line["message"] for turn in turns for line in self.turn(session, turn, at, ())]
        packed = {"compressedHistory": [{"role": "model", "parts": [{"text": BASE}]}, *history]}
        return [self.line(session, at, "system", "c", subtype="chat_compression", systemPayload=packed)]


def _line_of(session: Session) -> list[Session]:
    return [session, *(_line_of(session.parent) if session.parent else [])]


class Copilot(LineWriter):
    agent, forms = "copilot-cli", ("partials", "injected", "rewritten", "moved", "progress")

    def path(self, session: Session) -> str:
        return f"session-state/{session.id}/events.jsonl"

    def moved(self, session: Session) -> str:
        return f"session-state/{session.id}.jsonl"

    def event(self, kind: str, ident: str, at: datetime, content: Json) -> Json:
        return {"type": kind, "data": content, "id": ident, "timestamp": iso(at), "parentId": None}

    def head(self, session: Session) -> list[Json]:
        start = {"sessionId": session.id, "version": 1, "context": {"cwd": "/w/app"}}
        return [self.event("session.start", f"e{session.id}", session.began, start)]

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        text = "\n\n".join(part.text for part in turn.parts if not part.is_tool)
        requests = []
        for i, part in enumerate(turn.parts):
            name, given = work(part, "bash", "edit")
            requests += [{"toolCallId": f"t_{turn.id}_{i}", "name": name, "arguments": given}] if part.is_tool else []
        cuts = [0, len(text) // 2, len(text)] if "partials" in forms else [0, len(text)]
        spans = list(zip(cuts[:-1], cuts[1:], strict=True))
        out = []
        for i, (a, b) in enumerate(spans):
            said: Json = {"messageId": turn.id, "content": text[a:b], "chunkIndex": i, "chunkCount": len(spans)}
            said["toolRequests"] = requests if b == len(text) and i == len(spans) - 1 else []
            out.append(self.event("assistant.message", f"e{turn.id}{i}", at, said))
        if "progress" in forms:
            out += [self.event("tool.execution_start", "x", at, r) for r in requests]
            out.append(self.event("assistant.message_delta", "d", at, {"deltaContent": text}))
        return out

    def noise(self, session: Session, at: datetime) -> list[Json]:
        kinds = ("user.message", "system.message", "hook.end", "tool.execution_complete", "assistant.reasoning")
        return [self.event(kind, "n", at, {"content": BASE, "result": {"content": BASE}}) for kind in kinds]


class Cursor(LineWriter):
    agent, kinds, forms = "cursor", ("sub",), ("injected", "moved", "rewritten")

    def path(self, session: Session) -> str:
        name = f"{session.trunk.id}/subagents/{session.id}" if session.kind == "sub" else f"{session.id}/{session.id}"
        return f"projects/-w-app/agent-transcripts/{name}.jsonl"

    def line(self, role: str, *content: Json) -> Json:
        return {"role": role, "message": {"content": list(content)}}

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        asked = f"<timestamp>{iso(at)}</timestamp>\n<user_query>\n{BASE}\n</user_query>"
        content: list[Json] = []
        for part in turn.parts:
            name, given = work(part, "Shell", "StrReplace")
            call: Json = {"type": "tool_use", "name": name, "input": given}
            content.append(call if part.is_tool else {"type": "text", "text": f"{part.text}\n"})
        return [self.line("user", {"type": "text", "text": asked}), self.line("assistant", *content)]

    def noise(self, session: Session, at: datetime) -> list[Json]:
        return [
            self.line("user", {"type": "tool_result", "content": BASE}),
            {"type": "turn_ended", "status": "success"},
        ]


class CursorUntold(Cursor):
    """Without tags: a message has the day it was first read."""

    times, forms = "observed", ("injected", "rewritten")

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        return super().turn(session, turn, at, forms)[1:]


class Kimi(LineWriter):
    agent, kinds = "kimi", ("fork", "sub")
    forms = ("compaction", "injected", "rewritten", "moved")

    def path(self, session: Session) -> str:
        name = f"agent-{session.number}" if session.kind == "sub" else "main"
        return f"sessions/wd_-w-app_1/{session.trunk.id}/agents/{name}/wire.jsonl"

    def head(self, session: Session) -> list[Json]:
        at = int(session.began.timestamp() * 1000)
        return [{"type": "metadata", "protocol_version": "1.4", "created_at": at},
                {"type": "config.update", "cwd": "/w/app", "systemPrompt": BASE, "time": at}]  # fmt: skip

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        out: list[Json] = []
        for i, part in enumerate(turn.parts):
            name, given = work(part)
            event: Json = {"uuid": f"p{turn.id}{i}", "turnId": "0", "step": 1, "stepUuid": turn.id}
            event |= ({"type": "tool.call", "toolCallId": f"Bash_{i}", "name": name, "args": given} if part.is_tool
                      else {"type": "content.part", "part": {"type": "text", "text": f"{part.text}\n"}})  # fmt: skip
            out.append({"type": "context.append_loop_event", "event": event, "time": int(at.timestamp() * 1000)})
        return out

    def noise(self, session: Session, at: datetime) -> list[Json]:
        when = int(at.timestamp() * 1000)
        message = {"role": "assistant", "content": [{"type": "text", "text": BASE}]}
        result = {"type": "tool.result", "toolCallId": "t", "result": {"output": BASE}}
        return [{"type": "context.append_message", "message": message, "time": when},
                {"type": "turn.prompt", "input": [{"type": "text", "text": BASE}], "time": when},
                {"type": "context.append_loop_event", "event": result, "time": when}]  # fmt: skip

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        at = int(max(turn.at for turn in turns).timestamp() * 1000)
        said = "\n".join(part.text for turn in turns for part in turn.parts) + BASE
        message = {"role": "assistant", "content": [{"type": "text", "text": said}]}
        return [{"type": "context.append_message", "message": message, "time": at}]


class Chat(LineWriter):
    agent, forms = "chat-jsonl", ("injected", "rewritten", "moved", "history_again")
    # Renamed and replaced between two looks, a chat without ids is known by three equal messages only (SPEC 3).
    copies = True

    def path(self, session: Session) -> str:
        return f"-w-app/{session.id}.jsonl"

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        calls = [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                 for name, given in (work(part) for part in turn.parts if part.is_tool)]  # fmt: skip
        text = "\n\n".join(part.text for part in turn.parts if not part.is_tool)
        said: Json = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        return [{**said, **self.named(session, at)}]

    def named(self, session: Session, at: datetime) -> Json:
        return {"session_id": session.id, "timestamp": iso(at)}

    def noise(self, session: Session, at: datetime) -> list[Json]:
        named = self.named(session, at)
        return [{"role": role, "content": BASE, **named} for role in ("system", "user", "tool")]

    def records(self, session: Session, forms: Forms, rng: random.Random) -> list[Json]:
        """Return messages, or calls of an API that each repeat the conversation so far."""
        records = super().records(session, forms, rng)
        if "history_again" not in forms:
            return records
        asked: Json = {"role": "user", "content": "go on"}
        turns = [[asked, record] for record in records if record["role"] == "assistant"]
        return [{"messages": [m for turn in turns[: i + 1] for m in turn]} for i in range(len(turns))]


class ChatUntold(Chat):
    """Without times and names: the file is the session, the day that of its first reading."""

    # Renamed after it was replaced, a chat without ids and times is known by three equal messages only (SPEC 3);
    # the case chat-renamed-goes-on has the rename alone.
    times, forms = "observed", ("injected", "rewritten")

    def named(self, session: Session, at: datetime) -> Json:
        return {}


class Otel(LineWriter):
    agent, forms = "otel-genai", ("injected", "rewritten", "moved", "twin", "enclosing", "enveloped")

    def path(self, session: Session) -> str:
        return f"-w-app/{session.id}.jsonl"

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        parts: list[Json] = []
        for i, part in enumerate(turn.parts):
            name, given = work(part)
            call: Json = {"type": "tool_call", "id": f"c_{turn.id}_{i}", "name": name, "arguments": given}
            parts.append(call if part.is_tool else {"type": "text", "content": f"{part.text}\n"})
        before = [{"role": "assistant", "parts": [{"type": "text", "content": p.text}]}
                  for t in session.own if t.at < turn.at for p in t.parts]  # fmt: skip
        asked = [{"role": "user", "parts": [{"type": "text", "content": BASE}]}, *before]
        attributes: Json = {"gen_ai.conversation.id": session.id, "gen_ai.operation.name": "chat",
                            "gen_ai.system_instructions": BASE, "gen_ai.input.messages": json.dumps(asked),
                            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}  # fmt: skip
        span: Json = {"name": "chat m", "traceId": f"t{turn.number}", "spanId": f"b{turn.number}",
                      "parentSpanId": f"a{turn.number}", "attributes": attributes,
                      "endTimeUnixNano": str(int(at.timestamp()) * 10**9)}  # fmt: skip
        spans = [span]
        if "enclosing" in forms:
            around = {**attributes, "gen_ai.operation.name": "invoke_agent"}
            spans.append({**span, "spanId": f"a{turn.number}", "parentSpanId": "", "attributes": around})
        return [_envelope(one) for one in spans] if "enveloped" in forms else spans


def _envelope(span: Json) -> Json:
    attributes = span["attributes"]
    assert isinstance(attributes, dict)
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": listed}]}]}]}
