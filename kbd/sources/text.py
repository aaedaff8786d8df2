"""Plain logs an agent writes: the person who names the folder vouches for the author, so all text is the agent's.

A record is a line, a message is a paragraph: lines up to a blank line or to a line that begins with a time. The open
paragraph comes again, under the same id, each time it has grown. Lines without a time have that of the nearest line
above that has one, else the time they were first read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Literal

import msgspec

from kbd.core.model import Author, Block, Decoded, Line, Message, Record, RecordKind, SessionId
from kbd.core.redact import redact_lines
from kbd.sources.contract import NOTHING, FileKind, Item, gather
from kbd.sources.linetime import LineTime, leading_time
from kbd.sources.memory import restore
from kbd.sources.times import EPOCH, from_micros, to_micros

MAX_PARAGRAPH_CHARS = 256 * 1024
MAX_PARAGRAPH_LINES = 2000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_NOT_LOGS = re.compile(
    r"(?:^|/)\.|~$|/?#[^/]*#$|\.kbd-conflict(?:\.[^./]+)?$|\.(?:sw[a-z]|tmp|temp|part|partial|crdownload|lock|pid|bak|orig|"
    r"png|jpe?g|gif|webp|bmp|ico|tiff?|heic|svgz|pdf|docx?|xlsx?|pptx?|odt|"
    r"zip|tgz|tar|bz2|xz|zst|lz4|7z|rar|jar|whl|deb|rpm|dmg|iso|"
    r"db|sqlite3?|db3|mdb|parquet|arrow|feather|npy|npz|pkl|pickle|pt|onnx|safetensors|"
    r"(?:db|sqlite3?)-(?:wal|shm|journal)|wal|shm|journal|bin|exe|dll|so|dylib|a|o|class|pyc|wasm|"
    r"mp[34]|m4a|wav|flac|ogg|avi|mov|mkv|webm|ttf|otf|woff2?)(?:\.gz)?$",
    re.IGNORECASE,
)
_ROTATION = re.compile(r"(?<=[^/])(?:\.\d{1,4}|[-.]\d{4}-?\d\d-?\d\d(?:-\d+)?)$")


Encoding = Literal["utf-8", "utf-16-le", "utf-16-be"]


def text_session(relpath: str) -> str:
    """Return the name of a log's session: its path without compression and rotation suffix."""
    return _ROTATION.sub("", re.sub(r"\.(?:gz|zst|bz2|xz)$", "", relpath))


class TextLogs:
    """Any regular file that is no dotfile, no temporary and not binary by its name."""

    agent = "text"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return nothing: a person names the folder."""
        return []

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take plain and gzipped files."""
        if _NOT_LOGS.search(relpath):
            return None
        return FileKind.GZIP if relpath.lower().endswith(".gz") else FileKind.LINES

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> TextDecoder:
        """Return a decoder for one log."""
        return TextDecoder(relpath, state, tz)


class _Clock(msgspec.Struct, array_like=True):
    """The time that lines without one inherit.

    `day` is the nearest date above, `dated` says that `micros` comes from a written date, `lines` counts the lines
    since `micros` changed, to tell equal paragraphs of one time apart.
    """

    day: date | None = None
    micros: int | None = None
    observed: bool = False
    dated: bool = False
    lines: int = 0


class _State(msgspec.Struct, array_like=True):
    encoding: Encoding = "utf-8"
    carry: bytes = b""
    clock: _Clock = msgspec.field(default_factory=_Clock)
    clock_before: _Clock = msgspec.field(default_factory=_Clock)
    key: str = ""
    lines: list[tuple[int, str, int, bool]] = []
    size: int = 0


