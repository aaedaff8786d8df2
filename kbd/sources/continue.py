"""Continue: one JSON file per session, rewritten whole, without ids and times of messages.

The index of sessions tells the day a session began, which is the only time there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from urllib.parse import unquote

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.sources.chatturns import blocks_of
from kbd.sources.cline import Names
from kbd.sources.contract import NOTHING, FileKind, Item, gather
from kbd.sources.jsonl import object_of, objects_of, read_value, text_of
from kbd.sources.memory import identifier
from kbd.sources.thread import Thread
from kbd.sources.times import read_time

_SESSION = re.compile(r"(?:(?:.*/)?sessions/)?(?!sessions\.json$)[^/.][^/]*\.json")


class Continue:
    """Where Continue writes; the root may be its folder or the `sessions` in it."""

    agent = "continue"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the sessions below `$CONTINUE_GLOBAL_DIR` or its default."""
        return [f"{env.get('CONTINUE_GLOBAL_DIR') or f'{home}/.continue'}/sessions"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take sessions, not their index."""
        return FileKind.DOCUMENT if _SESSION.fullmatch(relpath) else None

    def companions(self, relpath: str, read: Sequence[bytes]) -> tuple[str, ...]:
        """Name the index that lies beside all sessions."""
        folder, _, name = relpath.rpartition("/")
        plain = not any(char in folder for char in "*?[")
        return (f"{folder}/sessions.json".removeprefix("/"),) if plain and name and len(read) == 1 else ()

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> SessionDecoder:
        """Return a decoder for one session and the index."""
        return SessionDecoder(relpath, tz)


class SessionDecoder:
    """Reads one session whole."""

    def __init__(self, relpath: str, tz: tzinfo) -> None:
        """Begin; a document leaves no state."""
        self._stem = relpath.rsplit("/", 1)[-1].removesuffix(".json")
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode the session, with the index behind it.

        Without an index no message has a time; `observed` says then that the agent is at work, not when it spoke.
        """
        documents = read_value(record.data)
        session, *beside = documents if isinstance(documents, list) and documents else [None]
        if not isinstance(session, dict) or not isinstance(session.get("history"), list):
            return gather([Item(RecordKind.MALFORMED if session is None else RecordKind.UNKNOWN)])
        return gather(self._items(session, {"index": beside[0] if beside else None}, record.offset, observed))

    def flush(self) -> Decoded:
        """Return nothing: a document is whole."""
        return NOTHING

    def state(self) -> bytes:
        """Return nothing: a rewritten document is read anew."""
        return b"{}"

    def _items(
        self, document: Mapping[str, object], beside: Mapping[str, object], offset: int, observed: datetime
    ) -> Iterator[Item]:
        session = identifier(document.get("sessionId")) or self._stem
        entries = (entry for entry in objects_of(beside, "index") if entry.get("sessionId") == session)
        began = read_time(next(entries, {}).get("dateCreated"), self._tz)
        directory = text_of(document, "workspaceDirectory")
        cwd = (unquote(directory.removeprefix("file://")) if directory.startswith("file://") else directory) or None
        thread, names = Thread(), Names(session)
        for index, step in enumerate(objects_of(document, "history")):
            message = object_of(step, "message")
            name = names.of(message, None, index)
            blocks = tuple(_blocks(message))
            if not blocks:
                yield Item(RecordKind.RECOGNISED if message else RecordKind.UNKNOWN)
                continue
            is_named = identifier(message.get("id")) is None
            made = thread.message(
                name, session, str(index), began, cwd, blocks, offset, is_named=is_named, is_time_lent=True
            )
            yield Item(RecordKind.MESSAGE, (made,), began or observed)


def _blocks(message: Mapping[str, object]) -> Iterator[Block]:
    """Yield the agent's blocks; `toolCallStates` and `promptLogs` beside the message repeat them."""
    role = text_of(message, "role")
    if role == "thinking" and text_of(message, "content").strip():
        yield Block(Author.THINKING, text_of(message, "content"))
    if role == "assistant":
        yield from blocks_of({**message, "tool_calls": message.get("toolCalls")}, native=True)


FORMAT = Continue()
