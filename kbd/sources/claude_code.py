"""Claude Code: one JSONL file per session, one line per content block, sub-agents in files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.core.redact import redact
from kbd.core.seam import SEAM_CHARS
from kbd.core.toolinput import tool_call
from kbd.sources.contract import IGNORED, NOTHING, UNKNOWN, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, read_all, text_of
from kbd.sources.memory import FirstTime, FirstTimes, RecentFiles, SeenFile, identifier, restore
from kbd.sources.messagefiles import MessageFiles, NamedFiles
from kbd.sources.times import read_time

# Side folders of a configuration folder; what lies in them is no transcript though it may end in .jsonl.
_SIDE_FOLDERS = frozenset(
    ["todos", "file-history", "plans", "memory", "tool-results", "statsig", "shell-snapshots", "debug", "logs", "ide",
     "plugins", "agents", "commands", "skills", "hooks", "backups", "cache", "session-env", "tasks", "teams",
     "telemetry", "usage-data", "paste-cache", "downloads", "local", "projects", "sessions", "subagents"]
)  # fmt: skip
_SIDE_FILES = frozenset(["history.jsonl", "journal.jsonl"])
_AGENT_FILE = re.compile(r"agent-[^/]+\.jsonl")
_KNOWN_TYPES = frozenset(
    ["user", "attachment", "system", "progress", "queue-operation", "file-history-snapshot", "summary", "ai-title",
     "custom-title", "agent-name", "last-prompt", "mode", "permission-mode", "pr-link", "frame-link", "worktree-state",
     "relocated", "bridge-session", "started", "result", "atis-latch", "tool_use", "tool_result", "agent-color",
     "agent-setting", "tag", "task-summary", "content-replacement", "marble-origami-commit", "speculation-accept"]
)  # fmt: skip
_RECOGNISED, _UNKNOWN = (RecordKind.RECOGNISED,), (RecordKind.UNKNOWN,)
_TOOL_BLOCKS = frozenset(["tool_use", "server_tool_use", "mcp_tool_use"])


class _Head(msgspec.Struct):
    type: str | None = None
    timestamp: str | None = None


class _Content(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    name: str = ""
    id: object = None
    input: dict[str, object] = {}


class _Turn(msgspec.Struct):
    id: object = None
    model: object = None
    role: object = "assistant"
    content: str | list[_Content] = ""


class _Line(msgspec.Struct):
    """What is read of an assistant's line."""

    type: str = ""
    timestamp: object = None
    uuid: str = ""
    cwd: str = ""
    sessionId: object = None
    isApiErrorMessage: object = None
    isCompactSummary: object = None
    message: _Turn = msgspec.field(default_factory=_Turn)


_head, _line = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_Line)


def _is_record(value: Json) -> bool:
    return isinstance(value.get("type"), str) and any(key in value for key in ("timestamp", "sessionId", "uuid"))


def _place(relpath: str) -> list[str]:
    """Return the parts of a path below the project's folder; empty if it lies in no project."""
    parts = relpath.split("/")
    for index, part in enumerate(parts[:-1]):
        if part == "projects" and (index == 0 or parts[index - 1] == ".claude"):
            return parts[index + 2 :]
    if len(parts) == 1 or "subagents" in parts[:2]:  # the root is a project
        return parts
    return [] if parts[0] in _SIDE_FOLDERS or parts[0].startswith(".") else parts[1:]


class ClaudeCode:
    """Where Claude Code writes; the root may be its folder, the `projects` in it, or one project."""

    agent = "claude-code"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return what the environment names (comma lists), else the two usual places."""
        named = ",".join(env.get(name, "") for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"))
        roots = [root.strip() for root in named.split(",") if root.strip()]
        config = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return list(dict.fromkeys(roots)) or [f"{home}/.claude", f"{config}/claude"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take sessions and sub-agents, never the memory, the journals or the tool results beside them."""
        parts = _place(relpath)
        if not parts or not parts[-1].endswith(".jsonl") or parts[-1] in _SIDE_FILES or parts[-1].startswith("."):
            return None
        if len(parts) == 1:
            return FileKind.LINES
        inside = "subagents" in parts[:2] and _AGENT_FILE.fullmatch(parts[-1]) is not None
        return FileKind.LINES if inside else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> ClaudeDecoder:
        """Return a decoder for one file."""
        return ClaudeDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    first: list[FirstTime] = []
    files: list[SeenFile] = []
    said: tuple[str, str] = ("", "")
    named: list[NamedFiles] = []


