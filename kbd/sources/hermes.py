"""Hermes: messages as rows of a database; compaction ends a session and begins a child with part of the old messages.

The chain of a session and its parents counts as one. Copied messages have new numbers and times, and are told by their
words. The curator's turns and the summaries are the harness's, not work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item, Rows, gather
from kbd.sources.jsonl import object_of, parsed_arguments, read_value, text_of
from kbd.sources.memory import SeenFile, identifier, restore
from kbd.sources.sessionfiles import SessionFiles
from kbd.sources.sqlfields import column, root_of
from kbd.sources.times import read_time

REMEMBERED_CURATORS = 64

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
    """Where Hermes writes; the root may be its folder or the database. Its JSON logs repeat the database."""

    agent = "hermes"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$HERMES_HOME` or its default."""
        return [env.get("HERMES_HOME") or f"{home}/.hermes"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the database, that of a profile too."""
        return FileKind.DATABASE if relpath.rsplit("/", 1)[-1] == "state.db" else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> HermesDecoder:
        """Return a decoder for one database."""
        return HermesDecoder(state, tz)

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
            fields["root"] = root_of("s", "sessions", "parent_session_id")
        return (Rows("messages", fields, identity, "LEFT JOIN sessions s ON s.id=t.session_id"),)


class _State(msgspec.Struct, array_like=True):
    files: dict[str, list[SeenFile]] = {}
    curators: list[str] = []


class HermesDecoder:
    """Assistant rows become messages without an id of their own."""

    def __init__(self, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the first row, or where `state` left off."""
        saved = restore(state, _State)
        self._files = SessionFiles(saved.files)
        self._curators = dict.fromkeys(saved.curators)
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
        return msgspec.json.encode(_State(self._files.saved(), list(self._curators)))

    def _item(self, row: Row, offset: int) -> Item:
        at, role = read_time(row.get("at"), self._tz), text_of(row, "role")
        thread = identifier(row.get("session")) or ""
        if role != "assistant":
            self._listen(role, thread, text_of(row, "content"))
            return Item(RecordKind.RECOGNISED if role in _ROLES else RecordKind.UNKNOWN, at=at)
        text = _text(text_of(row, "content"))
        if thread in self._curators or text.lstrip().startswith(_SUMMARIES):
            return Item(RecordKind.RECOGNISED, at=at)
        blocks = tuple(_blocks(text, row))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        session = identifier(row.get("root")) or thread
        cwd, files = text_of(row, "cwd") or None, self._files.of(thread)
        found = Message(
            None,
            SessionId(session),
            str(offset),
            at,
            cwd,
            blocks,
            offset,
            recent=files.before(at),
            copied_from=(SessionId(session),) if session != thread else (),
            thread=thread,
        )
        files.note(blocks, cwd, at)
        return Item(RecordKind.MESSAGE, (found,), at)

    def _listen(self, role: str, thread: str, text: str) -> None:
        """Note who speaks to the agent: after the curator, its answers are the curator's until the user speaks."""
        if role in ("user", "system") and text.lstrip().startswith(_CURATOR):
            self._curators[thread] = None
            if len(self._curators) > REMEMBERED_CURATORS:
                del self._curators[next(iter(self._curators))]
        elif role == "user":
            self._curators.pop(thread, None)


def _text(content: str) -> str:
    """Return the text of a message that may be stored as a list of parts."""
    if not content.startswith(_ENCODED):
        return content
    parts = read_value(content.removeprefix(_ENCODED).encode())
    found = (text_of(part, "text") for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return "\n".join(found)


def _blocks(text: str, row: Row) -> Iterator[Block]:
    """Yield the agent's blocks; ids of calls are not unique over sessions, time and words tell them."""
    if text.strip():
        yield Block(Author.AGENT_TEXT, text)
    if text_of(row, "thought").strip():
        yield Block(Author.THINKING, text_of(row, "thought"))
    calls = read_value(text_of(row, "calls").encode())
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = object_of(call, "function") or call
            found = tool_call(text_of(function, "name"), parsed_arguments(function.get("arguments")))
            yield Block(Author.AGENT_TOOL_INPUT, found.written, None, found)


FORMAT = Hermes()
