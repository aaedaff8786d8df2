"""Agents that write a conversation whole, as one JSON document, again and again."""

from __future__ import annotations

import json
import random
from collections.abc import Collection

from tests.forms.disk import Track, append, remove, replace
from tests.forms.history import BASE, History, Session, Turn
from tests.forms.lines import Forms, Gemini, Json, iso, work


class DocumentWriter:
    """A save for each turn; a save may be torn, may miss the file for a moment, may be cut short and go on."""

    agent = ""
    forms: tuple[str, ...] = ("injected", "shrunk", "torn", "gap", "grows")
    kinds: tuple[str, ...] = ()
    deep = True
    times = "record"

    def path(self, session: Session) -> str:
        raise NotImplementedError

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        raise NotImplementedError

    def beside(self, session: Session, history: History) -> Track:
        """Return what is laid before the conversation."""
        return []

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        return [self.beside(s, history) + self.track(s, forms, rng) for s in history.sessions]

    def track(self, session: Session, forms: Forms, rng: random.Random) -> Track:
        turns, steps = session.visible, list(range(1, len(session.visible) + 1))
        if "shrunk" in forms and len(turns) > 1:
            steps += list(range(rng.randrange(1, len(turns)), len(turns) + 1))
        track: Track = []
        for count in steps:
            shown = list(turns[:count])
            if "grows" in forms and not shown[-1].parts[-1].is_tool:
                track.append(self.save(session, [*shown[:-1], _half(shown[-1])], forms))
            if "torn" in forms and rng.random() < 0.3:
                data = self.bytes(session, shown, forms)
                track.append(replace(self.path(session), data[: len(data) // 2], in_place=True))
            if "gap" in forms and track and rng.random() < 0.3:
                data = self.bytes(session, shown, forms)
                aside = f"{self.path(session)}.new_1.tmp"
                track += [append(aside, data), remove(self.path(session)), remove(aside)]
            track.append(self.save(session, shown, forms))
        return track

    def bytes(self, session: Session, turns: Collection[Turn], forms: Forms) -> bytes:
        return json.dumps(self.document(session, turns, forms), ensure_ascii=False).encode()

    def save(self, session: Session, turns: Collection[Turn], forms: Forms):
        return replace(self.path(session), self.bytes(session, turns, forms), in_place="gap" in forms)


def _half(turn: Turn) -> Turn:
    last = turn.parts[-1]
    cut = type(last)(last.text[: len(last.text) // 2], frozenset())
    return Turn(turn.number, turn.at, (*turn.parts[:-1], cut))


class Cline(DocumentWriter):
    """The SDK's form: sessions named, messages with ids, forks told by the manifest."""

    agent, kinds = "cline", ("fork",)

    def path(self, session: Session) -> str:
        return f"sessions/{session.id}/{session.id}.messages.json"

    def beside(self, session: Session, history: History) -> Track:
        fork = {"fork": {"forkedFromSessionId": session.parent.id}} if session.parent else {}
        manifest = {"session_id": session.id, "cwd": "/w/app", "started_at": iso(session.began), "metadata": fork}
        return [replace(f"sessions/{session.id}/{session.id}.json", json.dumps(manifest).encode())]

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        messages = [m for turn in turns for m in self.messages(turn, forms)]
        return {"version": 1, "agent": "lead", "sessionId": session.id, "system_prompt": BASE, "messages": messages}

    def messages(self, turn: Turn, forms: Forms) -> list[Json]:
        content: list[Json] = []
        for i, part in enumerate(turn.parts):
            name, given = work(part, "execute_command", "replace_in_file")
            call: Json = {"type": "tool_use", "id": f"t_{turn.id}_{i}", "name": name, "input": given}
            content.append(call if part.is_tool else {"type": "text", "text": part.text})
        said: Json = {"role": "assistant", "content": content} | self.named(turn)
        asked = [{"type": "text", "text": f"{turn.number} <environment_details>{BASE}</environment_details>"},
                 {"type": "tool_result", "tool_use_id": "t", "content": BASE}]  # fmt: skip
        return [{"role": "user", "content": asked if "injected" in forms else asked[:1]}, said]

    def named(self, turn: Turn) -> Json:
        return {"id": turn.id, "ts": int(turn.at.timestamp() * 1000)}


class ClineTask(Cline):
    """The extension's form: a bare list, messages known by their times alone."""

    kinds = ()

    def path(self, session: Session) -> str:
        return f"tasks/{int(session.began.timestamp() * 1000)}/api_conversation_history.json"

    def beside(self, session: Session, history: History) -> Track:
        return []

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        return [m for turn in turns for m in self.messages(turn, forms)]

    def named(self, turn: Turn) -> Json:
        return {"ts": int(turn.at.timestamp() * 1000)}


class ClineOld(ClineTask):
    """Older still: no times, calls as XML within the text; the task's name tells its day."""

    times = "session"

    def messages(self, turn: Turn, forms: Forms) -> list[Json]:
        asked, said = super().messages(turn, forms)
        text = []
        for part in turn.parts:
            edit = (f"<replace_in_file><path>src/a.py</path><diff>\n<<<<<<< SEARCH\n{part.copied}\n=======\n"
                    f"{part.text}\n>>>>>>> REPLACE\n</diff></replace_in_file>")  # fmt: skip
            command = f"<execute_command><command>{work(part)[1].get('command')}</command></execute_command>"
            text.append((command if part.is_shell else edit) if part.is_tool else part.text)
        return [asked, {"role": "assistant", "content": [{"type": "text", "text": "\n\n".join(text)}]}]


class Roo(ClineTask):
    agent, forms = "roo", (*DocumentWriter.forms, "summary")

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        messages = [m for turn in turns for m in self.messages(turn, forms)]
        if "summary" in forms:
            summary = {"role": "assistant", "content": [{"type": "text", "text": BASE}], "isSummary": True}
            messages = [*messages[:2], {**summary, "ts": 1}, *messages[2:]]
        return messages


class Continue(DocumentWriter):
    agent, times = "continue", "session"
    forms = ("injected", "shrunk", "torn", "grows")

    def path(self, session: Session) -> str:
        return f"sessions/{session.id}.json"

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        """Lay the index first: it is what tells the day."""
        index = [{"sessionId": s.id, "title": BASE, "dateCreated": str(int(s.began.timestamp() * 1000))}
                 for s in history.sessions]  # fmt: skip
        first = replace("sessions/sessions.json", json.dumps(index).encode())
        return [[first, *track] for track in super().tracks(history, forms, rng)]

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        history = [step for turn in turns for step in self.steps(turn)]
        return {"sessionId": session.id, "title": "t", "workspaceDirectory": "/w/app", "history": history}

    def steps(self, turn: Turn) -> list[Json]:
        given = [work(part) for part in turn.parts if part.is_tool]
        calls = [{"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(g)}}
                 for i, (n, g) in enumerate(given)]  # fmt: skip
        text = "\n\n".join(part.text for part in turn.parts if not part.is_tool)
        said: Json = {"role": "assistant", "content": text, "toolCalls": calls}
        asked = {"message": {"role": "user", "content": str(turn.number)}, "contextItems": [{"content": BASE}]}
        return [asked, {"message": said, "promptLogs": [{"prompt": BASE, "completion": text}]}]


class GeminiOld(DocumentWriter):
    """Before 0.40: the chat as one document, and the JSONL that a resume makes of it beside it."""

    agent, forms = "gemini-cli", ("shrunk", "torn", "grows", "twin")

    def path(self, session: Session) -> str:
        return f"tmp/-w-app/chats/session-2026-03-01T02-00-{session.id}.json"

    def document(self, session: Session, turns: Collection[Turn], forms: Forms) -> object:
        said = [Gemini().message(turn, turn.parts) for turn in turns]
        asked: Json = {"id": "u", "timestamp": iso(session.began), "type": "user", "content": BASE}
        return {"sessionId": session.id, "startTime": iso(session.began), "messages": [asked, *said]}

    def track(self, session: Session, forms: Forms, rng: random.Random) -> Track:
        resumed = Gemini().track(session, ("injected",), rng) if "twin" in forms else []
        return super().track(session, forms, rng) + resumed
