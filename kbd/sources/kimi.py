"""Kimi Code: one JSONL of operations per agent; what the model wrote is in loop events alone.

`context.append_message` holds prompts, and replies only where a context was copied. A step is a message; its parts and
calls are records of their own. The agents of a session share its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, parsed_arguments, skim_by_type, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import read_time

_WIRE = re.compile(r"(?:(?:.*/)?([^/]+)/)?agents/([^/]+)/wire\.jsonl")
_GROUPS = frozenset(
    ["metadata", "config", "tools", "turn", "context", "llm", "usage", "permission", "profile", "cron", "file_history",
     "forked", "full_compaction", "goal", "micro_compaction", "plan", "plan_mode", "subagent", "task", "todo", "mcp",
     "session", "step", "swarm", "skill", "background", "wire", "blob", "hook"]
)  # fmt: skip
_skim = skim_by_type(frozenset(["context.append_loop_event", "config.update"]))


def _is_record(value: Json) -> bool:
    return isinstance(value.get("type"), str) and ("time" in value or "event" in value or "message" in value)


class Kimi:
    """Where Kimi Code writes; the root may be its folder, the `sessions` in it or one session."""

    agent = "kimi"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$KIMI_CODE_HOME` or its default."""
        return [env.get("KIMI_CODE_HOME") or f"{home}/.kimi-code"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the wire files of all agents of a session."""
        return FileKind.LINES if _WIRE.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> WireDecoder:
        """Return a decoder for one agent's wire."""
        return WireDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    cwd: str | None = None
    thread: ThreadState = msgspec.field(default_factory=ThreadState)


class WireDecoder:
    """Loop events become messages, known by their step; an agent counts for the session it works in."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._now = restore(state, _State)
        self._thread = Thread(self._now.thread)
        found = _WIRE.fullmatch(relpath)
        self._session = (found[1] if found else None) or relpath
        self._wire = f"{self._session}/{found[2] if found else ''}"
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return nothing: no operation stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the working directory, first times, recent files and how the last text ended."""
        self._now.thread = self._thread.saved()
        return msgspec.json.encode(self._now)

    def _item(self, line: Json, offset: int) -> Item:
        kind, event = text_of(line, "type"), object_of(line, "event")
        at = read_time(line.get("time"), self._tz) or read_time(event.get("time"), self._tz)
        if kind == "config.update":
            self._now.cwd = text_of(line, "cwd") or self._now.cwd
        step = _step(event)
        blocks = tuple(_blocks(event, f"{self._wire}:{step or ''}")) if kind == "context.append_loop_event" else ()
        if not blocks:
            known = kind.partition(".")[0] in _GROUPS
            return Item(RecordKind.RECOGNISED if known else RecordKind.UNKNOWN, at=at)
        record_id = identifier(event.get("uuid")) or identifier(event.get("toolCallId")) or ""
        cwd = self._now.cwd
        made = self._thread.message(step, self._session, record_id, at, cwd, blocks, offset, is_fragment=True)
        return Item(RecordKind.MESSAGE, (made,), at)


def _step(event: Mapping[str, object]) -> str | None:
    """Return the id of an event's step: its uuid, else its number in its turn."""
    turn, step = event.get("turnId"), event.get("step")
    numbered = f"{str(turn)[:64]}.{step}" if isinstance(turn, str | int) and isinstance(step, int) else None
    return identifier(event.get("stepUuid")) or numbered


def _blocks(event: Mapping[str, object], scope: str) -> Iterator[Block]:
    match text_of(event, "type"):
        case "content.part":
            part = object_of(event, "part")
            thought = text_of(part, "think") or text_of(part, "thinking")
            if text_of(part, "type") == "text" and text_of(part, "text").strip():
                yield Block(Author.AGENT_TEXT, text_of(part, "text"))
            elif thought.strip():
                yield Block(Author.THINKING, thought)
        case "tool.call":
            found = tool_call(text_of(event, "name"), parsed_arguments(event.get("args")))
            call_id = identifier(event.get("toolCallId"))
            yield Block(Author.AGENT_TOOL_INPUT, found.written, f"{scope}:{call_id}" if call_id else None, found)


FORMAT = Kimi()