class TextDecoder:
    """Collects lines into paragraphs. A line delivered again (it had no newline yet) takes the place of the first."""

    def __init__(self, relpath: str, state: bytes | None, tz: tzinfo) -> None:
        """Begin at the start of the log, or where `state` left off."""
        self._session = SessionId(text_session(relpath))
        self._tz = tz
        self._now = restore(state, _State)

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one line first read at `observed`; return the paragraph it closes, if any."""
        found = self._text(record)
        return NOTHING if found is None else gather([self._line(found[0], _shown(found[1]), observed)])

    def flush(self) -> Decoded:
        """Return the open paragraph as it stands."""
        return Decoded((), self._paragraph(), None)

    def state(self) -> bytes:
        """Return the open paragraph and the time its successors inherit; at most some 256 KiB."""
        masked = redact_lines([text for _, text, _, _ in self._now.lines])  # what is returned is kept
        lines = [(offset, text, at, seen) for (offset, _, at, seen), text in zip(self._now.lines, masked, strict=True)]
        return msgspec.json.encode(msgspec.structs.replace(self._now, lines=lines))

    def _text(self, record: Record) -> tuple[int, str] | None:
        """Return the line's offset and text; None while a newline byte turned out to be half of a UTF-16 unit."""
        if record.offset == 0:
            head = record.data[:2]
            utf_16: Encoding = "utf-16-le" if head == b"\xff\xfe" else "utf-16-be"
            self._now.encoding = utf_16 if head in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
            self._now.carry = b""
        if self._now.encoding == "utf-8":
            return record.offset, record.data.decode("utf-8", "replace")
        data, start = self._now.carry + record.data, record.offset - len(self._now.carry)
        self._now.carry = b""
        big, odd = self._now.encoding == "utf-16-be", (start + len(data)) % 2
        if (not data.endswith(b"\0") or not odd if big else odd) and len(data) < MAX_PARAGRAPH_CHARS:
            self._now.carry = data + b"\n"
            return None
        return (start, data[:-1].decode("utf-16-be", "replace")) if big else self._little(start, data)

    def _little(self, start: int, data: bytes) -> tuple[int, str]:
        """Return a line of little-endian text.

        The second byte of the newline before it comes first. Is it not zero, then that was no newline but a character
        such as U+4E0A, and the line goes on.
        """
        if start % 2 == 0 or data.startswith(b"\0"):
            return start, data[start % 2 :].decode("utf-16-le", "replace")
        text = (b"\n" + data).decode("utf-16-le", "replace")
        if not self._now.lines:
            return start, text
        offset, before, _, _ = self._now.lines[-1]
        return offset, before + text

    def _line(self, offset: int, text: str, observed: datetime) -> Item:
        now = self._now
        if now.lines and now.lines[-1][0] == offset:
            now.size -= len(now.lines.pop()[1])
            now.clock = now.clock_before
        now.clock_before = now.clock
        if not text.strip():
            now.clock = msgspec.structs.replace(now.clock, lines=now.clock.lines + 1)
            return Item(RecordKind.RECOGNISED, self._close())
        leading = leading_time(text)
        closed = self._close() if leading else ()
        now.clock = self._advanced(leading, observed)
        inherited = from_micros(now.clock.micros)
        at = observed.astimezone(UTC) if inherited is None else inherited
        if not now.lines:
            now.key = self._key(offset, text)
        now.lines.append((offset, text, to_micros(at) or 0, inherited is None or now.clock.observed))
        now.size += len(text)
        if now.size >= MAX_PARAGRAPH_CHARS or len(now.lines) >= MAX_PARAGRAPH_LINES:
            closed += self._close()
        return Item(RecordKind.MESSAGE, closed, at)

    def _advanced(self, leading: LineTime | None, observed: datetime) -> _Clock:
        """Return the clock after a line that begins with `leading`."""
        clock = self._now.clock
        day = (leading.day if leading else None) or clock.day
        at = leading.at(day or observed.astimezone(self._tz).date(), self._tz) if leading else None
        micros = to_micros(at)
        if micros is None or micros == clock.micros:
            return msgspec.structs.replace(clock, day=day, lines=clock.lines + 1)
        return _Clock(day, micros, observed=day is None, dated=day is not None)

    def _key(self, offset: int, first: str) -> str:
        """Return the paragraph's id: time and words where it carries a date (they survive rotation), else its place."""
        clock = self._now.clock
        at = from_micros(clock.micros)
        if at is None or not clock.dated:
            return f"o:{offset}"
        digest = hashlib.sha1(first.encode(), usedforsecurity=False).hexdigest()[:12]
        return f"t:{at.isoformat()}:{digest}" + (f":{clock.lines}" if clock.lines else "")

    def _close(self) -> tuple[Message, ...]:
        closed = self._paragraph()
        self._now.lines, self._now.size = [], 0
        return closed

    def _paragraph(self) -> tuple[Message, ...]:
        lines = self._now.lines
        if not lines:
            return ()
        starts, at = [], 0
        for offset, text, micros, observed in lines:
            starts.append(Line(at, from_micros(micros) or EPOCH, observed, offset))
            at += len(text) + 1
        block = Block(Author.AGENT_TEXT, "\n".join(text for _, text, _, _ in lines))
        return (
            Message(
                None, self._session, self._now.key, starts[0].at, None, (block,), lines[0][0], lines=tuple(starts)
            ),
        )


def _shown(text: str) -> str:
    """Return a line as a terminal leaves it: no escape sequences, of a progress line only the last state."""
    text = text.removeprefix("\ufeff").rstrip("\r")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = next((piece for piece in reversed(text.split("\r")) if piece.strip()), "")
    return text.replace("\x00", "") if "\x00" in text else text


FORMAT = TextLogs()
