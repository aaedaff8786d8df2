"""Builds records as agents write them and runs them through a decoder, at once or with a stop after any record."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from kbd.core.model import Decoded, Message, Record, RecordKind
from kbd.sources.contract import SourceFormat

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def records(lines: Sequence[bytes | dict[str, object]]) -> list[Record]:
    found, offset = [], 0
    for given in lines:
        data = given if isinstance(given, bytes) else line(given)
        found.append(Record(offset, data))
        offset += len(data) + 1
    return found


def run(
    source: SourceFormat,
    relpath: str,
    lines: Sequence[bytes | dict[str, object]],
    *,
    stops: frozenset[int] = frozenset(),
    tz: tzinfo = UTC,
    observed: Sequence[datetime] = (),
) -> list[Decoded]:
    """Decode `lines`, going on from a saved state after each index in `stops`; the last item is what flush gives."""
    decoder = source.decoder(relpath, None, tz=tz)
    decoded = []
    for index, record in enumerate(records(lines)):
        decoded.append(decoder.feed(record, observed[index] if observed else NOON))
        if index in stops:
            decoder.flush()
            decoder = source.decoder(relpath, decoder.state(), tz=tz)
    return [*decoded, decoder.flush()]


def messages(decoded: Sequence[Decoded]) -> list[Message]:
    return [message for one in decoded for message in one.messages]


def texts(decoded: Sequence[Decoded]) -> list[str]:
    return [block.text for message in messages(decoded) for block in message.blocks if block.text]


def kinds(decoded: Sequence[Decoded]) -> list[str]:
    return [kind.value for one in decoded for kind in one.kinds]


def count(decoded: Sequence[Decoded], kind: RecordKind) -> int:
    return sum(one.kinds.count(kind) for one in decoded)
