"""Aider: a Markdown history per project, where marks at the line's start tell who spoke.

`#### ` leads what the user typed, `> ` what the program said; all else is the agent's. The agent's own Markdown may
hold such lines: within a fence or a SEARCH/REPLACE block they belong to it, unless two spaces at the end, which Aider
puts behind every line of user and program, and a blank line above say that the block was left open. Only the header of
a chat has a time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo

import msgspec

from kbd.core.model import Decoded, Message, Record, RecordKind, SessionId, Touch, TouchMode
from kbd.sources.aideredits import REPLACED, SEARCH, edit_blocks, fence_after
from kbd.sources.contract import FileKind, Item, gather
from kbd.sources.memory import RECENT_FILES, restore
from kbd.sources.times import from_micros, read_time, to_micros

MAX_REPLY_CHARS = 256 * 1024
MAX_REPLY_LINES = 4000
REMEMBERED_REPLIES = 1024

_HISTORY = re.compile(r"(?:.*/)?[^/]*aider(?!.*(?:llm|input))[^/]*history[^/]*\.md")
_HEADER = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_TOUCHED = re.compile(r"> (?:(Applied edit to) (.+?)|Added (.+?) to the chat\.?)\s*")
# Commands whose unmarked output follows the command itself; no model answers them.
_OUTPUT = re.compile(
    r"#### +(?:!|/(?:run|web|git|diff|ls|tokens|map|map-refresh|settings|report|models|undo|copy"
    r"|copy-context|clear|reset)\b)"
)


class Aider:
    """One history per project; the root is the project, a folder of projects, or the file itself."""

    agent = "aider"
    in_projects = True

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return nothing: histories lie in projects, which a person names."""
        return []

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take chat histories, never the log of prompts sent to the model or the history of the prompt line."""
        return FileKind.LINES if _HISTORY.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> AiderDecoder:
        """Return a decoder for one history."""
        return AiderDecoder(relpath, state, tz)

    def workplace(self, relpath: str, path: str, read: Callable[[str], bytes | None]) -> str | None:
        """Return the folder of the history: Aider writes it where it works, at the root of the repository."""
        return path.rpartition("/")[0] or None


class _State(msgspec.Struct, array_like=True):
    lines: list[str] = []
    micros: int | None = None
    speaker: str = ""  # user, tool or agent; "" before the first header
    is_output: bool = False
    fence: str = ""
    in_edit: bool = False
    after_blank: bool = False
    size: int = 0
    offset: int = 0
    name: str = ""
    said: dict[str, int] = {}
    opening: str = ""  # digest of the chat's lines before its first reply
    gap: str = ""  # digest of the whole lines since the last reply
    at: int = -1  # offset of the newest line, and the line: it may come again, longer
    line: str = ""
    before: tuple[str, bool, str, bool] = ("", False, "", False)  # fence to after_blank, before that line
    files: list[tuple[str, TouchMode]] = []


class AiderDecoder:
    """Collects the agent's lines into replies; the open one comes again as it grows, under the same id."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the history, or where `state` left off."""
        self._now = restore(state, _State)
        self._folder = relpath.rpartition("/")[0]
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line; `observed` is not needed."""
        text = record.data.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r")
        if record.offset == self._now.at:
            self._take_back()
        else:
            self._pass_on()
        found = self._line(text, record.offset)
        self._now.at, self._now.line = record.offset, text
        return gather([found])

    def _take_back(self) -> None:
        """Forget the newest line, which had no end when it was read and comes again."""
        now = self._now
        if now.lines:
            now.size -= len(now.lines.pop())
            now.fence, now.in_edit, now.speaker, now.after_blank = now.before
            if not now.lines:
                now.said[now.gap] -= 1

    def _pass_on(self) -> None:
        """Take the newest line as whole: what stands before a reply tells which one it is."""
        now = self._now
        if now.at >= 0 and not now.lines:
            now.gap = hashlib.blake2b(f"{now.gap}\n{now.line}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        now.before = now.fence, now.in_edit, now.speaker, now.after_blank

    def flush(self) -> Decoded:
        """Return the open reply as it stands."""
        return Decoded((), self._reply(), None)

    def state(self) -> bytes:
        """Return the open reply (at most some 256 KiB) and where in the history it stands."""
        return msgspec.json.encode(self._now)

    def _line(self, text: str, offset: int) -> Item:
        now = self._now
        header = _HEADER.fullmatch(text)
        at = read_time(header[1], self._tz) if header else None
        if at is not None:
            closed = self._close()
            self._now = _State(micros=to_micros(at), speaker="tool")
            return Item(RecordKind.RECOGNISED, closed, at)
        marked = _speaker(text) if now.speaker else ""
        closes = marked and (not (now.fence or now.in_edit) or now.after_blank and text.endswith("  "))
        is_new = now.after_blank or now.speaker != "user"
        now.after_blank = not text.strip()
        if closes:
            return Item(RecordKind.RECOGNISED, self._mark(marked, text, is_new=is_new))
        if not now.speaker or now.is_output or not now.lines and now.after_blank:
            return Item(RecordKind.RECOGNISED)
        return Item(RecordKind.MESSAGE, self._add(text, offset))

    def _mark(self, speaker: str, text: str, *, is_new: bool) -> tuple[Message, ...]:
        """Take a line of the user or the program; `is_new` says that it goes on with no line of the user above."""
        now = self._now
        if speaker == "user" and is_new:
            now.is_output = _OUTPUT.match(text) is not None
        now.speaker, now.fence, now.in_edit = speaker, "", False
        closed = self._close()
        touched = _TOUCHED.fullmatch(text)
        if touched is not None:
            path, mode = touched[2] or touched[3], TouchMode.WRITE if touched[1] else TouchMode.READ
            kept = [seen for seen in now.files if seen[0] != path]
            now.files = [(path[:4096], mode), *kept][:RECENT_FILES]
        return closed

    def _add(self, text: str, offset: int) -> tuple[Message, ...]:
        now = self._now
        if not now.lines:
            now.speaker, now.offset, now.name = "agent", offset, self._named()
        now.lines.append(text)
        now.size += len(text)
        if now.in_edit:
            now.in_edit = REPLACED.match(text) is None
        elif SEARCH.match(text):
            now.in_edit = True
        else:
            now.fence = fence_after(now.fence, text)
        return self._close() if now.size >= MAX_REPLY_CHARS or len(now.lines) >= MAX_REPLY_LINES else ()

    def _named(self) -> str:
        """Return the id of the reply that begins: its chat, what stands before it, and how often that came before.

        A chat is known by its time and all before its first reply: one second may begin chats in many repositories.
        """
        now = self._now
        now.opening = now.opening or now.gap
        now.said[now.gap] = now.said.pop(now.gap, 0) + 1
        if len(now.said) > REMEMBERED_REPLIES:
            del now.said[next(iter(now.said))]
        return f"{now.micros}:{now.opening}:{now.gap}:{now.said[now.gap]}"

    def _close(self) -> tuple[Message, ...]:
        closed = self._reply()
        if self._now.lines:
            self._now.gap = ""
        self._now.lines, self._now.size = [], 0
        return closed

    def _reply(self) -> tuple[Message, ...]:
        now = self._now
        blocks = tuple(edit_blocks(now.lines))
        if not blocks:
            return ()
        at = from_micros(now.micros)
        session = SessionId(f"{self._folder}@{at.isoformat() if at else ''}")
        recent = tuple(Touch(path, mode) for path, mode in now.files)
        return (Message(now.name, session, now.name, at, None, blocks, now.offset, recent=recent),)


def _speaker(text: str) -> str:
    """Return who a line's mark says spoke, "" if it has none."""
    if text.startswith("#### ") or text.rstrip() == "####":
        return "user"
    return "tool" if text.startswith("> ") or text.rstrip() == ">" else ""


FORMAT = Aider()
