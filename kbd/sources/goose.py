"""Goose: messages as rows of a database, deleted and written anew when a conversation is compacted or edited.

A row's number means nothing then; session, time and words say which message it is. The JSONL files of old versions
were taken over into the database and left behind: they are never read.
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

_REQUESTS = frozenset(["toolRequest", "frontendToolRequest"])

Row = Mapping[str, object]


class Goose:
    """Where Goose writes; the root may be its data folder, the `sessions` in it, or the database."""

    agent = "goose"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$GOOSE_PATH_ROOT`, else the data folders of the systems."""
        named = env.get("GOOSE_PATH_ROOT")
        if named:
            return [f"{named}/data/sessions"]
        shared = env.get("XDG_DATA_HOME") or f"{home}/.local/share"
        places = [f"{shared}/goose", f"{home}/Library/Application Support/goose", f"{shared}/Block/goose"]
        return [f"{place}/sessions" for place in places]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the database."""
        return FileKind.DATABASE if relpath.rsplit("/", 1)[-1] == "sessions.db" else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> GooseDecoder:
        """Return a decoder for one database."""
        return GooseDecoder(state)

    def rows(self, columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
        """Return the messages, each with what its session says of it."""
        message, session = columns.get("messages", frozenset()), columns.get("sessions", frozenset())
        if not {"session_id", "role", "content_json"} <= message:
            return ()
        created = column("t", "created_timestamp", message)
        fields = {
            "session": "t.session_id",
            "role": "t.role",
            "at": f"coalesce({created}, {column('t', 'timestamp', message)})",
            "content": "CASE t.role WHEN 'assistant' THEN t.content_json END",
            "metadata": column("t", "metadata_json", message),
        }
        if "id" not in session:
            return (Rows("messages", fields, f"t.session_id || ' ' || coalesce({created}, '')"),)
        fields["cwd"] = column("s", "working_dir", session)
        if "parent_session_id" in session:
            fields["root"] = root_of("s", "sessions", "parent_session_id")
        joins = "LEFT JOIN sessions s ON s.id=t.session_id"
        return (Rows("messages", fields, f"t.session_id || ' ' || coalesce({created}, '')", joins),)


class _State(msgspec.Struct, array_like=True):
    files: dict[str, list[SeenFile]] = {}


class GooseDecoder:
    """Assistant rows become messages without an id of their own."""

    def __init__(self, state: bytes | None) -> None:
        """Begin at the first row, or where `state` left off."""
        self._files = SessionFiles(restore(state, _State).files)

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one row; `observed` is not needed."""
        row = read_value(record.data)
        return gather([self._item(row, record.offset) if isinstance(row, dict) else Item(RecordKind.MALFORMED)])

    def flush(self) -> Decoded:
        """Return nothing: no row stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the recent files of the newest sessions."""
        return msgspec.json.encode(_State(self._files.saved()))

    def _item(self, row: Row, offset: int) -> Item:
        at = read_time(row.get("at"))
        if row.get("role") != "assistant":
            return Item(RecordKind.RECOGNISED if isinstance(row.get("role"), str) else RecordKind.UNKNOWN, at=at)
        content = read_value(text_of(row, "content").encode())
        if not isinstance(content, list):
            return Item(RecordKind.MALFORMED, at=at)
        blocks = () if _is_summary(row) else tuple(_blocks(content))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        thread = identifier(row.get("session")) or ""
        session = identifier(row.get("root")) or thread
        cwd = text_of(row, "cwd") or None
        files = self._files.of(thread)
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


def _is_summary(row: Row) -> bool:
    """Tell whether only the agent sees a message: the summary that stands for a compacted conversation."""
    shown = read_value(text_of(row, "metadata").encode())
    return isinstance(shown, dict) and False in (shown.get("userVisible"), shown.get("user_visible"))


def _blocks(content: list[object]) -> Iterator[Block]:
    """Yield the agent's blocks; ids of calls are not unique over sessions, time and words tell them."""
    for item in content:
        if not isinstance(item, dict):
            continue
        kind, text = text_of(item, "type"), text_of(item, "text") or text_of(item, "thinking")
        if kind == "text" and text.strip():
            yield Block(Author.AGENT_TEXT, text)
        elif kind in ("thinking", "reasoning") and text.strip():
            yield Block(Author.THINKING, text)
        elif kind in _REQUESTS:
            request = object_of(item, "toolCall")
            value = object_of(request, "value") or request
            call = tool_call(text_of(value, "name"), parsed_arguments(value.get("arguments")))
            yield Block(Author.AGENT_TOOL_INPUT, call.written, None, call)


FORMAT = Goose()
