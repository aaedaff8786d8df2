"""Hermes: messages as rows of a database; compaction ends a session and begins a child with part of the old messages.

The chain of a session and its parents counts as one. Copied messages have new numbers and times, and are told by their
words. The curator's turns and the summaries are the harness's, not work. Before there was a database each session was a
JSON file, rewritten whole; such files repeat the database, and are read only where it does not hold their session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.cline import Names
from kbd.sources.contract import NOTHING, FileKind, Item, Rows, gather
from kbd.sources.jsonl import object_of, objects_of, parsed_arguments, read_value, text_of
from kbd.sources.memory import SeenFile, identifier, restore
from kbd.sources.sessionfiles import SessionFiles
from kbd.sources.sqlfields import column, root_of
from kbd.sources.thread import Thread
from kbd.sources.times import read_time

REMEMBERED_CURATORS = 64

_DATABASE = "state.db"
_LOG = re.compile(r"(?:((?:.*/)?)sessions/|)session_[^/]+\.json")
_SESSION = re.compile(rb'"session_id"\s*:\s*"([^"]+)"')
_CURATOR = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_BEGINNING = "substr(t.content, 1, 400)"
_ENCODED = "\x00json:"
_ROLES = frozenset(["user", "system", "tool", "session_meta", "developer"])

Row = Mapping[str, object]


class Hermes:
    """Where Hermes writes; the root may be its folder or the database."""

    agent = "hermes"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$HERMES_HOME` or its default."""
        return [env.get("HERMES_HOME") or f"{home}/.hermes"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the database, that of a profile too, and sessions that were files."""
        if relpath.rsplit("/", 1)[-1] == _DATABASE:
            return FileKind.DATABASE
        return FileKind.DOCUMENT if _LOG.fullmatch(relpath) else None

    def superseded_by(self, relpath: str) -> str | None:
        """Name the database above the folder of an old session."""
        found = _LOG.fullmatch(relpath)
        return f"{'../' if found[1] is None else found[1]}{_DATABASE}" if found else None

    def names_in_store(self, columns: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
        """Return sessions by their ids."""
        known = [("sessions", "id"), ("messages", "session_id")]
        return tuple(
            f"SELECT DISTINCT {column} FROM {table}"  # noqa: S608 - constants
            for table, column in known
            if column in columns.get(table, ())
        )

    def names_of(self, relpath: str, head: bytes) -> frozenset[str]:
        """Return the id of an old session, as its name and its content give it."""
        return frozenset([_stem(relpath), *(found[1].decode("utf-8", "replace") for found in _SESSION.finditer(head))])

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> HermesDecoder | LogDecoder:
        """Return a decoder for one database or one old session."""
        return LogDecoder(relpath, tz) if _LOG.fullmatch(relpath) else HermesDecoder(state, tz)

    def rows(self, columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
        """Return the messages, each with what its session says of it."""
        message, session = columns.get("messages", frozenset()), columns.get("sessions", frozenset())
        if not {"session_id", "role", "content", "timestamp"} <= message:
            return ()
        fields = {
            "session": "t.session_id",
            "role": "t.role",
            "at": "t.timestamp",
            "content": f"CASE t.role WHEN 'assistant' THEN t.content WHEN 'tool' THEN NULL ELSE {_BEGINNING} END",
            "calls": column("t", "tool_calls", message),
            "thought": f"coalesce({column('t', 'reasoning', message)}, {column('t', 'reasoning_content', message)})",
        }
        identity = "t.session_id || ' ' || t.timestamp"
        if "id" not in session:
            return (Rows("messages", fields, identity),)
        fields["cwd"] = column("s", "cwd", session)
        if "parent_session_id" in session:
            fields["parent"] = "s.parent_session_id"
            fields["root"] = root_of("s", "sessions", "parent_session_id")
        return (Rows("messages", fields, identity, "LEFT JOIN sessions s ON s.id=t.session_id"),)


class _State(msgspec.Struct, array_like=True):
    files: dict[str, list[SeenFile]] = {}
    curators: list[str] = []


class _Voices:
    """Knows in which sessions the harness's curator speaks to the agent: its answers are no work."""

    def __init__(self, curators: list[str]) -> None:
        """Begin with `curators`, the sessions where it has the word."""
        self.curators = dict.fromkeys(curators)

    def blocks(self, row: Row, thread: str) -> tuple[Block, ...]:
        """Return the agent's own blocks of a message; one of another author says whose turn is next."""
        if text_of(row, "role") != "assistant":
            self._listen(text_of(row, "role"), thread, _text(row))
            return ()
        text = _text(row)
        is_digest = thread in self.curators or text.lstrip().startswith(_SUMMARIES)
        return () if is_digest else tuple(_blocks(text, row))

    def _listen(self, role: str, thread: str, text: str) -> None:
        if role in ("user", "system") and text.lstrip().startswith(_CURATOR):
            self.curators[thread] = None
            if len(self.curators) > REMEMBERED_CURATORS:
                del self.curators[next(iter(self.curators))]
        elif role == "user":
            self.curators.pop(thread, None)


class HermesDecoder:
    """Assistant rows become messages without an id of their own."""

    def __init__(self, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the first row, or where `state` left off."""
        saved = restore(state, _State)
        self._files = SessionFiles(saved.files)
        self._voices = _Voices(saved.curators)
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one row; `observed` is not needed."""
        row = read_value(record.data)
        return gather([self._item(row, record.offset) if isinstance(row, dict) else Item(RecordKind.MALFORMED)])

    def flush(self) -> Decoded:
        """Return nothing: no row stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the recent files of the newest sessions, and in which the curator has the word."""
        return msgspec.json.encode(_State(self._files.saved(), list(self._voices.curators)))

    def _item(self, row: Row, offset: int) -> Item:
        at = read_time(row.get("at"), self._tz)
        blocks = self._voices.blocks(row, identifier(row.get("session")) or "")
        if not blocks:
            return Item(_kind(row), at=at)
        return Item(RecordKind.MESSAGE, (self._files.message(row, at, blocks, offset),), at)


class LogDecoder:
    """Reads one old session whole; its messages have the time at which it began, unless they tell their own."""

    def __init__(self, relpath: str, tz: tzinfo) -> None:
        """Begin; a document leaves no state."""
        self._stem = _stem(relpath)
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode the whole file; `observed` is not needed."""
        document = read_value(record.data)
        if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
            return gather([Item(RecordKind.MALFORMED if document is None else RecordKind.UNKNOWN)])
        return gather(self._items(document, record.offset))

    def flush(self) -> Decoded:
        """Return nothing: a document is whole."""
        return NOTHING

    def state(self) -> bytes:
        """Return nothing: a rewritten document is read anew."""
        return b"{}"

    def _items(self, document: Row, offset: int) -> Iterator[Item]:
        thread = identifier(document.get("session_id")) or self._stem
        parent = identifier(document.get("parent_session_id"))
        at = read_time(document.get("session_start"), self._tz)
        voices, made, names = _Voices([]), Thread(), Names(thread)
        for index, turn in enumerate(objects_of(document, "messages")):
            given = read_time(turn.get("timestamp"), self._tz)
            at = given or at
            name = names.of(turn, given, index)
            blocks = voices.blocks(turn, thread)
            if not blocks:
                yield Item(_kind(turn), at=at)
                continue
            found = made.message(name, parent or thread, str(index), at, None, blocks, offset)
            yield Item(RecordKind.MESSAGE, (found,), at)


def _stem(relpath: str) -> str:
    return relpath.rsplit("/", 1)[-1].removesuffix(".json").removeprefix("session_")


def _kind(row: Row) -> RecordKind:
    return RecordKind.RECOGNISED if text_of(row, "role") in (*_ROLES, "assistant") else RecordKind.UNKNOWN


def _text(row: Row) -> str:
    """Return the text of a message, which may be a list of parts, stored as such or encoded."""
    content = row.get("content")
    if isinstance(content, str) and not content.startswith(_ENCODED):
        return content
    parts = read_value(content.removeprefix(_ENCODED).encode()) if isinstance(content, str) else content
    found = (text_of(part, "text") for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return "\n".join(found)


def _blocks(text: str, row: Row) -> Iterator[Block]:
    """Yield the agent's blocks; ids of calls are not unique over sessions, time and words tell them."""
    if text.strip():
        yield Block(Author.AGENT_TEXT, text)
    thoughts = (text_of(row, key) for key in ("thought", "reasoning", "reasoning_content"))
    thought = next((thought for thought in thoughts if thought.strip()), "")
    if thought:
        yield Block(Author.THINKING, thought)
    calls = row.get("tool_calls") or read_value(text_of(row, "calls").encode())
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = object_of(call, "function") or call
            found = tool_call(text_of(function, "name"), parsed_arguments(function.get("arguments")))
            yield Block(Author.AGENT_TOOL_INPUT, found.written, None, found)


FORMAT = Hermes()
