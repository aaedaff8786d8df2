"""Antigravity CLI: a JSONL of steps per conversation, where `source: MODEL` marks tool results as well.

Only planner responses are the agent's. The values of a call's arguments are JSON inside JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, objects_of, parsed_arguments, read_value, skim_by_type, text_of
from kbd.sources.memory import restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import read_time

_TRANSCRIPT = re.compile(r"(?:.*/)?([^/]+)/\.system_generated/logs/transcript\.jsonl")
_skim = skim_by_type(frozenset(["PLANNER_RESPONSE"]))


def _is_record(value: Json) -> bool:
    return "step_index" in value and "type" in value


class Antigravity:
    """Where Antigravity writes: one folder per conversation below `brain`."""

    agent = "antigravity"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the folder beside Gemini CLI's."""
        return [f"{env.get('GEMINI_CLI_HOME') or home}/.gemini/antigravity-cli"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the transcript of a conversation, not the artifacts beside it."""
        return FileKind.LINES if _TRANSCRIPT.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> StepDecoder:
        """Return a decoder for one conversation."""
        return StepDecoder(relpath, state, tz)


class StepDecoder:
    """Planner responses become messages, known by conversation and step."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._thread = Thread(restore(state, ThreadState))
        found = _TRANSCRIPT.fullmatch(relpath)
        self._session = found[1] if found else relpath
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        return decode_record(record, _skim, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return nothing: no step stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the first times of steps and recent files."""
        return msgspec.json.encode(self._thread.saved())

    def _item(self, step: Json, offset: int) -> Item:
        at = read_time(step.get("created_at"), self._tz)
        if text_of(step, "type") != "PLANNER_RESPONSE":
            return Item(RecordKind.RECOGNISED if text_of(step, "type") else RecordKind.UNKNOWN, at=at)
        index = step.get("step_index")
        place = str(index) if isinstance(index, int) else ""
        blocks = tuple(_blocks(step))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        native_id = f"{self._session}:{place}" if place else None
        made = self._thread.message(native_id, self._session, place, at, None, blocks, offset, is_named=True)
        return Item(RecordKind.MESSAGE, (made,), at)


def _blocks(step: Mapping[str, object]) -> Iterator[Block]:
    if text_of(step, "thinking").strip():
        yield Block(Author.THINKING, text_of(step, "thinking"))
    if text_of(step, "content").strip():
        yield Block(Author.AGENT_TEXT, text_of(step, "content"))
    for index, call in enumerate(objects_of(step, "tool_calls")):
        arguments = {key: _plain(value) for key, value in parsed_arguments(call.get("args")).items()}
        found = tool_call(text_of(call, "name"), arguments)
        yield Block(Author.AGENT_TOOL_INPUT, found.written, f"c{index}", found)


def _plain(value: object) -> object:
    """Return an argument as the agent meant it: a text that is JSON of a text or a structure is that."""
    if not isinstance(value, str) or value[:1] not in ('"', "[", "{"):
        return value
    inner = read_value(value.encode("utf-8", "replace"))
    return value if inner is None else inner


FORMAT = Antigravity()
