"""Qwen Code: JSONL records with uuids; a branch copies its parent's records under the same uuids.

A record may come in fragments under one uuid. Its first versions wrote Gemini CLI's chats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, Decoder, FileKind, Item
from kbd.sources.gemini_cli import GeminiDecoder, chat_kind
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, skim_by_type, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import read_time

_CHAT = re.compile(r"(?:.*/)?chats/(?:archive/)?[^/.][^/]*\.jsonl|(?:archive/)?[0-9a-f]{8}-?[0-9a-f-]{20,32}\.jsonl")
_OWN_FOLDER = re.compile(r"(?:^|/)(?:projects/.*|archive/[^/]*\.jsonl)$")
_TYPES = frozenset(["user", "assistant", "tool_result", "system"])
_skim = skim_by_type(frozenset(["assistant"]))


def _is_record(value: Json) -> bool:
    return "uuid" in value and "type" in value


class QwenCode:
    """Where Qwen Code writes; the root may be its folder, a project or its `chats`."""

    agent = "qwen-code"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return what the environment names, else the usual place."""
        named = [env[name] for name in ("QWEN_RUNTIME_DIR", "QWEN_HOME") if env.get(name)]
        return list(dict.fromkeys(named)) or [f"{home}/.qwen"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take chats, archived ones too, and those in Gemini CLI's form."""
        return chat_kind(relpath) or (FileKind.LINES if _CHAT.fullmatch(relpath) else None)

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> Decoder:
        """Return a decoder for one chat."""
        if chat_kind(relpath) is None or _OWN_FOLDER.search(relpath):
            return QwenDecoder(relpath, state, tz)
        return GeminiDecoder(relpath, state, tz)


class QwenDecoder:
    """Assistant records become messages; a copied one counts for the session it was copied from."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._thread = Thread(restore(state, ThreadState))
        self._stem = relpath.rsplit("/", 1)[-1].removesuffix(".jsonl")
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item, may_glue=True)

    def flush(self) -> Decoded:
        """Return nothing: no record stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the first times of messages, recent files and how the last text ended."""
        return msgspec.json.encode(self._thread.saved())

    def _item(self, line: Json, offset: int) -> Item:
        at = read_time(line.get("timestamp"), self._tz)
        kind = text_of(line, "type")
        if kind != "assistant" or text_of(line, "provenance") not in ("", "assistant_output"):
            return Item(RecordKind.RECOGNISED if kind in _TYPES else RecordKind.UNKNOWN, at=at)
        blocks = tuple(_blocks(object_of(line, "message")))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        uuid, fork = identifier(line.get("uuid")), object_of(line, "forkedFrom")
        origin = identifier(fork.get("sessionId"))
        session = identifier(line.get("sessionId")) or self._stem
        if origin and uuid and fork.get("messageUuid") == uuid:
            session = origin
        made = self._thread.message(
            uuid,
            session,
            uuid or "",
            at,
            text_of(line, "cwd") or None,
            blocks,
            offset,
            copied_from=(origin,) if origin else (),
            is_fragment=True,
        )
        return Item(RecordKind.MESSAGE, (made,), at)


def _blocks(message: Mapping[str, object]) -> Iterator[Block]:
    """Yield the agent's parts; adjacent texts are one stream."""
    text: list[str] = []
    for part in objects_of(message, "parts"):
        words = text_of(part, "text")
        if words and part.get("thought") is not True:
            text.append(words)
            continue
        yield from _said(text)
        text = []
        if isinstance(part.get("functionCall"), dict):
            call = object_of(part, "functionCall")
            found = tool_call(text_of(call, "name"), object_of(call, "args"))
            yield Block(Author.AGENT_TOOL_INPUT, found.written, identifier(call.get("id")), found)
        elif words.strip():
            yield Block(Author.THINKING, words)
    yield from _said(text)


def _said(pieces: list[str]) -> Iterator[Block]:
    text = "".join(pieces)
    if text.strip():
        yield Block(Author.AGENT_TEXT, text)


FORMAT = QwenCode()
