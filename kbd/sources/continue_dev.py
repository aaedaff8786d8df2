"""Continue: one JSON file per session, rewritten whole, without ids and times of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

from kbd.core.model import Author, Block, Decoded, Record, RecordKind
from kbd.sources.chatturns import blocks_of
from kbd.sources.cline import Names
from kbd.sources.contract import NOTHING, FileKind, Item, gather
from kbd.sources.jsonl import object_of, objects_of, read_value, text_of
from kbd.sources.memory import identifier
from kbd.sources.thread import Thread

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

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> SessionDecoder:
        """Return a decoder for one session."""
        return SessionDecoder(relpath)


class SessionDecoder:
    """Reads one session whole."""

    def __init__(self, relpath: str) -> None:
        """Begin; a document leaves no state."""
        self._stem = relpath.rsplit("/", 1)[-1].removesuffix(".json")

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode the whole file; `observed` is not needed: what has no time is dated by the ledger."""
        session = read_value(record.data)
        if not isinstance(session, dict) or not isinstance(session.get("history"), list):
            return gather([Item(RecordKind.MALFORMED if session is None else RecordKind.UNKNOWN)])
        return gather(self._items(session, record.offset))

    def flush(self) -> Decoded:
        """Return nothing: a document is whole."""
        return NOTHING

    def state(self) -> bytes:
        """Return nothing: a rewritten document is read anew."""
        return b"{}"

    def _items(self, document: Mapping[str, object], offset: int) -> Iterator[Item]:
        session = identifier(document.get("sessionId")) or self._stem
        cwd = text_of(document, "workspaceDirectory").removeprefix("file://") or None
        thread, names = Thread(), Names(session)
        for index, step in enumerate(objects_of(document, "history")):
            message = object_of(step, "message")
            name = names.of(message, None, index)
            blocks = tuple(_blocks(message))
            if not blocks:
                yield Item(RecordKind.RECOGNISED if message else RecordKind.UNKNOWN)
                continue
            made = thread.message(name, session, str(index), None, cwd, blocks, offset)
            yield Item(RecordKind.MESSAGE, (made,))


def _blocks(message: Mapping[str, object]) -> Iterator[Block]:
    """Yield the agent's blocks; `toolCallStates` and `promptLogs` beside the message repeat them."""
    role = text_of(message, "role")
    if role == "thinking" and text_of(message, "content").strip():
        yield Block(Author.THINKING, text_of(message, "content"))
    if role == "assistant":
        yield from blocks_of({**message, "tool_calls": message.get("toolCalls")}, native=True)


FORMAT = Continue()
