"""Gemini CLI: chats as JSONL where a message is appended again whenever it grows; before 0.40 as one JSON file.

A message id is unique in its session. `$set` may replace the whole list: what appears there first, after the agent has
spoken, was put together by the program (compressed or masked history), also when it is appended again later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.chatturns import blocks_of
from kbd.sources.contract import NOTHING, FileKind, Item, gather
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, read_all, read_value, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import read_time

REMEMBERED_IDS = 1024

_CHAT = re.compile(r"(?:(?:.*/)?chats/)?session-[^/]*\.json(l?)|(?:.*/)?chats/[^/.][^/]*/[^/.][^/]*\.json(l)")
_AGENT_TYPES = frozenset(["gemini", "model", "qwen"])
_TYPES = _AGENT_TYPES | {"user", "info", "error", "warning"}


def _is_record(value: Json) -> bool:
    return "$set" in value or "$rewindTo" in value or "id" in value and "type" in value or "sessionId" in value


class GeminiCli:
    """Where Gemini CLI writes; the root may be its folder, the `tmp` in it, a project or its `chats`."""

    agent = "gemini-cli"
    in_projects = False

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the folder below `$GEMINI_CLI_HOME` or the home."""
        return [f"{env.get('GEMINI_CLI_HOME') or home}/.gemini"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take chats and the chats of sub-agents, never logs of prompts or checkpoints."""
        return chat_kind(relpath)

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> GeminiDecoder:
        """Return a decoder for one chat."""
        return GeminiDecoder(relpath, state, tz)

    def workplace(self, relpath: str, path: str, read: Callable[[str], bytes | None]) -> str | None:
        """Return the project's root, named by a mark in the project's folder or by the registry of all projects."""
        folder = f"/{relpath}".rpartition("/chats/")[0].strip("/")
        mark = (read(f"{folder}/.project_root") or b"").decode("utf-8", "replace").strip() if folder else ""
        above, _, slug = folder.rpartition("/")
        if mark or above.rpartition("/")[2] != "tmp":
            return mark or None
        registry = read_value(read(f"{above.removesuffix('tmp')}projects.json") or b"")
        return _root_named(slug, registry if isinstance(registry, dict) else {})


def _root_named(slug: str, registry: Mapping[str, object]) -> str | None:
    """Return the project's root that has a folder's name; older folders are named by the root's hash."""
    roots = object_of(registry, "projects") or registry
    for root, name in roots.items():
        if slug in (name, hashlib.sha256(root.encode("utf-8", "replace")).hexdigest()):
            return root
    return None


def chat_kind(relpath: str) -> FileKind | None:
    """Return how a chat file is read, None for any other."""
    found = _CHAT.fullmatch(relpath)
    return None if found is None else FileKind.LINES if found[1] or found[2] else FileKind.DOCUMENT


class _State(msgspec.Struct, array_like=True):
    session: str = ""
    cwd: str | None = None
    seen: list[str] = []
    program: list[str] = []
    thread: ThreadState = msgspec.field(default_factory=ThreadState)


class GeminiDecoder:
    """Agent messages, each time they are written; the ledger keeps the fullest."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._now = restore(state, _State)
        self._thread = Thread(self._now.thread)
        self._seen = dict.fromkeys(self._now.seen)
        self._program = dict.fromkeys(self._now.program)
        self._is_document = chat_kind(relpath) is FileKind.DOCUMENT
        parts = relpath.split("/")
        self._stem = parts[-1].rpartition(".")[0]
        is_child = len(parts) > 1 and not parts[-1].startswith("session-")
        self._trunk = parts[-2] if is_child else ""
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line, or the whole file of old; `observed` is not needed."""
        if not self._is_document:
            return decode_record(record, read_all, _is_record, self._item)
        chat = read_value(record.data)
        if not isinstance(chat, dict):
            return gather([Item(RecordKind.MALFORMED if chat is None else RecordKind.UNKNOWN)])
        self._header(chat)
        return gather(self._message(turn, record.offset) for turn in objects_of(chat, "messages"))

    def flush(self) -> Decoded:
        """Return nothing: no message stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return identity, directory, the newest message ids (the program's apart) and recent files."""
        self._now.seen, self._now.program = list(self._seen), list(self._program)
        self._now.thread = self._thread.saved()
        return msgspec.json.encode(self._now)

    def _item(self, line: Json, offset: int) -> Item:
        if isinstance(line.get("$set"), dict):
            return self._update(object_of(line, "$set"), offset)
        if "type" in line:
            return self._message(line, offset)
        is_header = "sessionId" in line
        if is_header:
            self._header(line)
        return Item(RecordKind.RECOGNISED if is_header or "$rewindTo" in line else RecordKind.UNKNOWN)

    def _header(self, header: Mapping[str, object]) -> None:
        self._now.session = self._now.session or identifier(header.get("sessionId")) or ""
        folders = header.get("directories")
        if isinstance(folders, list) and folders and isinstance(folders[0], str):
            self._now.cwd = folders[0]

    def _update(self, update: Mapping[str, object], offset: int) -> Item:
        self._header(update)
        spoken, turns = bool(self._seen), list(objects_of(update, "messages"))
        for turn in turns:
            if spoken and _digest(turn.get("id")) not in self._seen:
                _remember(self._program, turn.get("id"))
        items = [self._message(turn, offset) for turn in turns]
        messages = tuple(message for item in items for message in item.messages)
        return Item(RecordKind.MESSAGE if messages else RecordKind.RECOGNISED, messages)

    def _message(self, turn: Mapping[str, object], offset: int) -> Item:
        at = read_time(turn.get("timestamp"), self._tz)
        kind = text_of(turn, "type")
        if kind not in _AGENT_TYPES:
            return Item(RecordKind.RECOGNISED if kind in _TYPES else RecordKind.UNKNOWN, at=at)
        if _digest(turn.get("id")) in self._program:
            return Item(RecordKind.RECOGNISED, at=at)
        _remember(self._seen, turn.get("id"))
        blocks = tuple(_blocks(turn))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        return Item(RecordKind.MESSAGE, (self._made(turn, at, blocks, offset),), at)

    def _made(self, turn: Mapping[str, object], at: datetime | None, blocks: tuple[Block, ...], offset: int) -> Message:
        own, given = self._now.session or self._stem, identifier(turn.get("id"))
        native_id = f"{own}:{given}" if given else None
        return self._thread.message(native_id, self._trunk or own, given or "", at, self._now.cwd, blocks, offset)


def _remember(ids: dict[str, None], message_id: object) -> None:
    digest = _digest(message_id)
    ids.pop(digest, None)
    ids[digest] = None
    if len(ids) > REMEMBERED_IDS:
        del ids[next(iter(ids))]


def _digest(message_id: object) -> str:
    return hashlib.blake2b((identifier(message_id) or "").encode("utf-8", "replace"), digest_size=6).hexdigest()


def _blocks(turn: Mapping[str, object]) -> Iterator[Block]:
    """Yield the agent's blocks; thoughts are apart, results and their display never are the agent's."""
    for thought in objects_of(turn, "thoughts"):
        words = f"{text_of(thought, 'subject')}\n{text_of(thought, 'description')}"
        if words.strip():
            yield Block(Author.THINKING, words)
    yield from blocks_of({key: turn[key] for key in ("content", "parts") if key in turn}, native=True)
    for call in objects_of(turn, "toolCalls"):
        found = tool_call(text_of(call, "name"), object_of(call, "args"))
        yield Block(Author.AGENT_TOOL_INPUT, found.written, identifier(call.get("id")), found)


FORMAT = GeminiCli()
