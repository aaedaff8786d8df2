"""OpenClaw (Clawdbot, Moltbot): JSONL trees of entries, with full copies at compactions and resets beside them.

Entry ids are eight hex digits, unique in one file only; with the entry's time they name it in every copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, parsed_arguments, text_of
from kbd.sources.memory import RecentFiles, SeenFile, identifier, restore
from kbd.sources.times import read_time

_TRANSCRIPT = re.compile(r"[^.][^/]*?\.jsonl(?:\.(?:reset|deleted)\.[^/]+)?")
_COPY = re.compile(r"\.(?:checkpoint|trajectory)[.\-]")
_TYPES = frozenset(
    ["session", "message", "custom", "custom_message", "compaction", "branch_summary", "model_change",
     "thinking_level_change", "label", "session_info", "ephemeral", "context_transform", "leaf"]
)  # fmt: skip
_MIRRORS = frozenset(["delivery-mirror", "gateway-injected"])  # the gateway's own notes of what it sent


class _Role(msgspec.Struct):
    role: str | None = None


class _Head(msgspec.Struct):
    type: str | None = None
    timestamp: str | None = None
    message: _Role | None = None


_head = msgspec.json.Decoder(_Head)


def _skim(data: bytes) -> Json | None:
    head = _head.decode(data)
    role = head.message.role if head.message else None
    if head.type == "session" or head.type == "message" and role in ("assistant", None):
        return None
    return {"type": head.type, "timestamp": head.timestamp, "message": {"role": role}}


def _is_record(value: Json) -> bool:
    return text_of(value, "type") in _TYPES and "id" in value and "timestamp" in value


class OpenClaw:
    """Where OpenClaw writes; the root may be its state folder or anything above or at a `sessions` folder."""

    agent = "openclaw"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$OPENCLAW_STATE_DIR`, else the state folders of all its names."""
        named = env.get("OPENCLAW_STATE_DIR")
        return [named] if named else [f"{home}/.{name}" for name in ("openclaw", "clawdbot", "moltbot", "moldbot")]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take live, reset and deleted sessions; checkpoints and trajectories are copies."""
        folder, _, name = relpath.rpartition("/")
        in_place = not folder or folder.rsplit("/", 1)[-1] == "sessions"
        taken = in_place and _TRANSCRIPT.fullmatch(name) and not _COPY.search(name)
        return FileKind.LINES if taken else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> EntryDecoder:
        """Return a decoder for one session file."""
        return EntryDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    session: str = ""
    copied_from: list[str] = []
    cwd: str | None = None
    files: list[SeenFile] = []


class EntryDecoder:
    """Decodes version 3 session files, OpenClaw's and Pi's."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._now = restore(state, _State)
        self._files = RecentFiles(self._now.files)
        self._stem = relpath.rsplit("/", 1)[-1].partition(".jsonl")[0]
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return nothing: no line stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return identity, working directory and recent files."""
        self._now.files = self._files.saved()
        return msgspec.json.encode(self._now)

    def _item(self, line: Json, offset: int) -> Item:
        kind = text_of(line, "type")
        message = object_of(line, "message")
        at = read_time(line.get("timestamp"), self._tz) or read_time(message.get("timestamp"), self._tz)
        if kind == "session":
            self._begin(line)
        if kind != "message" or message.get("role") != "assistant" or text_of(message, "model") in _MIRRORS:
            return Item(RecordKind.RECOGNISED if kind in _TYPES else RecordKind.UNKNOWN, at=at)
        entry_id, written_at = identifier(line.get("id")), text_of(line, "timestamp")
        native_id = f"{entry_id}@{written_at}" if entry_id and written_at else None
        blocks = tuple(_blocks(message.get("content"), native_id))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        found = Message(
            native_id,
            SessionId(self._now.session or self._stem),
            entry_id or "",
            at,
            self._now.cwd,
            blocks,
            offset,
            recent=self._files.before(at),
            copied_from=tuple(SessionId(origin) for origin in self._now.copied_from),
        )
        self._files.note(blocks, self._now.cwd, at)
        return Item(RecordKind.MESSAGE, (found,), at)

    def _begin(self, header: Mapping[str, object]) -> None:
        if self._now.session:
            return
        self._now.session = identifier(header.get("id")) or self._stem
        self._now.cwd = text_of(header, "cwd") or None
        origins = (_origin(header.get(key)) for key in ("parentSession", "branchedFrom"))
        self._now.copied_from = [origin for origin in dict.fromkeys(origins) if origin]


def _origin(value: object) -> str | None:
    """Return the session a header names as the one it was copied from: an id, or the path of its file."""
    if isinstance(value, dict):
        value = value.get("id") or value.get("sessionId")
    found = value.replace("\\", "/").rsplit("/", 1)[-1].partition(".jsonl")[0] if isinstance(value, str) else None
    return identifier(found.rsplit("_", 1)[-1] if found else None)


def _blocks(content: object, native_id: str | None) -> Iterator[Block]:
    """Yield the agent's blocks; a tool call's id is unique within its entry only."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        match text_of(block, "type"):
            case "text" if text_of(block, "text").strip():
                yield Block(Author.AGENT_TEXT, text_of(block, "text"))
            case "thinking" if text_of(block, "thinking").strip():
                yield Block(Author.THINKING, text_of(block, "thinking"))
            case "toolCall" | "toolUse" | "tool_use" | "functionCall":
                given = next((block[key] for key in ("arguments", "input") if key in block), None)
                call = tool_call(text_of(block, "name"), parsed_arguments(given))
                call_id = identifier(block.get("id"))
                block_id = f"{native_id}:{call_id}" if native_id and call_id else None
                yield Block(Author.AGENT_TOOL_INPUT, call.written, block_id, call)


FORMAT = OpenClaw()
