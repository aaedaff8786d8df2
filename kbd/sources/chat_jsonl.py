"""Generic chat JSONL: one message, one conversation or one API call a line; the assistant's turns count.

A logged call repeats the whole conversation before it. Turns before the last question that were seen in an earlier line
are that history; what follows the last question is always new.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.sources.chatturns import Turn, blocks_of, delta_of, is_agent, turns_of
from kbd.sources.contract import FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, text_of
from kbd.sources.memory import identifier, restore
from kbd.sources.times import from_micros, read_time, to_micros

REMEMBERED_TURNS = 1024
MAX_STREAM_CHARS = 256 * 1024

_TRANSCRIPT = re.compile(r"(?:.*/)?[^/.][^/]*\.(?:jsonl|ndjson)(\.gz)?")
_TIME_KEYS = ("timestamp", "ts", "time", "created_at", "createdAt", "created", "date", "datetime")
_SESSION_KEYS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId", "chat_id")


def _read_all(data: bytes) -> Json | None:
    return None


def _is_record(value: Json) -> bool:
    return delta_of(value) is not None or bool(turns_of(value))


class ChatJsonl:
    """JSONL files in a folder a person names."""

    agent = "chat-jsonl"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return nothing: a person names the folder."""
        return []

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take JSONL by its suffix."""
        found = _TRANSCRIPT.fullmatch(relpath)
        return None if found is None else FileKind.GZIP if found[1] else FileKind.LINES

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> ChatDecoder:
        """Return a decoder for one file, which is one session unless its records name theirs."""
        return ChatDecoder(relpath, state, tz)


class _Stream(msgspec.Struct, array_like=True):
    offset: int
    micros: int | None
    session: str
    pieces: list[str] = []
    size: int = 0


class _State(msgspec.Struct, array_like=True):
    seen: list[str] = []
    stream: _Stream | None = None


class ChatDecoder:
    """Assistant turns become messages; deltas of a stream are joined until another record comes."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        saved = restore(state, _State)
        self._seen = dict.fromkeys(saved.seen)
        self._stream = saved.stream
        self._name = re.sub(r"\.(?:jsonl|ndjson)(?:\.gz)?$", "", relpath)
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed: without a time of its own a message has none."""
        return decode_record(record, _read_all, _is_record, self._item)

    def flush(self) -> Decoded:
        """Return the stream that is still open, as far as it goes."""
        return Decoded((), self._streamed(), None)

    def state(self) -> bytes:
        """Return the open stream and the digests of the newest turns."""
        return msgspec.json.encode(_State(list(self._seen), self._stream))

    def _item(self, line: Json, offset: int) -> Item:
        at = self._time(line)
        piece = delta_of(line)
        if piece is not None:
            return Item(RecordKind.MESSAGE, self._add(piece, line, offset, at), at)
        messages = self._close()
        turns = turns_of(line)
        if turns is None:
            return Item(RecordKind.UNKNOWN, messages, at)
        own: list[Message] = []
        for turn in self._new(turns):
            own += self._message(turn, line, offset, self._time(turn) or at)
        return Item(RecordKind.MESSAGE if own else RecordKind.RECOGNISED, (*messages, *own), at)

    def _time(self, record: Turn) -> datetime | None:
        times = (read_time(record.get(key), self._tz) for key in _TIME_KEYS)
        return next((time for time in times if time is not None), None)

    def _session(self, line: Json) -> str:
        named = (identifier(line.get(key)) for key in _SESSION_KEYS)
        return next((name for name in named if name), self._name)

    def _new(self, turns: tuple[Turn, ...]) -> list[Turn]:
        """Return the agent's turns that are no repetition of an earlier line."""
        answer = max((index + 1 for index, turn in enumerate(turns) if not is_agent(turn)), default=0)
        new: list[Turn] = []
        before = b""
        for index, turn in enumerate(turns):
            here = _turn_bytes(turn)
            digest = hashlib.blake2b(before + here, digest_size=8).hexdigest()
            before = here
            known = digest in self._seen
            if is_agent(turn) and (index >= answer or not known):
                new.append(turn)
            if is_agent(turn) and len(turns) > 1:
                self._seen.pop(digest, None)
                self._seen[digest] = None
        while len(self._seen) > REMEMBERED_TURNS:
            del self._seen[next(iter(self._seen))]
        return new

    def _message(self, turn: Turn, line: Json, offset: int, at: datetime | None) -> list[Message]:
        if turn.get("model") == "<synthetic>" or line.get("isApiErrorMessage"):
            return []
        given = identifier(turn.get("id"))
        native_id = given if given and given.startswith("msg_") and object_of(line, "message") else None
        blocks = tuple(blocks_of(turn, native_id is not None))
        session, cwd = SessionId(self._session(line)), text_of(line, "cwd") or None
        return [Message(native_id, session, given or "", at, cwd, blocks, offset)] if blocks else []

    def _add(self, piece: str, line: Json, offset: int, at: datetime | None) -> tuple[Message, ...]:
        if self._stream is None:
            self._stream = _Stream(offset, to_micros(at), self._session(line))
        if piece:
            self._stream.pieces.append(piece)
            self._stream.size += len(piece)
        return self._close() if self._stream.size >= MAX_STREAM_CHARS else ()

    def _close(self) -> tuple[Message, ...]:
        closed, self._stream = self._streamed(), None
        return closed

    def _streamed(self) -> tuple[Message, ...]:
        stream = self._stream
        text = "".join(stream.pieces) if stream else ""
        if stream is None or not text.strip():
            return ()
        key, at = f"o:{stream.offset}", from_micros(stream.micros)
        block = Block(Author.AGENT_TEXT, text)
        return (Message(None, SessionId(stream.session), key, at, None, (block,), stream.offset),)


def _turn_bytes(turn: Turn) -> bytes:
    """Return what tells a turn; a text alone may be repeated as a list of one part."""
    told = [turn.get(key) for key in ("role", "from", "content", "value", "tool_calls")]
    parts = told[2]
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict) and parts[0].get("type") == "text":
        told[2] = parts[0].get("text")
    try:
        return msgspec.json.encode(told)
    except RecursionError:
        return b""  # nested to the decoder's limit; such a turn has no words


FORMAT = ChatJsonl()
