"""OpenTelemetry GenAI: exported spans and log records as JSONL, OTLP or flat; what the model put out counts.

`gen_ai.input.messages` repeats the whole history of a call. A span that encloses others may repeat what they put out,
so words of one trace count once over a span and the one it encloses, be they in two files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.sources.chatturns import Turn, blocks_of, is_agent
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, read_all, read_value, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.otlp import Span, spans_of
from kbd.sources.times import read_time

REMEMBERED_OUTPUTS = 1024

_TRANSCRIPT = re.compile(r"(?:.*/)?[^/.][^/]*\.(?:jsonl|ndjson|json)(\.gz)?")
_SESSION_KEYS = ("gen_ai.conversation.id", "session.id", "gen_ai.session.id", "thread.id")
_ENCLOSING = frozenset(["invoke_agent", "create_agent", "invoke_workflow", "execute_tool"])
_COMPLETION = re.compile(r"gen_ai\.completion\.(\d+)\.content")


def _is_record(value: Json) -> bool:
    return spans_of(value) is not None


class OtelGenAi:
    """Exported telemetry in a folder a person names."""

    agent = "otel-genai"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return nothing: a person names the folder."""
        return []

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take JSON by its suffix; an exporter's `.json` is lines as well."""
        found = _TRANSCRIPT.fullmatch(relpath)
        return None if found is None else FileKind.GZIP if found[1] else FileKind.LINES

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> SpanDecoder:
        """Return a decoder for one file; its spans name their sessions."""
        return SpanDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    said: dict[str, tuple[str, str, bool]] = {}


class SpanDecoder:
    """The output of a span is a message, known by trace and span."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._said = restore(state, _State).said
        self._named = re.sub(r"\.(?:jsonl|ndjson|json)(?:\.gz)?$", "", relpath)
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line, which may hold many spans; `observed` is not needed."""
        return decode_record(record, read_all, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return nothing: spans are written when they end."""
        return NOTHING

    def state(self) -> bytes:
        """Return digests of the newest outputs, each with its span and that span's parent."""
        return msgspec.json.encode(_State(self._said))

    def _item(self, line: Json, offset: int) -> Item:
        spans = spans_of(line)
        if spans is None:
            return Item(RecordKind.UNKNOWN)
        messages: list[Message] = []
        newest: datetime | None = None
        for span in spans:
            at = read_time(span.at, self._tz)
            newest = max(filter(None, (newest, at)), default=None)
            messages += self._messages(span, at, offset)
        return Item(RecordKind.MESSAGE if messages else RecordKind.RECOGNISED, tuple(messages), newest)

    def _messages(self, span: Span, at: datetime | None, offset: int) -> Iterator[Message]:
        named = (identifier(span.attributes.get(key)) for key in _SESSION_KEYS)
        session = next((name for name in named if name), None) or span.trace or self._named
        found = (tuple(blocks_of(turn, native=True)) for turn in _outputs(span))
        outputs = {_digest(blocks): blocks for blocks in found}  # attributes may be told again in an event
        new = {key: blocks for key, blocks in outputs.items() if self._is_new(span, key) and blocks}
        name = f"{span.trace}:{span.id}" if span.trace and span.id else None
        one = Message(name, SessionId(session), span.id, at, None, (), offset, encloses=_encloses(span))
        # What a span around others tells is told apart: its parts may be those of several spans within.
        for keys in [[key] for key in new] if one.encloses else [list(new)] if new else []:
            blocks = tuple(block for key in keys for block in new[key])
            words = tuple(f"{span.trace}:{key}" for key in keys) if name else ()
            is_part = one.encloses and name is not None and len(outputs) > 1
            yield replace(one, native_id=f"{name}:{keys[0]}" if is_part else name, blocks=blocks, words=words)
        for turn in _told(span) if not outputs else ():
            blocks = tuple(blocks_of(turn, native=True))
            if blocks:
                yield Message(f"{session}:{_digest(blocks)}", SessionId(session), span.id, at, None, blocks, offset)

    def _is_new(self, span: Span, digest: str) -> bool:
        """Whether these words are not those of a span around this one or within it."""
        key = f"{span.trace}:{digest}"
        encloses = _encloses(span)
        known = self._said.pop(key, None) if span.trace and span.id else None
        self._said[key] = known or (span.id, span.parent, encloses)
        if len(self._said) > REMEMBERED_OUTPUTS:
            del self._said[next(iter(self._said))]
        if known is None or known[0] == span.id:
            return True
        return not (encloses or known[2] or span.parent == known[0] or known[1] == span.id)


def _encloses(span: Span) -> bool:
    return text_of(span.attributes, "gen_ai.operation.name") in _ENCLOSING


def _digest(blocks: tuple[Block, ...]) -> str:
    words = "\n".join(f"{block.author.value}:{block.text}" for block in blocks)
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _outputs(span: Span) -> Iterator[Turn]:
    """Yield what the model put out, as turns: structured messages, or completions numbered in keys."""
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        yield from _turns(attributes.get("gen_ai.output.messages"))
    for key, value in span.attributes.items():
        if _COMPLETION.fullmatch(key) and isinstance(value, str):
            yield {"role": "assistant", "content": value}


def _told(span: Span) -> Iterator[Turn]:
    """Yield the agent's turns that older conventions tell as events; those put in are earlier ones put out."""
    for event in span.events:
        if event.name in ("gen_ai.choice", "gen_ai.assistant.message"):
            for told in (event.body, event.attributes):
                turn = _structure(told)
                inner = _structure(turn.get("message")) if isinstance(turn, dict) else None
                yield from _turns([inner or turn])


def _turns(value: object) -> Iterator[Turn]:
    found = _structure(value)
    for turn in found if isinstance(found, list) else [found]:
        if isinstance(turn, dict) and is_agent({"role": turn.get("role") or "assistant"}):
            parts = _structure(turn.get("parts"))
            if not isinstance(parts, list) or not parts:
                yield turn
                continue
            yield {**turn, "parts": [_part(parts[0])]}
            for part in parts[1:]:  # each for itself: an enclosing span may join what others put out
                yield {"parts": [_part(part)]}


def _structure(value: object) -> object:
    """Return a value that may have been written as JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return read_value(value.encode("utf-8", "replace"))
    return value


def _part(part: object) -> object:
    """Return a part in the form of other chat records: its words are under `content` here."""
    if isinstance(part, dict) and "text" not in part and isinstance(part.get("content"), str):
        return {**part, "text": part["content"]}
    return part


FORMAT = OtelGenAi()
