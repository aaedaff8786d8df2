"""Agents that append lines of JSON: one small writer each, and the forms that their files take."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable
from datetime import datetime

from tests.forms.disk import Track, append, copy, pack, pieces, remove, rename, replace
from tests.forms.history import BASE, History, Part, Session, Turn

Json = dict[str, object]
Forms = Collection[str]


def iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def encoded(records: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def work(part: Part, shell: str = "Bash", edit: str = "Edit") -> tuple[str, Json]:
    """Return a call: a search with a commit, or an edit; only its commit message or its new half is the agent's."""
    if part.is_shell:
        return shell, {"command": f'rg "{part.copied}" src; git commit -m "{part.text}"'}
    return edit, {"file_path": "/w/app/src/a.py", "old_string": f"# {part.copied}", "new_string": f"# {part.text}"}


class LineWriter:
    """What all of them share: a session is a file, written in pieces, moved or written anew at times.

    Attributes:
        forms: what the format knows beside plain appending.
        kinds: of sessions beside `main`; deep: forks of forks are told.
        times: where a message's day comes from.
    """

    agent = ""
    forms: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    deep = True
    times = "record"

    @property
    def copies(self) -> bool:
        """Whether sessions copy others with the old times, so that only the birth of the files tells which is first."""
        return "fork" in self.kinds

    def path(self, session: Session) -> str:
        raise NotImplementedError

    def head(self, session: Session) -> list[Json]:
        return []

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        raise NotImplementedError

    def copied(self, session: Session, turn: Turn, forms: Forms) -> list[Json]:
        return self.turn(session, turn, session.began if "restamped" in forms else turn.at, forms)

    def noise(self, session: Session, at: datetime) -> list[Json]:
        """Return injected copies of the knowledge base, in each voice the format has beside the agent's."""
        return []

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        return []

    def moved(self, session: Session) -> str:
        return self.path(session).replace("-w-app", "-w-moved")

    def records(self, session: Session, forms: Forms, rng: random.Random) -> list[Json]:
        out = self.head(session)
        for turn in session.copied:
            out += self.copied(session, turn, forms)
        for i, turn in enumerate(session.own):
            if "injected" in forms and rng.random() < 0.5:
                out += self.noise(session, turn.at)
            out += self.turn(session, turn, turn.at, forms)
            if "compaction" in forms and rng.random() < 0.3:
                out += self.compaction(session, session.own[rng.randrange(i + 1) : i + 1], forms)
        return out

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        return [self.track(session, forms, rng) for session in history.sessions]

    def track(self, session: Session, forms: Forms, rng: random.Random) -> Track:
        path, records = self.path(session), self.records(session, forms, rng)
        track = pieces(path, encoded(records), rng)
        if "rewritten" in forms and len(records) > 1:
            cut = rng.randrange(1, len(records))
            track += [replace(path, encoded(records[:cut]), in_place=self.copies or rng.random() < 0.5)]
            track += pieces(path, encoded(records[cut:]), rng)
        if not track:
            return track
        if "twin" in forms:
            track.append(copy(path, self.moved(session)))
        if "moved" in forms:
            place = rng.randrange(1, len(track) + 1) if "rewritten" not in forms else len(track)
            track = self.renamed(track[:place], session) + self.go_on(track[place:], records, session)
        return track + self.afterwards(session, records, forms, rng)

    def renamed(self, track: Track, session: Session) -> Track:
        return [*track, rename(self.path(session), self.moved(session))]

    def go_on(self, rest: Track, records: list[Json], session: Session) -> Track:
        """Finish a moved file: the rest is written at its new place, whole."""
        return [replace(self.moved(session), encoded(records), in_place=self.copies)] if rest else []

    def afterwards(self, session: Session, records: list[Json], forms: Forms, rng: random.Random) -> Track:
        return []


