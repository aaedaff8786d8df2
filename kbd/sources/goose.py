"""Goose: messages as rows of a database, deleted and written anew when a conversation is compacted or edited.

A row's number means nothing then; session, time and words say which message it is. The JSONL files of old versions
were taken over into the database and left behind: they are read only where the database does not hold them, and their
records have the keys of the rows they become.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, FileKind, Item, Rows, gather
from kbd.sources.jsonl import Json, decode_record, object_of, parsed_arguments, read_all, read_value, text_of
from kbd.sources.memory import SeenFile, restore
from kbd.sources.sessionfiles import SessionFiles
from kbd.sources.sqlfields import column, root_of
from kbd.sources.times import read_time

_DATABASE = "sessions.db"
_OLD_SESSION = re.compile(r"((?:.*/)?sessions/|)([^/.][^/]*)\.jsonl")
_CREATED = re.compile(rb'"created"\s*:\s*(\d+)')
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
        """Take the database, and sessions that were files."""
        if relpath.rsplit("/", 1)[-1] == _DATABASE:
            return FileKind.DATABASE
        return FileKind.LINES if _OLD_SESSION.fullmatch(relpath) else None

    def superseded_by(self, relpath: str) -> str | None:
        """Name the database beside an old session."""
        found = _OLD_SESSION.fullmatch(relpath)
        return f"{found[1]}{_DATABASE}" if found else None

    def names_in_store(self, columns: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
        """Return sessions by their ids, and by the times of messages, which were taken over as they are."""
        known = [("sessions", "id"), ("messages", "session_id"), ("messages", "created_timestamp")]
        return tuple(
            f"SELECT DISTINCT {column} FROM {table}"  # noqa: S608 - constants
            for table, column in known
            if column in columns.get(table, ())
        )

    def names_of(self, relpath: str, head: bytes) -> frozenset[str]:
        """Return the name of an old session, and the time of its first message."""
        session, first = _OLD_SESSION.fullmatch(relpath), _CREATED.search(head)
        return frozenset([*([session[2]] if session else ()), *([first[1].decode()] if first else ())])

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> GooseDecoder:
        """Return a decoder for one database or one old session."""
        found = _OLD_SESSION.fullmatch(relpath)
        return GooseDecoder(state, found[2] if found else None)

    def rows(self, columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
        """Return the messages, each with what its session says of it."""
        message, session = columns.get("messages", frozenset()), columns.get("sessions", frozenset())
        if not {"session_id", "role", "content_json"} <= message:
            return ()
        created = column("t", "created_timestamp", message)
        fields = {
            "session": "t.session_id",
            "role": "t.role",
            "at": f"coalesce(nullif({created}, 0), {column('t', 'timestamp', message)})",
            "content": "CASE t.role WHEN 'assistant' THEN t.content_json END",
            "metadata": column("t", "metadata_json", message),
        }
        if "id" not in session:
            return (Rows("messages", fields, f"t.session_id || ' ' || coalesce({created}, '')"),)
        fields["cwd"] = column("s", "working_dir", session)
        if "parent_session_id" in session:
            fields["parent"] = "s.parent_session_id"
            fields["root"] = root_of("s", "sessions", "parent_session_id")
        joins = "LEFT JOIN sessions s ON s.id=t.session_id"
        return (Rows("messages", fields, f"t.session_id || ' ' || coalesce({created}, '')", joins),)


class _State(msgspec.Struct, array_like=True):
    files: dict[str, list[SeenFile]] = {}
    cwd: str = ""


class GooseDecoder:
    """Assistant rows become messages without an id of their own."""

    def __init__(self, state: bytes | None, session: str | None) -> None:
        """Begin at the first row, or where `state` left off; `session` names the one of an old file."""
        saved = restore(state, _State)
        self._files, self._cwd = SessionFiles(saved.files), saved.cwd
        self._session = session

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one row, or one line of an old file; `observed` is not needed."""
        if self._session is not None:
            return decode_record(record, read_all, _is_line, self._line)
        row = read_value(record.data)
        return gather([self._item(row, record.offset) if isinstance(row, dict) else Item(RecordKind.MALFORMED)])

    def flush(self) -> Decoded:
        """Return nothing: no row stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the recent files of the newest sessions."""
        return msgspec.json.encode(_State(self._files.saved(), self._cwd))

    def _line(self, line: Json, offset: int) -> Item:
        """Read a line of an old file as the row it becomes; the first line says where the session works."""
        self._cwd = text_of(line, "working_dir") or self._cwd
        if "role" not in line:
            return Item(RecordKind.RECOGNISED if "working_dir" in line else RecordKind.UNKNOWN)
        return self._item({**line, "session": self._session, "at": line.get("created"), "cwd": self._cwd}, offset)

    def _item(self, row: Row, offset: int) -> Item:
        at = read_time(row.get("at"))
        if row.get("role") != "assistant":
            return Item(RecordKind.RECOGNISED if isinstance(row.get("role"), str) else RecordKind.UNKNOWN, at=at)
        content = row.get("content")
        content = read_value(content.encode()) if isinstance(content, str) else content
        if not isinstance(content, list):
            return Item(RecordKind.MALFORMED, at=at)
        blocks = () if _is_summary(row) else tuple(_blocks(content))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        return Item(RecordKind.MESSAGE, (self._files.message(row, at, blocks, offset),), at)


def _is_line(value: Json) -> bool:
    return "role" in value and "content" in value


def _is_summary(row: Row) -> bool:
    """Tell whether only the agent sees a message: the summary that stands for a compacted conversation."""
    shown = row.get("metadata")
    shown = read_value(shown.encode()) if isinstance(shown, str) else shown
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
