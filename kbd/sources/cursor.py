"""Cursor agent: JSONL transcripts without ids and, but for a tag in the user's text, without times.

A message has the time of the last `<timestamp>` above it, a microsecond later for each record since, which keeps equal
words of one turn apart; before the first tag it has none. Its place in the file names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import msgspec

from kbd.core.model import Decoded, Record, RecordKind
from kbd.sources.chatturns import blocks_of
from kbd.sources.contract import NOTHING, FileKind, Item
from kbd.sources.jsonl import Json, decode_record, object_of, objects_of, read_all, text_of
from kbd.sources.memory import restore
from kbd.sources.thread import Thread, ThreadState
from kbd.sources.times import from_micros, read_time, to_micros

_TRANSCRIPT = re.compile(
    r"(?:(?:.*/)?agent-transcripts/)(?:([^/.][^/]*)/(?:subagents/)?)?([^/.][^/]*)\.jsonl"
    r"|([^/.][^/]*)/(?:\3|subagents/[^/.][^/]*)\.jsonl"
)
_TAG = re.compile(r"<timestamp>\s*([^<]{1,80}?)\s*</timestamp>")
_SPOKEN = re.compile(
    r"(?:[A-Z][a-z]+,\s+)?([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),?\s+(\d{4}),?\s+(?:at\s+)?(\d{1,2}):(\d\d)(?::(\d\d))?"
    r"\s*([AaPp])\.?[Mm]\.?(?:\s*\(?(?:UTC|GMT)(?:([+-]\d{1,2})(?::?(\d\d))?)?\)?)?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _is_record(value: Json) -> bool:
    return "role" in value and "message" in value or text_of(value, "type") == "turn_ended"


class Cursor:
    """Where Cursor writes; the root may be its folder, `projects`, a project or its `agent-transcripts`."""

    agent = "cursor"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the usual place."""
        return [f"{home}/.cursor"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take transcripts and those of sub-agents."""
        return FileKind.LINES if _TRANSCRIPT.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> CursorDecoder:
        """Return a decoder for one transcript."""
        return CursorDecoder(relpath, state, tz)


class _State(msgspec.Struct, array_like=True):
    thread: ThreadState = msgspec.field(default_factory=ThreadState)
    index: int = 0
    told: int | None = None
    since: int = 0


class CursorDecoder:
    """Assistant lines become messages; a sub-agent counts for its parent."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the file, or where `state` left off."""
        self._now = restore(state, _State)
        self._thread = Thread(self._now.thread)
        parts = relpath.removesuffix(".jsonl").split("/")
        is_child = len(parts) > 2 and parts[-2] == "subagents"
        self._session = parts[-3] if is_child else parts[-1]
        self._wire = parts[-1] if is_child else ""
        self._tz = tz

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line. Where no time was told yet, `observed` says that the agent is at work, not when it spoke."""
        return decode_record(record, read_all, _is_record, lambda line, offset: self._item(line, offset, observed))

    def flush(self) -> Decoded:
        """Return nothing: no line stays open."""
        return NOTHING

    def state(self) -> bytes:
        """Return the place, the time last told and recent files."""
        self._now.thread = self._thread.saved()
        return msgspec.json.encode(self._now)

    def _item(self, line: Json, offset: int, observed: datetime) -> Item:
        self._now.index += 1
        self._now.since += 1
        role, message = text_of(line, "role"), object_of(line, "message")
        if role == "user":
            self._hear(message)
        if role not in ("assistant", "user") or not message:
            known = bool(role) or text_of(line, "type") in ("turn_ended", "turn_started")
            return Item(RecordKind.RECOGNISED if known else RecordKind.UNKNOWN)
        at = read_time(line.get("timestamp"), self._tz) or self._time()
        blocks = tuple(blocks_of(message, native=True)) if role == "assistant" else ()
        if not blocks:
            return Item(RecordKind.RECOGNISED, at=at or observed)
        place = f"{self._wire}:{self._now.index}" if self._wire else str(self._now.index)
        made = self._thread.message(None, self._session, place, at, None, blocks, offset)
        return Item(RecordKind.MESSAGE, (made,), at or observed)

    def _hear(self, message: Mapping[str, object]) -> None:
        parts = [message, *objects_of(message, "content")]
        for text in (text_of(part, key) for part in parts for key in ("content", "text")):
            found = _TAG.search(text)
            told = to_micros(_spoken_time(found[1], self._tz)) if found else None
            if told is not None:
                self._now.told, self._now.since = told, 0
                return

    def _time(self) -> datetime | None:
        return None if self._now.told is None else from_micros(self._now.told + self._now.since)


def _spoken_time(text: str, tz: tzinfo) -> datetime | None:
    """Return the time a tag says: ISO 8601, or as in `Monday, Jan 5, 2026, 9:00 AM (UTC+1)`."""
    found = _SPOKEN.fullmatch(text)
    if found is None or found[1] not in _MONTHS:
        return read_time(text, tz)
    hour = int(found[4]) % 12 + (12 if found[7] in "Pp" else 0)
    sign = -1 if (found[8] or "").startswith("-") else 1
    behind = timedelta(hours=int(found[8] or 0), minutes=sign * int(found[9] or 0))
    try:
        zone = timezone(behind) if "UTC" in text or "GMT" in text else tz
        month, day, year = _MONTHS.index(found[1]) + 1, int(found[2]), int(found[3])
        return datetime(year, month, day, hour, int(found[5]), int(found[6] or 0), tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


FORMAT = Cursor()
