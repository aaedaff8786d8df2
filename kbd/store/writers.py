"""Who writes into a base: a small file beside the relations file, by which two kbds on one base see each other.

Each writer stamps its line every ten minutes. A line that nobody stamped for half an hour is stale and is taken over.
Clocks of hosts differ: what was seen to change is alive, whatever its stamp says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kbd.errors import ChangedUnderneath, FileUnreadable
from kbd.store.files import create_file, read_with_stat
from kbd.store.replacing import replace_file

NAME = ".kbd-writer"
LIVE_SECONDS = 1800.0
BEAT_SECONDS = 600.0
MAX_BYTES = 64 << 10
ATTEMPTS = 5
_MACHINE_ID = Path("/etc/machine-id")

Sightings = Mapping[str, tuple[str, float]]
"""Place of another writer → its stamp, and since when (real clock) it has been this one."""


class Writer(msgspec.Struct, frozen=True):
    """A kbd that writes into the base.

    Attributes:
        id: of its ledger; host: name of its machine.
        place: digest of machine and state directory: a ledger made anew in the same place is the same writer.
        at: when it last stamped, ISO, UTC.
    """

    id: str
    host: str
    place: str
    at: str = ""


class _Document(msgspec.Struct, frozen=True):
    version: int = 1
    writers: tuple[Writer, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What a look found.

    Attributes:
        others: writers that are alive besides this one.
        sightings: what to remember of all others until the next look.
        known: this one stands in the file.
    """

    others: tuple[Writer, ...]
    sightings: Sightings
    known: bool


def writer_here(ledger_id: str, state_dir: Path) -> Writer:
    """Return the writer of a state directory on this machine, without a stamp."""
    host = os.uname().nodename
    try:
        machine = _MACHINE_ID.read_bytes()
    except OSError:
        machine = b""  # macOS and containers have none; the host name tells enough
    where = os.fsencode(os.path.realpath(state_dir))
    place = hashlib.sha256(b"\0".join((machine.strip(), host.encode("utf-8", "surrogateescape"), where))).hexdigest()
    return Writer(ledger_id, host.encode("ascii", "replace").decode(), place[:16])


def path_beside(relations: str) -> str:
    """Return the path of the file for a base."""
    return os.path.join(os.path.dirname(relations), NAME)


def look(path: str, me: Writer, seen: Sightings, now: float) -> Standing:
    """Return who else writes here; nothing is written.

    Args:
        path: of the file; one that is not there names nobody.
        me: this writer.
        seen: the sightings of the last look.
        now: the real clock, seconds.

    Raises:
        FileUnreadable: the file is there and cannot be read.
    """
    _, writers = _read(path)
    return _stand(writers, me, seen, now)


def claim(path: str, me: Writer, seen: Sightings, now: float, *, shared: bool) -> Standing:
    """Stamp this writer's line, unless another is alive and writing is not shared; stale lines go.

    A stamp younger than ten minutes stays as it is: then nothing is written.

    Raises:
        FileUnreadable: the file is there and cannot be read.
        FileUnwritable: the system refused.
        ChangedUnderneath: it went on changing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        data, writers = _read(path)
        standing = _stand(writers, me, seen, now)
        own = next((one for one in writers if one.place == me.place), None)
        fresh = own is not None and own.id == me.id and abs(now - _seconds(own.at)) < BEAT_SECONDS
        if fresh or (standing.others and not shared):
            return standing
        stamped = msgspec.structs.replace(me, at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"))
        new = _encode((*standing.others, stamped))
        try:
            if data is None:
                create_file(path, new)
            else:
                replace_file(path, data, new, look_again=False)
        except ChangedUnderneath:
            if attempt == ATTEMPTS:
                raise
        else:
            return Standing(standing.others, standing.sightings, known=True)
    raise ValueError("attempts must be at least 1")


def _read(path: str) -> tuple[bytes | None, tuple[Writer, ...]]:
    """Return the file and its writers; what is no such file is a writer of its own, as old as the file."""
    if os.path.islink(path):
        # Its content is replaced whole: through a link that came with a clone, that of any file.
        raise FileUnreadable("is a link", where=path, hint="remove it")
    try:
        data, status = read_with_stat(path, MAX_BYTES)
    except FileNotFoundError:
        return None, ()
    try:
        return data, msgspec.json.decode(data, type=_Document).writers
    except (msgspec.DecodeError, UnicodeDecodeError):
        at = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
        return data, (Writer("?", "an unknown host", "?", at),)


def _stand(writers: Sequence[Writer], me: Writer, seen: Sightings, now: float) -> Standing:
    sightings: dict[str, tuple[str, float]] = {}
    alive = []
    for one in writers:
        if one.place == me.place:
            continue
        stamp, since = seen.get(one.place, (one.at, _seconds(one.at)))
        if stamp != one.at:
            since = now
        sightings[one.place] = (one.at, min(since, now))
        if now - min(since, now) < LIVE_SECONDS:
            alive.append(one)
    return Standing(tuple(alive), sightings, len(sightings) < len({one.place for one in writers}))


def _seconds(at: str) -> float:
    """Return a stamp in seconds; one that cannot be read is as old as can be."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _encode(writers: Sequence[Writer]) -> bytes:
    return msgspec.json.encode(_Document(writers=tuple(sorted(writers, key=lambda one: one.place)))) + b"\n"


def decode_sightings(text: str | None) -> Sightings:
    """Read what `encode_sightings` wrote; none from nothing."""
    return msgspec.json.decode(text, type=dict[str, tuple[str, float]]) if text else {}


def encode_sightings(seen: Sightings) -> str:
    """Return sightings as text for the ledger."""
    return msgspec.json.encode(dict(seen), order="sorted").decode()


__all__ = [
    "FileUnreadable",
    "Sightings",
    "Standing",
    "Writer",
    "claim",
    "decode_sightings",
    "encode_sightings",
    "look",
    "path_beside",
    "writer_here",
]
