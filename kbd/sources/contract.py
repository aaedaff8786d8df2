"""What every source format offers to the layers above, and the values its decoders share."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from kbd.core.model import Decoded, Message, Record, RecordKind


class FileKind(enum.Enum):
    """How a file of a source is read."""

    LINES = "lines"  # a record is a line; the file is appended to
    GZIP = "gzip"  # lines, compressed; read whole
    ZSTD = "zstd"  # lines, compressed; read whole where the system can
    DOCUMENT = "document"  # a record is the whole file; it is rewritten
    DATABASE = "database"  # SQLite; records are rows


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
