"""Cline: the whole conversation of a task as one JSON file, rewritten for each message.

The extension writes a bare list into the task's folder, the SDK an object that names its session, with a manifest
beside it that tells the working directory and what the session was forked from. A message without an id is known by its
time, else by its place and the question before it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.sources.contract import NOTHING, FileKind, Item, gather
from kbd.sources.jsonl import object_of, objects_of, parsed_arguments, read_value, text_of
from kbd.sources.memory import identifier
from kbd.sources.thread import Thread
from kbd.sources.times import read_time
from kbd.sources.xmlcalls import called, split_calls

_TASK = re.compile(r"(?:.*/)?api_conversation_history\.json")
_SESSION = re.compile(r"(?:.*/)?[^/.][^/]*\.messages\.json")
_CWD = re.compile(r"# Current (?:Working|Workspace) Directory \(([^()\n]{1,1024})\)")
_DIRECTORIES = ("cwd", "workspace_root", "workspace")
_SUMMARIES = ("isSummary", "isTruncationMarker")

Turn = Mapping[str, object]


class Cline:
    """Where the extension and the SDK write; the root may be any folder above the tasks or sessions."""

    agent = "cline"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the SDK's folder and the extension's in each editor."""
        named = env.get("CLINE_DATA_DIR") or (f"{env['CLINE_DIR']}/data" if env.get("CLINE_DIR") else "")
        return [named or f"{home}/.cline/data", *editor_storages(home, "saoudrizwan.claude-dev")]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take conversations; what the user interface keeps repeats them."""
        return FileKind.DOCUMENT if _TASK.fullmatch(relpath) or _SESSION.fullmatch(relpath) else None

    def companions(self, relpath: str, read: Sequence[bytes]) -> tuple[str, ...]:
        """Name the manifest of an SDK session."""
        has_manifest = _SESSION.fullmatch(relpath) and not any(char in relpath for char in "*?[")
        return (relpath.removesuffix(".messages.json") + ".json",) if has_manifest and len(read) == 1 else ()

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> TaskDecoder:
        """Return a decoder for one conversation and its manifest, if any."""
        return TaskDecoder(relpath, tz)


def editor_storages(home: str, extension: str) -> list[str]:
    """Return where editors of the VS Code family keep what an extension stores."""
    bases = (f"{home}/.config/%s/User", f"{home}/Library/Application Support/%s/User")
    editors = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
    folders = [base % editor for base in bases for editor in editors]
    return [f"{folder}/globalStorage/{extension}" for folder in (*folders, f"{home}/.vscode-server/data/User")]


class TaskDecoder:
    """Reads one conversation whole, Cline's and Roo Code's, with what lies beside it."""

    def __init__(self, relpath: str, tz: tzinfo) -> None:
        """Begin; a document leaves no state."""
        parts = relpath.split("/")
        self._stem = parts[-1].removesuffix(".json").removesuffix(".messages")
        self._folder = parts[-2] if len(parts) > 1 and parts[-2] not in ("sessions", "tasks") else ""
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode the whole file; `observed` is not needed."""
        documents = read_value(record.data)
        document, *beside = documents if isinstance(documents, list) and documents else [None]
        manifest = beside[0] if beside and isinstance(beside[0], dict) else {}
        if document is None:
            return gather([Item(RecordKind.MALFORMED)])
        if isinstance(document, list):
            return gather(self._items(manifest, document, record.offset))
        if isinstance(document, dict) and isinstance(document.get("messages"), list):
            return gather(self._items({**manifest, **document}, document["messages"], record.offset))
        return gather([Item(RecordKind.UNKNOWN)])

    def flush(self) -> Decoded:
        """Return nothing: a document is whole."""
        return NOTHING

    def state(self) -> bytes:
        """Return nothing: a rewritten document is read anew."""
        return b"{}"

    def _items(self, document: Turn, turns: Sequence[object], offset: int) -> Iterator[Item]:
        task = self._folder or identifier(document.get("sessionId")) or self._stem
        session = identifier(document.get("rootTaskId")) or task
        fork = object_of(object_of(document, "metadata"), "fork")
        copied_from = tuple(filter(None, [identifier(fork.get("forkedFromSessionId"))]))
        thread, names = Thread(), Names(copied_from[0] if copied_from else task)
        at = read_time(document.get("started_at"), self._tz) or read_time(self._folder, self._tz)
        cwd = next((path for key in _DIRECTORIES if (path := text_of(document, key))), None)
        for index, turn in enumerate(turns):
            if not isinstance(turn, dict):
                yield Item(RecordKind.UNKNOWN)
                continue
            given = read_time(turn.get("ts"), self._tz)
            at = given or at
            blocks = tuple(_blocks(turn))
            name = names.of(turn, given, index)
            if not blocks:
                cwd = _directory(turn) or cwd
                yield Item(RecordKind.RECOGNISED if "role" in turn or "type" in turn else RecordKind.UNKNOWN, at=given)
                continue
            given_id = identifier(turn.get("id"))
            made = thread.message(
                name,
                session,
                given_id or str(index),
                at,
                cwd,
                blocks,
                offset,
                copied_from=copied_from,
                is_named=given_id is None,
                is_time_lent=given is None,
            )
            yield Item(RecordKind.MESSAGE, (made,), at)


class Names:
    """Gives the messages of a conversation names that stay when its file is written anew."""

    def __init__(self, session: str) -> None:
        """Begin a conversation; `session` is the one its messages stem from."""
        self._session = session
        self._asked = ""
        self._taken: set[datetime] = set()

    def of(self, turn: Turn, at: datetime | None, index: int) -> str | None:
        """Return the id of a message, else a name made of its time, else of its place and the question before it."""
        given = identifier(turn.get("id"))
        if given is None:
            place = f"{index}:{self._asked}" if at is None or at in self._taken else at.isoformat()
            given = f"{self._session}:{_digest(place)}"
        if at is not None:
            self._taken.add(at)
        if text_of(turn, "role") == "user":
            self._asked = _digest(_words(turn))
        return given


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _words(turn: Turn) -> str:
    parts = [turn, *objects_of(turn, "content")]
    texts = [text_of(part, key) for part in parts for key in ("content", "text")]
    return "\n".join(texts)


def _directory(turn: Turn) -> str | None:
    """Return the working directory that the environment details of a user turn tell."""
    for part in (turn, *objects_of(turn, "content")):
        found = _CWD.search(text_of(part, "text") or text_of(part, "content"))
        if found is not None:
            return found[1]
    return None


def _blocks(turn: Turn) -> Iterator[Block]:
    """Yield the agent's blocks of a message; summaries are not its words."""
    if turn.get("role") != "assistant" or any(turn.get(key) for key in _SUMMARIES):
        return
    if isinstance(turn.get("content"), str):
        yield from split_calls(text_of(turn, "content"))
    for number, part in enumerate(objects_of(turn, "content")):
        match text_of(part, "type"):
            case "text":
                yield from split_calls(text_of(part, "text"), number)
            case "thinking" | "reasoning":
                thought = text_of(part, "thinking") or text_of(part, "text")
                if thought.strip():
                    yield Block(Author.THINKING, thought)
            case "tool_use":
                given = parsed_arguments(part.get("input"))
                yield from called(text_of(part, "name"), given, identifier(part.get("id")))


FORMAT = Cline()
