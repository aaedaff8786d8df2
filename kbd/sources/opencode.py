"""OpenCode: parts of messages as rows of a database, updated while they are streamed; before version 1.2 as files.

The old files stay after the move into the database; their ids are the same, so that each part counts once wherever it
is read. A fork copies messages under new ids. Newer versions keep whole messages as rows of `session_message`, at first
beside the parts: a row counts that was made after the last part of its session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Author, Block, Decoded, Message, Record, RecordKind, SessionId
from kbd.core.toolinput import tool_call
from kbd.sources.contract import NOTHING, UNKNOWN, FileKind, Item, Rows, gather
from kbd.sources.jsonl import object_of, objects_of, read_value, text_of
from kbd.sources.memory import SeenFile, identifier, restore
from kbd.sources.messagefiles import MessageFiles, NamedFiles
from kbd.sources.sessionfiles import SessionFiles
from kbd.sources.sqlfields import MAX_DEPTH, column, json_field, root_of
from kbd.sources.times import read_time

_DATABASE = re.compile(r"(?:.*/)?opencode(?:-[^/]*)?\.db")
_PART = re.compile(r"(?:(?:.*/)?storage/|)part/[^/]+/[^/.][^/]*\.json")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PART_TYPES = frozenset(
    ["text", "tool", "reasoning", "file", "snapshot", "patch", "step-start", "step-finish", "agent", "retry",
     "compaction", "subtask"]
)  # fmt: skip
_OTHER_ROLES = frozenset(
    ["user", "system", "synthetic", "shell", "compaction", "agent-switched", "model-switched", "skill"]
)  # fmt: skip
_DIGESTS = frozenset(["compaction", "summary", "title"])  # agents of the harness: what they write is no work

Row = Mapping[str, object]


class OpenCode:
    """Where OpenCode writes; the root may be its data folder, the `storage` in it, or one database."""

    agent = "opencode"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the data folder, which is the same on all systems."""
        return [f"{env.get('XDG_DATA_HOME') or f'{home}/.local/share'}/opencode"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the databases, and parts that were files."""
        if _DATABASE.fullmatch(relpath):
            return FileKind.DATABASE
        return FileKind.DOCUMENT if _PART.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> PartDecoder:
        """Return a decoder for one database or one part."""
        return PartDecoder(relpath, state, tz)

    def rows(self, columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
        """Return the parts, each with what its message and session say of it."""
        part, message, session = (columns.get(table, frozenset()) for table in ("part", "message", "session"))
        if not {"id", "message_id", "session_id", "data"} <= part or not {"id", "data"} <= message:
            return _whole_messages(columns)
        role = json_field("m.data", "$.role")
        fields = {
            "id": "t.id",
            "message": "t.message_id",
            "session": "t.session_id",
            "at": column("t", "time_created", part),
            "role": role,
            "mode": json_field("m.data", "$.mode"),
            "agent": json_field("m.data", "$.agent"),
            "summary": json_field("m.data", "$.summary"),
            "cwd": json_field("m.data", "$.path.cwd"),
            "began": f"coalesce({json_field('m.data', '$.time.created')}, {column('m', 'time_created', message)})",
            "data": f"CASE {role} WHEN 'assistant' THEN t.data ELSE '{{}}' END",
            **_session_fields(session),
        }
        joins = "LEFT JOIN message m ON m.id=t.message_id"
        if {"id", "parent_id"} <= session:
            joins += " LEFT JOIN session s ON s.id=t.session_id"
        changed = "t.time_updated" if "time_updated" in part else ""
        return (Rows("part", fields, "t.id", joins, changed), *_whole_messages(columns))

    def companions(self, relpath: str, read: Sequence[bytes]) -> tuple[str, ...]:
        """Name the message of a part, its session, and the sessions above that."""
        above = "".join(f"{folder}/" for folder in relpath.split("/")[:-3])
        documents = [_object(data) for data in read]
        if len(read) == 1:
            message, session = (_safe(documents[0].get(key)) for key in ("messageID", "sessionID"))
            return (f"{above}message/{session}/{message}.json",) if message and session else ()
        session = _safe(documents[0].get("sessionID") if len(read) == 2 else documents[-1].get("parentID"))
        return (f"{above}session/*/{session}.json",) if session else ()


def _whole_messages(columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
    """Return the messages that are rows of their own; those of the agent without parts beside them bring their data."""
    own, part, session = (columns.get(table, frozenset()) for table in ("session_message", "part", "session"))
    if not {"id", "session_id", "type", "data"} <= own:
        return ()
    made = column("t", "time_created", own)
    later = f"SELECT 1 FROM part p WHERE p.session_id=t.session_id AND p.time_created>={made}"  # noqa: S608 - own names
    is_twin = f"EXISTS ({later})" if {"session_id", "time_created"} <= part else "0"
    fields = {
        "id": "t.id",
        "message": "t.id",
        "session": "t.session_id",
        "at": made,
        "role": "t.type",
        "agent": json_field("t.data", "$.agent"),
        "began": f"coalesce({json_field('t.data', '$.time.created')}, {made})",
        "data": f"CASE WHEN t.type='assistant' AND NOT {is_twin} THEN t.data ELSE '{{}}' END",
        **_session_fields(session),
    }
    joins = "LEFT JOIN session s ON s.id=t.session_id" if {"id", "parent_id"} <= session else ""
    return (Rows("session_message", fields, "t.id", joins, "t.time_updated" if "time_updated" in own else ""),)


def _session_fields(session: frozenset[str]) -> dict[str, str]:
    if not {"id", "parent_id"} <= session:
        return {}
    fields = {"directory": column("s", "directory", session), "root": root_of("s", "session", "parent_id")}
    if "fork" in session:
        fields["origin"] = json_field("s.fork", "$.sessionID")
    elif {"title", "time_created"} <= session:
        # A fork names its origin by title only; of several the oldest is it.
        fields["origin"] = (
            "CASE WHEN s.title GLOB '* (fork #[0-9]*)' THEN (SELECT o.id FROM session o WHERE o.id!=s.id AND "
            "o.time_created<=s.time_created AND o.title=substr(s.title, 1, instr(s.title, ' (fork #')-1) "
            "ORDER BY o.time_created, o.id LIMIT 1) END"
        )
    return fields


def _object(data: bytes) -> Row:
    value = read_value(data)
    return value if isinstance(value, dict) else {}


def _safe(value: object) -> str | None:
    """Return an id that may stand in a path."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


class _State(msgspec.Struct, array_like=True):
    files: dict[str, list[SeenFile]] = {}
    named: list[NamedFiles] = []


class PartDecoder:
    """Parts of assistant messages become messages, which come in pieces with one id."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the first row, or where `state` left off."""
        saved = restore(state, _State)
        self._files, self._named = SessionFiles(saved.files), MessageFiles(saved.named)
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one row, or one part with its companions; `observed` is not needed."""
        value = read_value(record.data)
        row = _row_of_documents(value) if isinstance(value, list) else value
        return gather([self._item(row, record.offset) if isinstance(row, dict) else Item(RecordKind.MALFORMED)])

    def flush(self) -> Decoded:
        """Return nothing: no row stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the recent files of the newest sessions."""
        return msgspec.json.encode(_State(self._files.saved(), self._named.saved()))

    def _item(self, row: Row, offset: int) -> Item:
        part = row.get("data")
        part = read_value(part.encode()) if isinstance(part, str) else part
        if not isinstance(part, dict):
            return Item(RecordKind.MALFORMED)
        times = (read_time(found, self._tz) for found in (object_of(part, "time").get("start"), row.get("at")))
        at = next((time for time in times if time is not None), None)
        if row.get("role") != "assistant":
            return Item(RecordKind.RECOGNISED if text_of(row, "role") in _OTHER_ROLES else UNKNOWN.kind, at=at)
        is_whole = row.get("table") == "session_message"
        if not is_whole and text_of(part, "type") not in _PART_TYPES:
            return Item(RecordKind.UNKNOWN, at=at)
        parts = objects_of(part, "content") if is_whole else (part,)
        blocks = () if _is_digest(row) else tuple(block for one in parts for block in _blocks(one))
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at)
        return Item(RecordKind.MESSAGE, (self._message(row, blocks, at, offset),), at)

    def _message(self, row: Row, blocks: tuple[Block, ...], at: datetime | None, offset: int) -> Message:
        thread = identifier(row.get("session")) or ""
        session = identifier(row.get("root")) or thread
        cwd = text_of(row, "cwd") or text_of(row, "directory") or None
        origins = dict.fromkeys(map(identifier, (row.get("root"), row.get("origin"))))
        files = self._files.of(thread)
        found = Message(
            identifier(row.get("message")),
            SessionId(session),
            identifier(row.get("id")) or "",
            read_time(row.get("began"), self._tz) or at,
            cwd,
            blocks,
            offset,
            recent=files.before(at),
            copied_from=tuple(SessionId(origin) for origin in origins if origin and origin != thread),
            thread=thread,
            renumbered=True,
            earlier=self._named.take(identifier(row.get("message")), blocks, cwd),
        )
        files.note(blocks, cwd, at)
        return found


def _is_digest(row: Row) -> bool:
    return row.get("summary") in (True, 1) or text_of(row, "mode") in _DIGESTS or text_of(row, "agent") in _DIGESTS


def _blocks(part: Row) -> tuple[Block, ...]:
    text = text_of(part, "text")
    match text_of(part, "type"):
        case "text" if text.strip() and not part.get("synthetic") and not part.get("ignored"):
            return (Block(Author.AGENT_TEXT, text),)
        case "reasoning" if text.strip():
            return (Block(Author.THINKING, text),)
        case "tool":
            name = text_of(part, "tool") or text_of(part, "name")
            call = tool_call(name, object_of(object_of(part, "state"), "input"))
            call_id = identifier(part.get("callID") or part.get("id"))
            return (Block(Author.AGENT_TOOL_INPUT, call.written, call_id, call),)
        case _:
            return ()


def _row_of_documents(documents: Sequence[object]) -> Row:
    """Return a part that was a file as the row it would be: part, message, session, and the sessions above."""
    objects: list[Row] = [found if isinstance(found, dict) else {} for found in documents[: 2 + MAX_DEPTH]]
    part, message, sessions = objects[0] if objects else {}, objects[1] if objects[1:] else {}, objects[2:]
    parents = [found.get("parentID") for found in sessions if found.get("parentID")]
    created = object_of(message, "time").get("created")
    return {
        "id": part.get("id"),
        "message": part.get("messageID"),
        "session": part.get("sessionID"),
        "at": created,
        "role": message.get("role"),
        "mode": message.get("mode"),
        "agent": message.get("agent"),
        "summary": message.get("summary"),
        "cwd": object_of(message, "path").get("cwd"),
        "began": created,
        "data": part,
        "directory": sessions[0].get("directory") if sessions else None,
        "root": parents[-1] if parents else None,
    }


FORMAT = OpenCode()
