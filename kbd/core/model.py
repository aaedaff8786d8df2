"""The values that travel through kbd, named once for all layers.

Text offsets count characters of `str`, byte offsets count bytes of the file. Times are aware UTC
datetimes, days are `datetime.date` in UTC.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime
from typing import NewType

from kbd.core.lean import lean

BaseName = NewType("BaseName", str)
SessionId = NewType("SessionId", str)
EntryId = NewType("EntryId", int)

BREAK = "\n\n\ufdd0\n\n"
"""Stands between texts of one tool call that are not one text: fields, shell segments, hunks of a patch.

U+FDD0 is no character (Unicode, noncharacters), so that no title and no entry's own text spans it; a paragraph of its
own ends what is read by lines or entries.
"""


class State(enum.Enum):
    """Where an entry is in its life."""

    ACTIVE = "active"
    DORMANT = "dormant"
    ARCHIVED = "archived"


class Author(enum.Enum):
    """Who wrote a span of text. Only the classes that can count; all other text is left out by the decoder."""

    AGENT_TEXT = "agent_text"
    AGENT_TOOL_INPUT = "agent_tool_input"
    THINKING = "thinking"


@dataclass(frozen=True, slots=True)
class Problem:
    """Bad input, as a value: counted and shown, never the end of a pass.

    Attributes:
        code: stable name, such as `unknown_type`; documented in the README.
        where: `file:line` or the object concerned.
        what: the fault in one clause.
        hint: what to do.
    """

    code: str
    where: str
    what: str
    hint: str


class TouchMode(enum.Enum):
    """What a tool call did to a file."""

    READ = "read"
    WRITE = "write"
    MENTION = "mention"


@lean(frozen=True, slots=True)
class Touch:
    """A file named by a tool call. `path` is as the agent wrote it (relative to the session's cwd if not absolute)."""

    path: str
    mode: TouchMode


@lean(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent, already split into what it wrote and what it copied.

    Attributes:
        name: the tool's own name, as in the transcript.
        written: texts the agent wrote and that may count (commands, new halves, prompts), joined by `BREAK`; "" for a
            retrieval.
        copied: texts that stood in a file before (old halves, SEARCH, context and `-` lines), joined alike.
        whole_file: `written` is the full new content of one file (a Write), so it holds old text as well.
        touched: files named by the input, in order, without duplicates.
        named: further words of the input that could be paths, for the test "names a knowledge file".
        prose: texts whose words could be paths, for the same test; few are ever looked at word by word.
        own: a command or tool of kbd itself.
        added: titles of the entries that it adds, as given.
    """

    name: str
    written: str
    copied: str = ""
    whole_file: bool = False
    touched: tuple[Touch, ...] = ()
    named: tuple[str, ...] = ()
    own: bool = False
    added: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()


@lean(frozen=True, slots=True)
class Block:
    """One agent-written span: a text, or one tool call, of one message.

    Attributes:
        author: its class.
        text: what may be matched (for a tool call: `call.written`).
        native_id: the id of the tool call, if the agent gives one; None for text.
        call: the tool call, None for text and thinking.
    """

    author: Author
    text: str
    native_id: str | None = None
    call: ToolCall | None = None


@lean(frozen=True, slots=True)
class Line:
    """Where a line of a text-source message begins and which time it has.

    Attributes:
        start: character offset in the block's text.
        at: the line's time.
        observed: the time is the time of reading, not one that the record carries.
        offset: byte offset of the line in its file.
    """

    start: int
    at: datetime
    observed: bool
    offset: int


@dataclass(frozen=True, slots=True)
class LineCite:
    """Lines of a file that an agent cites by number: 1-based, both ends included; `path` as the agent wrote it."""

    path: str
    start: int
    end: int


@lean(frozen=True, slots=True)
class Message:
    """Agent-written blocks of one message, found in one record (a message may come in several records).

    Attributes:
        native_id: the agent's id of the message, stable in copies; None where the agent gives none.
        session: the session it counts for (a sub-agent's trunk).
        record_id: id of the record for the evidence (uuid, line number); "" if none.
        at: time of the message's first record; None if the record carries none.
        cwd: the session's working directory at that point; None if unknown.
        blocks: at least one.
        offset: byte offset of the record in its file.
        lines: text sources only: the lines of the single block's text, in order; else empty.
        recent: files the session touched in the 10 minutes before, newest first.
        cites: lines of files cited by number (Codex's memory citations); their block is no part of any text.
        copied_from: sessions whose records this file declares to begin with (a fork, a resumed copy), nearest first.
        before: the end of the text that the first block, if a text, goes on from (an earlier fragment of the message).
        thread: the session's own id where one file holds several that count for one; "" otherwise.
        renumbered: copies of it carry other ids; they are told by their words.
        earlier: files that earlier records of this message read or wrote.
        is_time_lent: `at` is the time of the session or of a message before, since the record carries none.
        words: names of what it tells, shared by a record around it, perhaps in another file, that tells that again.
        encloses: it is such a record around others.
    """

    native_id: str | None
    session: SessionId
    record_id: str
    at: datetime | None
    cwd: str | None
    blocks: tuple[Block, ...]
    offset: int
    lines: tuple[Line, ...] = ()
    recent: tuple[Touch, ...] = ()
    cites: tuple[LineCite, ...] = ()
    copied_from: tuple[SessionId, ...] = ()
    before: str = ""
    thread: str = ""
    renumbered: bool = False
    is_time_lent: bool = False
    earlier: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    encloses: bool = False


class RecordKind(enum.Enum):
    """What a decoder made of a record."""

    MESSAGE = "message"
    RECOGNISED = "recognised"
    UNKNOWN = "unknown"
    MALFORMED = "malformed"


@lean(frozen=True, slots=True)
class Record:
    """One whole record of a transcript: its bytes without the line end, and the byte offset of its first byte."""

    offset: int
    data: bytes


@lean(frozen=True, slots=True)
class Decoded:
    """What one record gave.

    Attributes:
        kinds: one per logical record found (a damaged line may hold several, or none but MALFORMED).
        messages: the agent-written messages in it.
        newest: the newest time any of its records carries (of any author), None if none.
    """

    kinds: tuple[RecordKind, ...]
    messages: tuple[Message, ...]
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata comment of an entry as found.

    Attributes:
        ref: count; None when missing or unreadable.
        last: day; None when `none`, missing or unreadable.
        last_given: a readable `last` (a date, or `none`) was present.
        state: None when missing or unreadable.
        extra: further `key:value` pairs in their order.
    """

    ref: int | None
    last: date | None
    last_given: bool
    state: State | None
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of byte offsets in a file."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a knowledge file, as parsed.

    Attributes:
        title: as shown, without markup of the bold pair and without a trailing `:` or `.`.
        norm: the normalised title (see `kbd.core.normal`).
        type: known type, lower case; None if untagged or unknown.
        tag: the raw word in brackets, None if none.
        ident: id such as `KD07`, None if none.
        section: headings above it, joined by ` / `; "" before any heading.
        line: 1-based number of its first line.
        block: its bytes, from the bullet to the end of its last line (line end included).
        comments: spans of its metadata comments' whole lines (or of the comment alone if it shares a line).
        meta: the merged metadata; None if there is no metadata comment at all.
        marker: the dormancy marker stands after the bullet.
        created: date in its text, None if none.
        body: normalised text of the entry after its title, without metadata comments and without the
            trailing date in parentheses; "" for a bare title.
        derived_title: the title was cut from plain text (no bold).
    """

    title: str
    norm: str
    type: str | None
    tag: str | None
    ident: str | None
    section: str
    line: int
    block: Span
    comments: tuple[Span, ...]
    meta: Metadata | None
    marker: bool
    created: date | None
    body: str
    derived_title: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Counter and day as they stand in a metadata comment, compared as one value."""

    ref: int
    last: date | None


@dataclass(frozen=True, slots=True)
class Relation:
    """One item of the relations file: subject, predicate, object, created, used, expired."""

    s: str
    p: str
    o: str
    c: date | None
    u: date | None
    e: date | None = None
