"""GitHub Copilot CLI: one JSONL of events per session; a reply is one event, its tool calls are repeated in others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, parsed_arguments, skim_by_type, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import read_time

_EVENTS = re.compile(
    r"(?:(?:.*/)?([^/.][^/]*)/)?events\.jsonl|(?:.*/)?session-state/([^/.][^/]*)\.jsonl"
    r"|([0-9a-f]{8}-?[0-9a-f-]{20,32})\.jsonl"
)
_SIDE = re.compile(r"(?:^|/)(?:otel|checkpoints|logs)/")
_GROUPS = frozenset(
    ["session", "user", "assistant", "system", "hook", "tool", "subagent", "permission", "abort", "skill", "mcp",
     "external_tool", "command", "model", "workspace", "plan", "sampling", "elicitation",
     "pending_messages", "capabilities"]
)  # fmt: skip
_ORIGINS = ("parentSessionId", "forkedFromSessionId", "sourceSessionId")
_skim = skim_by_type(frozenset(["assistant.message", "session.start", "session.resume", "session.context_changed"]))


def _is_record(value: Json) -> bool:
    return isinstance(value.get("data"), dict) and "type" in value


class CopilotCli:
    """Where Copilot CLI writes; the root may be its folder, the `session-state` in it or one session."""

    agent = "copilot-cli"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$COPILOT_HOME` or its default."""
        return [env.get("COPILOT_HOME") or f"{home}/.copilot"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the events of sessions, old flat files too; never the telemetry export, which repeats them."""
        return FileKind.LINES if _EVENTS.fullmatch(relpath) and not _SIDE.search(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> CopilotDecoder:
        """Return a decoder for one session."""
        return CopilotDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    session: str = ""
    copied_from: list[str] = []
    cwd: str | None = None
    thread: ThreadState = msgspec.field(default_factory=ThreadState)


class CopilotDecoder:
    """Assistant messages of the session and of its sub-agents, which write into the same file."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._now = restore(state, _State)
        self._thread = Thread(self._now.thread)
        found = _EVENTS.fullmatch(relpath)
        self._named = (found[1] or found[2] or found[3] if found else None) or relpath
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return nothing: no event stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return identity, working directory, first times and recent files."""
        self._now.thread = self._thread.saved()
        return msgspec.json.encode(self._now)

    def _item(self, event: Json, offset: int) -> Item:
        at = read_time(event.get("timestamp"), self._tz)
        kind, content = text_of(event, "type"), object_of(event, "data")
        if kind.startswith("session."):
            self._begin(kind, content)
        if kind != "assistant.message":
            known = kind.partition(".")[0] in _GROUPS
            return Item(RecordKind.RECOGNISED if known else RecordKind.UNKNOWN, at=at)
        blocks = tuple(_blocks(content))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        session, event_id = self._now.session or self._named, identifier(event.get("id"))
        made = self._thread.message(
            identifier(content.get("messageId")) or event_id,
            session,
            event_id or "",
            at,
            self._now.cwd,
            blocks,
            offset,
            copied_from=tuple(self._now.copied_from),
            is_fragment="chunkIndex" in content,
        )
        return Item(RecordKind.MESSAGE, (made,), at)

    def _begin(self, kind: str, start: Mapping[str, object]) -> None:
        """Take identity from the first `session.start`, the working directory from the newest context."""
        context = object_of(start, "context")
        self._now.cwd = text_of(context, "cwd") or text_of(start, "cwd") or self._now.cwd
        if kind == "session.start" and not self._now.session:
            self._now.session = identifier(start.get("sessionId")) or self._named
            found = [*map(start.get, _ORIGINS), object_of(start, "forkedFrom").get("sessionId")]
            self._now.copied_from = [origin for origin in dict.fromkeys(map(identifier, found)) if origin]


def _blocks(content: Mapping[str, object]) -> Iterator[Block]:
    """Yield the reply, its readable reasoning apart, and its tool requests."""
    if text_of(content, "reasoningText").strip():
        yield Block(Author.THINKING, text_of(content, "reasoningText"))
    if text_of(content, "content").strip():
        yield Block(Author.AGENT_TEXT, text_of(content, "content"))
    for request in objects_of(content, "toolRequests"):
        found = tool_call(text_of(request, "name"), parsed_arguments(request.get("arguments")))
        yield Block(Author.AGENT_TOOL_INPUT, found.written, identifier(request.get("toolCallId")), found)


FORMAT = CopilotCli()