class Claude(LineWriter):
    agent, kinds = "claude-code", ("fork", "sub")
    forms = ("partials", "restamped", "compaction", "injected", "moved", "twin", "rewritten", "progress")

    def path(self, session: Session) -> str:
        if session.kind == "sub":
            return f"projects/-w-app/{session.trunk.id}/subagents/agent-{session.id[-8:]}.jsonl"
        return f"projects/-w-app/{session.id}.jsonl"

    def line(self, session: Session, at: datetime, kind: str, **more: object) -> Json:
        self.uuids = getattr(self, "uuids", 0) + 1
        return {"type": kind, "uuid": f"u{self.uuids}", "timestamp": iso(at), "sessionId": session.trunk.id,
                "cwd": "/w/app", "isSidechain": session.kind == "sub", **more}  # fmt: skip

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        out = []
        for i, part in enumerate(turn.parts):
            name, given = work(part)
            call: Json = {"type": "tool_use", "id": f"toolu_{turn.id}_{i}", "name": name, "input": given}
            blocks = [call if part.is_tool else {"type": "text", "text": part.text}]
            if "partials" in forms and not part.is_tool:
                blocks.insert(0, {"type": "text", "text": part.text[: len(part.text) // 2]})
            for block in blocks:
                message = {"id": f"msg_{turn.id}", "role": "assistant", "model": "m", "content": [block]}
                out.append(self.line(session, at, "assistant", message=message))
                if "progress" in forms:
                    embedded = {"type": "agent_progress", "message": {"type": "assistant", "message": message}}
                    out.append(self.line(session, at, "progress", data=embedded))
        return out

    def noise(self, session: Session, at: datetime) -> list[Json]:
        result = {"type": "tool_result", "tool_use_id": "t", "content": BASE}
        return [
            self.line(session, at, "user", message={"role": "user", "content": BASE}),
            self.line(session, at, "user", message={"role": "user", "content": [result]}, toolUseResult=result),
            self.line(session, at, "attachment", attachment={"type": "hook_additional_context", "content": [BASE]}),
            self.line(session, at, "system", subtype="stop_hook_summary", content=BASE),
        ]

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        at = max(turn.at for turn in turns)
        message = {"role": "user", "content": f"This session is being continued. {BASE}"}
        out = [self.line(session, at, "system", subtype="compact_boundary"),
               self.line(session, at, "user", isCompactSummary=True, message=message)]  # fmt: skip
        return out + [line for turn in turns for line in self.turn(session, turn, turn.at, forms)]


class Codex(LineWriter):
    agent, kinds = "codex", ("fork", "sub")
    forms = ("old_ids", "restamped", "compaction", "injected", "moved", "packed", "three_copies", "rewritten")

    def path(self, session: Session) -> str:
        return f"sessions/2026/03/01/rollout-2026-03-01T02-00-00-{session.id}.jsonl"

    def moved(self, session: Session) -> str:
        return f"archived_sessions/rollout-2026-03-01T02-00-00-{session.id}.jsonl"

    def line(self, at: datetime, kind: str, payload: Json) -> Json:
        return {"timestamp": iso(at), "type": kind, "payload": payload}

    def meta(self, session: Session, at: datetime) -> Json:
        more: Json = {}
        if session.kind == "sub" and session.parent:
            source = {"subagent": {"thread_spawn": {"parent_thread_id": session.parent.id}}}
            more = {"session_id": session.parent.id, "source": source}
        elif session.parent:
            more = {"forked_from_id": session.parent.id}
        own = {"id": session.id, "timestamp": iso(session.began), "cwd": "/w/app", "base_instructions": {"text": BASE}}
        return self.line(at, "session_meta", {**own, **more})

    def head(self, session: Session) -> list[Json]:
        parents = [self.meta(session.parent, session.began)] if session.parent and session.copied else []
        return [self.meta(session, session.began), *parents]

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        out = []
        for i, part in enumerate(turn.parts):
            ident: Json = {} if "old_ids" in forms else {"id": f"it_{turn.id}_{i}"}
            if not part.is_tool:
                said = [{"type": "output_text", "text": part.text}]
                item: Json = {"type": "message", "role": "assistant", "content": said, **ident}
                copies = [{"type": "item_completed", "item": {"type": "AgentMessage", "content": said}},
                          {"type": "agent_message", "message": part.text}]  # fmt: skip
                out += [self.line(at, "event_msg", c) for c in copies if "three_copies" in forms]
            elif part.is_shell:
                given = json.dumps({"command": ["bash", "-lc", work(part)[1]["command"]]})
                item = {"type": "function_call", "call_id": f"call_{turn.id}_{i}", "name": "shell", "arguments": given}
            else:
                text = part.text.replace("\n", "\n+")
                patch = f"*** Begin Patch\n*** Update File: src/a.py\n@@\n-{part.copied}\n+{text}\n*** End Patch\n"
                call: Json = {"call_id": f"call_{turn.id}_{i}", "name": "apply_patch", "input": patch}
                item = {"type": "custom_tool_call", **call}
            out.append(self.line(at, "response_item", item))
        return out + [self.line(at, "event_msg", {"type": "task_complete", "last_agent_message": turn.parts[-1].text})]

    def noise(self, session: Session, at: datetime) -> list[Json]:
        said = [{"type": "input_text", "text": BASE}]
        voices = ("user", "developer", "system")
        items: list[Json] = [{"type": "message", "role": voice, "content": said} for voice in voices]
        items.append({"type": "function_call_output", "call_id": "c", "output": BASE})
        return [*(self.line(at, "response_item", item) for item in items),
                self.line(at, "world_state", {"agents_md": BASE})]  # fmt: skip

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        at = max(turn.at for turn in turns)
        items = [line["payload"] for turn in turns for line in self.turn(session, turn, at, ())]
        return [self.line(at, "compacted", {"message": BASE, "replacement_history": items})]

    def afterwards(self, session: Session, records: list[Json], forms: Forms, rng: random.Random) -> Track:
        if "packed" not in forms:
            return []
        place, archive = self.moved(session) if "moved" in forms else self.path(session), self.moved(session)
        back = [replace(archive, encoded(records)), remove(f"{archive}.zst")]
        return [pack(place, f"{archive}.zst"), *(back if rng.random() < 0.5 else [])]


class Gemini(LineWriter):
    agent, kinds = "gemini-cli", ("sub",)
    forms = ("partials", "compaction", "injected", "moved", "twin", "rewritten", "rewound")

    def path(self, session: Session) -> str:
        name = f"{session.trunk.id}/{session.id}" if session.kind == "sub" else f"session-2026-03-01T02-00-{session.id}"
        return f"tmp/-w-app/chats/{name}.jsonl"

    def head(self, session: Session) -> list[Json]:
        return [{"sessionId": session.id, "projectHash": "ab", "startTime": iso(session.began), "kind": "main"}]

    def message(self, turn: Turn, parts: Collection[Part]) -> Json:
        calls = [
            {"id": f"call_{turn.id}_{i}", "name": name, "args": given, "result": [BASE], "resultDisplay": BASE}
            for i, (name, given) in enumerate(work(p, "run_shell_command", "replace") for p in parts if p.is_tool)
        ]
        text = "\n\n".join(part.text for part in parts if not part.is_tool)
        return {"id": turn.id, "timestamp": iso(turn.at), "type": "gemini", "content": text, "toolCalls": calls}

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        grown = [self.message(turn, turn.parts[: i + 1]) for i in range(len(turn.parts))]
        out = grown if "partials" in forms else grown[-1:]
        return out + ([{"$rewindTo": turn.id}] if "rewound" in forms else [])

    def noise(self, session: Session, at: datetime) -> list[Json]:
        kinds = ("user", "info", "error")
        return [{"id": f"n{kind}", "timestamp": iso(at), "type": kind, "content": BASE} for kind in kinds]

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        last = max(turns, key=lambda turn: turn.at)
        summary = {"id": f"sum{last.number}", "timestamp": iso(last.at), "type": "gemini", "content": BASE}
        return [{"$set": {"messages": [summary, *(self.message(turn, turn.parts) for turn in turns)]}}]


class OpenClaw(LineWriter):
    agent, kinds = "openclaw", ("fork",)
    forms = ("compaction", "injected", "checkpoint", "reset", "deleted", "rewritten")

    def path(self, session: Session) -> str:
        return f"agents/main/sessions/{session.id}.jsonl"

    def head(self, session: Session) -> list[Json]:
        more = {"parentSession": f"/x/{session.parent.id}.jsonl"} if session.parent else {}
        return [{"type": "session", "version": 3, "id": session.id, "timestamp": iso(session.began), "cwd": "/w/app",
                 **more}]  # fmt: skip

    def entry(self, number: int, at: datetime, message: Json) -> Json:
        return {"type": "message", "id": f"{number:08x}", "parentId": "0", "timestamp": iso(at), "message": message}

    def turn(self, session: Session, turn: Turn, at: datetime, forms: Forms) -> list[Json]:
        content: list[Json] = []
        for i, part in enumerate(turn.parts):
            name, given = work(part, "exec", "edit")
            call: Json = {"type": "toolCall", "id": f"c{i}", "name": name, "arguments": given}
            text: Json = {"type": "text", "text": part.text}
            content.append({**call, "partialArgs": json.dumps(given)} if part.is_tool else text)
        return [self.entry(turn.number, turn.at, {"role": "assistant", "content": content, "model": "m"})]

    def noise(self, session: Session, at: datetime) -> list[Json]:
        said = [{"type": "text", "text": BASE}]
        voices = ("user", "toolResult", "system", "bashExecution")
        return [self.entry(0xFF0000 + i, at, {"role": voice, "content": said}) for i, voice in enumerate(voices)]

    def compaction(self, session: Session, turns: Collection[Turn], forms: Forms) -> list[Json]:
        return [{"type": "compaction", "id": "c0", "parentId": "0", "summary": BASE,
                 "timestamp": iso(max(turn.at for turn in turns))}]  # fmt: skip

    def afterwards(self, session: Session, records: list[Json], forms: Forms, rng: random.Random) -> Track:
        path, more = self.path(session), []
        if "checkpoint" in forms:
            more.append(copy(path, path.replace(".jsonl", ".checkpoint.0b0e.jsonl")))
        if "reset" in forms:
            more += [rename(path, f"{path}.reset.2026-03-10T00-00-00Z"), append(path, encoded(self.head(session)))]
        elif "deleted" in forms:
            more.append(rename(path, f"{path}.deleted.2026-03-10T00-00-00Z"))
        return more


class Pi(OpenClaw):
    agent, forms = "pi", ("compaction", "injected", "rewritten", "moved")

    def path(self, session: Session) -> str:
        return f"sessions/---w-app--/2026-03-01T02-00-00_{session.id}.jsonl"
