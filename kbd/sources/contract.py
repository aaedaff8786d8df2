"""What every source format offers to the layers above, and the values its decoders share."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Protocol, runtime_checkable

from kbd.core.lean import lean
from kbd.core.model import Decoded, Message, Record, RecordKind


class FileKind(enum.Enum):
    """How a file of a source is read."""

    LINES = "lines"  # a record is a line; the file is appended to
    GZIP = "gzip"  # lines, compressed; read whole
    ZSTD = "zstd"  # lines, compressed; read whole where the system can
    DOCUMENT = "document"  # the one record is the whole file, JSON; it is rewritten, its decoder begins anew each time
    DATABASE = "database"  # SQLite; a record is a row, see `DatabaseFormat`


class Decoder(Protocol):
    """Turns the records of one file, in order, into messages. Deterministic; never raises on any bytes."""

    def feed(self, record: Record, observed: datetime) -> Decoded:
        """Decode one record. `observed` (aware) is the time of a record that carries none, where the format says so."""
        ...

    def flush(self) -> Decoded:
        """Return what is still open, without closing it; may be repeated, the same messages come again as they grow."""
        ...

    def state(self) -> bytes:
        """Return what must be known to go on at the next record (JSON); going on equals never having stopped."""
        ...


class SourceFormat(Protocol):
    """One agent's way of writing transcripts."""

    def __hash__(self) -> int:
        """What a format can is asked once."""
        ...

    @property
    def agent(self) -> str:
        """The name used in the configuration (`agent:` or `format:`)."""
        ...

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the folders (or files) this agent writes to, best first; none of them need exist."""
        ...

    def file_kind(self, relpath: str) -> FileKind | None:
        """Return how to read the file at `relpath` (`/`-separated, from the root), None if it is no transcript."""
        ...

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> Decoder:
        """Return a decoder for a file, fresh or from `state`. A state that cannot be read counts as none.

        `tz` is the zone of times written without one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """What to read of one table; a row becomes a record, an object with `table` and the fields as JSON.

    Rows are read in the order of their rowids. Expressions are SQL over `t`, the table, and what `joins` names.

    Attributes:
        table: its name.
        fields: an expression for each key of the record.
        identity: an expression that stays the same as long as a row lives; tells a database that was replaced.
        joins: SQL that names further tables.
        changed: expression in ms since the epoch that grows when a row changes in place; "" if rows never do.
    """

    table: str
    fields: Mapping[str, str]
    identity: str
    joins: str = ""
    changed: str = ""


@runtime_checkable
class DatabaseFormat(SourceFormat, Protocol):
    """A format some of whose files are databases."""

    def rows(self, columns: Mapping[str, frozenset[str]]) -> tuple[Rows, ...]:
        """Return what to read, given the columns of each table; empty if nothing in there is known."""
        ...


@runtime_checkable
class CompanionFormat(SourceFormat, Protocol):
    """A format whose documents are understood only with others of the same root.

    Such a record is a JSON array: the document, then its companions in the order they were named.
    """

    def companions(self, relpath: str, read: Sequence[bytes]) -> tuple[str, ...]:
        """Name further documents (`*` for any one folder), given the document and its companions read so far."""
        ...


@runtime_checkable
class SupersededFormat(SourceFormat, Protocol):
    """A format whose old files were taken over into a newer store, a database, and left behind."""

    def superseded_by(self, relpath: str) -> str | None:
        """Name the store, from the root, that may hold the session at `relpath`, which is then no longer to be read."""
        ...

    def names_in_store(self, columns: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
        """Return queries of one column for all by which the store knows its sessions, given the columns of tables."""
        ...

    def names_of(self, relpath: str, head: bytes) -> frozenset[str]:
        """Return by which of these the store would know the session at `relpath`, a file that begins with `head`."""
        ...


@runtime_checkable
class PlacedFormat(SourceFormat, Protocol):
    """A format whose transcripts do not name the directory their session works in; where they lie may tell."""

    @property
    def in_projects(self) -> bool:
        """Whether the transcripts lie among the files of projects, so that not all below a root is a transcript."""
        ...

    def workplace(self, relpath: str, path: str, read: Callable[[str], bytes | None]) -> str | None:
        """Return the absolute working directory of the session in a file, None if nothing tells.

        `relpath` is from the root, `path` absolute; `read` returns a small file, named from the root, if it is there.
        """
        ...


# A protocol is checked attribute by attribute, which for each of many small files costs as much as reading it.


@cache
def superseding(source: SourceFormat) -> SupersededFormat | None:
    """Return a format as one whose old files may be superseded, None if it is not."""
    return source if isinstance(source, SupersededFormat) else None


@cache
def placed(source: SourceFormat) -> PlacedFormat | None:
    """Return a format as one whose transcripts are placed where their sessions work, None if it is not."""
    return source if isinstance(source, PlacedFormat) else None


@cache
def accompanied(source: SourceFormat) -> CompanionFormat | None:
    """Return a format as one whose documents have companions, None if it is not."""
    return source if isinstance(source, CompanionFormat) else None


@lean(frozen=True, slots=True)
class Item:
    """What one logical record gave."""

    kind: RecordKind
    messages: tuple[Message, ...] = ()
    at: datetime | None = None


NOTHING = Decoded((), (), None)
IGNORED = Item(RecordKind.RECOGNISED)
UNKNOWN = Item(RecordKind.UNKNOWN)


def gather(items: Iterable[Item]) -> Decoded:
    """Join the items of one record."""
    kinds: list[RecordKind] = []
    messages: list[Message] = []
    newest: datetime | None = None
    for item in items:
        kinds.append(item.kind)
        messages += item.messages
        if item.at is not None and (newest is None or item.at > newest):
            newest = item.at
    return Decoded(tuple(kinds), tuple(messages), newest)