class ClaudeDecoder:
    """Assistant lines become messages; everything else is recognised and left out.

    The lines of one message stand apart in the file, so a message comes in pieces with the same id and the same time.
    """

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        saved = restore(state, _State)
        parts = relpath.split("/")
        above = parts.index("subagents") if "subagents" in parts else 0
        self._trunk = parts[above - 1] if above else ""
        self._stem = parts[-1].removesuffix(".jsonl")
        self._tz = tz
        self._first = FirstTimes(saved.first)
        self._files = RecentFiles(saved.files)
        self._said = saved.said
        self._named = MessageFiles(saved.named)

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        try:
            head = _head.decode(record.data)
            if head.type != "assistant":  # most lines
                kinds = _RECOGNISED if head.type in _KNOWN_TYPES else _UNKNOWN
                return Decoded(kinds, (), read_time(head.timestamp, self._tz))
            line = _line.decode(record.data)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return decode_record(record, read_all, _is_record, self._item)
        one = self._assistant(line, record.offset)
        return Decoded((one.kind,), one.messages, one.at)

    def flush(self) -> Decoded:
        """Return nothing: no line stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the remembered message times and files, and how the last text ended."""
        said = (self._said[0], redact(self._said[1]))  # what is returned is kept
        return msgspec.json.encode(_State(self._first.saved(), self._files.saved(), said, self._named.saved()))

    def _item(self, line: Json, offset: int) -> Item:
        """Take a line whose values may be of any type."""
        if line.get("type") == "assistant":
            return self._assistant(_as_line(line), offset)
        known = text_of(line, "type") in _KNOWN_TYPES
        return Item((IGNORED if known else UNKNOWN).kind, at=read_time(line.get("timestamp"), self._tz))

    def _assistant(self, line: _Line, offset: int) -> Item:
        at = read_time(line.timestamp, self._tz)
        message = line.message
        native_id = identifier(message.id)
        harness = message.model == "<synthetic>" or line.isApiErrorMessage or line.isCompactSummary
        if harness or message.role != "assistant":
            return Item(RecordKind.RECOGNISED, at=at)
        began = self._first.of(native_id, at)
        blocks = tuple(_blocks(message.content))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        cwd = line.cwd or None
        goes_on = native_id is not None and native_id == self._said[0] and blocks[0].author is Author.AGENT_TEXT
        found = Message(
            native_id,
            SessionId(self._trunk or identifier(line.sessionId) or self._stem),
            line.uuid,
            began,
            cwd,
            blocks,
            offset,
            recent=self._files.before(at),
            before=redact(self._said[1]) if goes_on else "",
            earlier=self._named.take(native_id, blocks, cwd),
        )
        last = blocks[-1]
        self._said = (native_id or "", last.text[-SEAM_CHARS:] if last.author is Author.AGENT_TEXT else "")
        self._files.note(blocks, cwd, at)
        return Item(RecordKind.MESSAGE, (found,), at)


def _as_line(line: Json) -> _Line:
    """Return a line read without types; what is of another type than it should be counts as absent."""
    turn = object_of(line, "message")
    content = turn.get("content")
    blocks = [
        _Content(
            text_of(block, "type"),
            text_of(block, "text"),
            text_of(block, "thinking"),
            text_of(block, "name"),
            block.get("id"),
            dict(object_of(block, "input")),
        )
        for block in objects_of(turn, "content")
    ]
    return _Line(
        "assistant",
        line.get("timestamp"),
        text_of(line, "uuid"),
        text_of(line, "cwd"),
        line.get("sessionId"),
        line.get("isApiErrorMessage"),
        line.get("isCompactSummary"),
        _Turn(
            turn.get("id"),
            turn.get("model"),
            turn.get("role", "assistant"),
            content if isinstance(content, str) else blocks,
        ),
    )


def _blocks(content: str | list[_Content]) -> Iterator[Block]:
    """Yield the agent's blocks of a message: text (a plain string in old files), thinking, tool calls."""
    for block in [_Content("text", content)] if isinstance(content, str) else content:
        match block.type:
            case "text" if block.text.strip():
                yield Block(Author.AGENT_TEXT, block.text)
            case "thinking" if block.thinking.strip():
                yield Block(Author.THINKING, block.thinking)
            case kind if kind in _TOOL_BLOCKS:
                call = tool_call(block.name, block.input)
                yield Block(Author.AGENT_TOOL_INPUT, call.written, identifier(block.id), call)


FORMAT = ClaudeCode()
