"""OpenAI Codex CLI: rollouts as JSONL, each reply written up to three times, forks that begin with a copy.

Only `response_item` lines count. Files from before they existed have the reply in an `agent_message` event alone; such
an event waits until its turn ends without any item of the agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, LineCite, Message, Record, RecordKind, SessionId
from kbd.core.toolinput import tool_call
from kbd.sources.contract import FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, parsed_arguments, text_of
from kbd.sources.memory import RecentFiles, SeenFile, identifier, restore
from kbd.sources.times import from_micros, read_time, to_micros

MAX_WAITING = 32
_RANDOM_ID_CHARS = 16
"""A shorter id (`msg_1`, `call_1`) numbers the items of one rollout; another rollout may have it as well."""

_ROLLOUT = re.compile(r"(?:^|/)rollout-(?!compress-)[^/]*\.jsonl(\.zst)?$")
_THREAD = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_CITATION = re.compile(r"<oai-mem-citation>(.*?)(?:</oai-mem-citation>|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[a-z_]+>")
_CITED_LINES = re.compile(r"^[ \t]*([^\s<>|][^\n|<>]*?):(\d{1,9})(?:-(\d{1,9}))?[ \t]*(?:\|.*)?$", re.MULTILINE)

_CALLS = frozenset(["function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"])
_OTHER_ITEMS = frozenset(
    ["function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output",
     "ghost_snapshot", "compaction", "compaction_summary", "agent_message", "image_generation_call", "other",
     "additional_tools", "compaction_trigger", "context_compaction"]
)  # fmt: skip
_ITEMS = _CALLS | {"message", "reasoning"}
_LINES = frozenset(
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
     "inter_agent_communication", "inter_agent_communication_metadata", "session_state"]
)  # fmt: skip
_TURN_ENDS = frozenset(
    ["user_message", "task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted",
     "shutdown_complete"]
)  # fmt: skip


class _Payload(msgspec.Struct):
    type: str | None = None
    role: str | None = None


class _Head(msgspec.Struct):
    type: str | None = None
    timestamp: str | None = None
    payload: _Payload | None = None


_head = msgspec.json.Decoder(_Head)


def _skim(data: bytes) -> Json | None:
    head = _head.decode(data)
    payload = head.payload
    if payload is None or head.type in ("session_meta", "turn_context") or payload.type == "agent_message":
        return None
    if head.type == "response_item" and payload.type in _ITEMS and payload.role in (None, "assistant"):
        return None
    return {"type": head.type, "timestamp": head.timestamp, "payload": {"type": payload.type, "role": payload.role}}


def _is_record(value: Json) -> bool:
    return text_of(value, "type") in _LINES and "payload" in value


class Codex:
    """Where Codex writes; one thread has one file name, in `sessions` or in the archive, compressed or not."""

    agent = "codex"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$CODEX_HOME` or its default."""
        return [env.get("CODEX_HOME") or f"{home}/.codex"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take rollouts by name, wherever they lie."""
        found = _ROLLOUT.search(relpath)
        return None if found is None else FileKind.ZSTD if found[1] else FileKind.LINES

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> CodexDecoder:
        """Return a decoder for one rollout."""
        return CodexDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    session: str = ""
    copied_from: list[str] = []
    cwd: str | None = None
    began: int | None = None
    has_items: bool = False
    waiting: list[tuple[int, int | None, str]] = []
    files: list[SeenFile] = []
    thread: str = ""


class CodexDecoder:
    """Items of the agent become messages; the first `session_meta` says whose they are."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the rollout, or where `state` left off."""
        self._now = restore(state, _State)
        self._files = RecentFiles(self._now.files)
        self._tz = tz
        name = relpath.rsplit("/", 1)[-1].removesuffix(".zst").removesuffix(".jsonl")
        threads = _THREAD.findall(name)
        self._named = threads[-1] if threads else name

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return the replies that wait for the end of their turn."""
        return Decoded((), self._waiting(), None)

    def state(self) -> bytes:
        """Return identity, working directory, waiting replies and recent files."""
        self._now.files = self._files.saved()
        return msgspec.json.encode(self._now)

    def _item(self, line: Json, offset: int) -> Item:
        at = read_time(line.get("timestamp"), self._tz)
        kind = text_of(line, "type")
        payload = object_of(line, "payload")
        match kind:
            case "session_meta":
                self._begin(payload)
            case "turn_context":
                self._now.cwd = text_of(payload, "cwd") or self._now.cwd
            case "response_item":
                return self._response(payload, at, offset)
            case "event_msg":
                return self._event(payload, at, offset)
            case _ if kind in _ITEMS | _OTHER_ITEMS and "payload" not in line:
                return self._response(line, at, offset)  # the first versions wrote items without an envelope
            case "" if "payload" not in line and ("id" in line or "record_type" in line):
                self._begin(line)
            case _ if kind not in _LINES:
                return Item(RecordKind.UNKNOWN, at=at)
        return Item(RecordKind.RECOGNISED, at=at)

    def _begin(self, meta: Mapping[str, object]) -> None:
        """Take the identity of the thread from its first `session_meta`; later ones are a parent's, copied."""
        thread = identifier(meta.get("id"))
        if self._now.session or thread is None:
            return
        spawn = object_of(object_of(object_of(meta, "source"), "subagent"), "thread_spawn")
        parents = [meta.get("session_id"), meta.get("parent_thread_id"), spawn.get("parent_thread_id")]
        trunk = next((found for found in map(identifier, parents) if found and found != thread), thread)
        origins = [trunk, *map(identifier, [meta.get("forked_from_id"), *parents[1:]])]
        self._now.session, self._now.thread = trunk, thread if trunk != thread else ""
        self._now.copied_from = [origin for origin in dict.fromkeys(origins) if origin and origin != thread]
        self._now.cwd = text_of(meta, "cwd") or None
        self._now.began = to_micros(read_time(meta.get("timestamp"), self._tz))

    def _response(self, item: Mapping[str, object], at: datetime | None, offset: int) -> Item:
        kind = text_of(item, "type")
        if kind not in _ITEMS:
            return Item(RecordKind.RECOGNISED if kind in _OTHER_ITEMS else RecordKind.UNKNOWN, at=at)
        if kind == "message" and item.get("role") != "assistant":
            return Item(RecordKind.RECOGNISED, at=at)
        self._now.has_items, self._now.waiting = True, []
        text, cites = _without_citations(_message_text(item)) if kind == "message" else ("", ())
        blocks = tuple(_blocks(kind, item, text))
        if not blocks and not cites:
            return Item(RecordKind.RECOGNISED, at=at)
        blocks = blocks or (Block(Author.AGENT_TEXT, text),)
        found = self._message(_native_id(item, at, blocks), at, blocks, offset, cites)
        self._files.note(blocks, self._now.cwd, at)
        return Item(RecordKind.MESSAGE, (found,), at)

    def _event(self, event: Mapping[str, object], at: datetime | None, offset: int) -> Item:
        kind = text_of(event, "type")
        if kind == "agent_message" and not self._now.has_items and text_of(event, "message").strip():
            self._now.waiting = [*self._now.waiting, (offset, to_micros(at), text_of(event, "message"))][-MAX_WAITING:]
        if kind not in _TURN_ENDS:
            return Item(RecordKind.RECOGNISED, at=at)
        ended, self._now.waiting = self._waiting(), []
        return Item(RecordKind.RECOGNISED, ended, at)

    def _waiting(self) -> tuple[Message, ...]:
        messages = []
        for offset, micros, text in self._now.waiting:
            text, cites = _without_citations(text)
            block = Block(Author.AGENT_TEXT, text)
            messages.append(self._message(None, from_micros(micros), (block,), offset, cites))
        return tuple(messages)

    def _message(
        self,
        native_id: str | None,
        at: datetime | None,
        blocks: tuple[Block, ...],
        offset: int,
        cites: tuple[LineCite, ...],
    ) -> Message:
        return Message(
            native_id,
            SessionId(self._now.session or self._named),
            (native_id or "").partition("@")[0],
            at or from_micros(self._now.began),
            self._now.cwd,
            blocks,
            offset,
            recent=self._files.before(at),
            cites=cites,
            copied_from=tuple(SessionId(origin) for origin in self._now.copied_from),
            thread=self._now.thread,
            renumbered="@" in (native_id or ""),
        )


def _native_id(item: Mapping[str, object], at: datetime | None, blocks: Sequence[Block]) -> str | None:
    """Return the id of an item; one that only numbers it is joined by its time and words, else told by its lineage."""
    given = identifier(item.get("id")) or identifier(item.get("call_id"))
    if given is None or len(given) >= _RANDOM_ID_CHARS:
        return identifier(item.get("id"))
    words = "\n".join(block.text for block in blocks)
    digest = hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{given}@{at.isoformat() if at else ''}:{digest}"


def _message_text(item: Mapping[str, object]) -> str:
    """Return the text of a message; its parts are one stream."""
    if isinstance(item.get("content"), str):
        return text_of(item, "content")
    parts = objects_of(item, "content")
    return "".join(text_of(part, "text") for part in parts if text_of(part, "type") in ("output_text", "text"))


def _without_citations(text: str) -> tuple[str, tuple[LineCite, ...]]:
    """Return a reply without its memory citations, and the lines those name."""
    if "<oai-mem-citation>" not in text:
        return text, ()
    blocks = (_TAG.sub("\n", block) for block in _CITATION.findall(text))  # also those written on one line
    found = [cited for block in blocks for cited in _CITED_LINES.finditer(block)]
    cites = (LineCite(cited[1].strip(), int(cited[2]), int(cited[3] or cited[2])) for cited in found)
    return _CITATION.sub("", text), tuple(dict.fromkeys(cites))


def _blocks(kind: str, item: Mapping[str, object], text: str) -> Iterator[Block]:
    if kind == "message":
        if text.strip():
            yield Block(Author.AGENT_TEXT, text)
    elif kind == "reasoning":
        parts = [*objects_of(item, "summary"), *objects_of(item, "content")]
        thought = "\n".join(text_of(part, "text") for part in parts)
        if thought.strip():
            yield Block(Author.THINKING, thought)
    else:
        call = tool_call(*_name_and_input(kind, item))
        yield Block(Author.AGENT_TOOL_INPUT, call.written, identifier(item.get("call_id")), call)


def _name_and_input(kind: str, item: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    match kind:
        case "function_call" | "custom_tool_call":
            space = text_of(item, "namespace").rstrip("_")
            name = f"{space}__{text_of(item, 'name')}" if space else text_of(item, "name")
            return name, parsed_arguments(item.get("arguments" if kind == "function_call" else "input"))
        case "local_shell_call":
            action = object_of(item, "action")
            return "local_shell", {"command": action.get("command"), "workdir": action.get("working_directory")}
        case _:
            return kind.removesuffix("_call"), object_of(item, "action")


FORMAT = Codex()
