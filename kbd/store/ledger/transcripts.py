"""The ledger's rows of sources and transcript files: identity, position, decoder state, counters."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from kbd.core.silence import Remembered, Silence
from kbd.store.position import Position


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """The log that the bytes up to `end` were first written to: identity of its content, and its session."""

    end: int
    stream: str
    session: str


class FileRow(msgspec.Struct, frozen=True):
    """A transcript file as the ledger knows it.

    Attributes:
        relpath: from the root; of a text log where it is, of any other where it was first read.
        stream: identity of its content, part of the key of records that carry no time.
        session: text logs: the session that its own lines count for, named by the path it was first seen at.
        origins: text logs: the beginning is a copy of these logs, in order of `end`; a copy of a copy has several.
        head: of a text log, so many of its first bytes are known by digests; None if its beginning is not known.
        high: bytes of this content that were ever read, whatever was read again since.
        old_origins, old_position: what the file was before it was truncated in place.
    """

    id: int
    source: int
    path: str
    relpath: str
    dev: int
    ino: int
    birth_ns: int | None
    position: Position | None
    state: bytes | None
    stream: str
    session: str
    origins: tuple[Origin, ...]
    head: int | None
    old_origins: tuple[Origin, ...]
    old_position: Position | None
    size: int
    mtime_ns: int
    offset: int
    high: int
    gone: bool
    reread: bool

    def origins_up_to(self, length: int) -> tuple[Origin, ...]:
        """Return whose the first `length` bytes are, this log's own part included."""
        return first_bytes((*self.origins, Origin(length, self.stream, self.session)), length)

    def origin_at(self, offset: int) -> Origin:
        """Return whose the line at an offset is."""
        own = Origin(offset + 1, self.stream, self.session)
        return next((o for o in self.origins if offset < o.end), own)


def first_bytes(origins: Iterable[Origin], length: int) -> tuple[Origin, ...]:
    """Return the origins of the first `length` bytes."""
    kept: list[Origin] = []
    for origin in origins:
        if not kept or kept[-1].end < min(origin.end, length):
            kept.append(Origin(min(origin.end, length), origin.stream, origin.session))
    return tuple(kept)


_COLUMNS = FileRow.__struct_fields__
_SELECTED = ", ".join(_COLUMNS)


def encode_position(position: Position | None) -> str | None:
    """Return a position as the text a column holds."""
    return None if position is None else msgspec.json.encode(position).decode()


_position = msgspec.json.Decoder(Position)
_origins = msgspec.json.Decoder(tuple[Origin, ...])


def _decode_position(text: str | None) -> Position | None:
    return None if text is None else _position.decode(text)


def _decode_origins(text: str) -> tuple[Origin, ...]:
    return () if text == "[]" else _origins.decode(text)  # nearly always


def _encode_origins(origins: tuple[Origin, ...]) -> str:
    return msgspec.json.encode(origins).decode()


_DECODED: tuple[tuple[int, Callable[[Any], object]], ...] = (
    (_COLUMNS.index("position"), _decode_position),
    (_COLUMNS.index("origins"), _decode_origins),
    (_COLUMNS.index("old_origins"), _decode_origins),
    (_COLUMNS.index("old_position"), _decode_position),
    (_COLUMNS.index("gone"), bool),
    (_COLUMNS.index("reread"), bool),
)


def _file(r: sqlite3.Row) -> FileRow:
    values = [*r]
    for place, decode in _DECODED:
        values[place] = decode(values[place])
    return FileRow(*values)


def source_id(db: sqlite3.Connection, name: str, root: str, agent: str) -> int:
    """Return the id of a source, made at first sight; root and agent follow the config."""
    db.execute(
        "INSERT INTO sources(name, root, agent) VALUES (?,?,?) "
        "ON CONFLICT(name) DO UPDATE SET root=excluded.root, agent=excluded.agent",
        (name, root, agent),
    )
    return int(db.execute("SELECT id FROM sources WHERE name=?", (name,)).fetchone()[0])


def candidates(db: sqlite3.Connection, source: int, dev: int, ino: int, path: str) -> list[FileRow]:
    """Return the rows that a file may continue: by inode, then by path, then those that were gone."""
    # Asked for with one OR, SQLite looks through all files of the source, for each file of a first reading.
    either = (
        "SELECT id FROM files WHERE source=?1 AND dev=?2 AND ino=?3 "
        "UNION ALL SELECT id FROM files WHERE source=?1 AND path=?4"
    )
    known = (source, dev, ino, path)
    if db.execute(either, known).fetchone() is None:
        return []
    rows = db.execute(
        f"SELECT {_SELECTED} FROM files WHERE id IN ({either}) "  # noqa: S608 - a constant
        "ORDER BY gone, NOT (dev=?2 AND ino=?3), path!=?4, id DESC LIMIT 8",
        known,
    )
    return [_file(r) for r in rows]


def file_row(db: sqlite3.Connection, file: int) -> FileRow:
    """Return one file."""
    return _file(db.execute(f"SELECT {_SELECTED} FROM files WHERE id=?", (file,)).fetchone())  # noqa: S608 - a constant


def add_file(
    db: sqlite3.Connection,
    source: int,
    path: str,
    relpath: str,
    dev: int,
    ino: int,
    birth_ns: int | None,
    session: str = "",
) -> FileRow:
    """Add a file seen for the first time."""
    row = db.execute(
        "INSERT INTO files(source, path, relpath, dev, ino, birth_ns, stream, session) "  # noqa: S608 - a constant
        f"VALUES (?,?,?,?,?,?,?,?) RETURNING {_SELECTED}",
        (source, path, relpath, dev, ino, birth_ns, secrets.token_hex(8), session),
    ).fetchone()
    return _file(row)


def mark_replaced(db: sqlite3.Connection, source: int, path: str) -> None:
    """Note that what stood at a path before is gone."""
    db.execute("UPDATE files SET gone=1 WHERE source=? AND path=?", (source, path))


def place_file(db: sqlite3.Connection, file: FileRow, path: str, relpath: str, dev: int, ino: int) -> None:
    """Note where a known file is now; another one that stood there is gone.

    A transcript that was read keeps the relpath it was first read at: its name may be all that names its session, and
    a renamed one read again from zero must name the same.
    """
    db.execute("UPDATE files SET gone=1 WHERE source=? AND path=? AND id!=?", (file.source, path, file.id))
    position = None if file.position is None else replace(file.position, dev=dev, ino=ino)
    db.execute(
        "UPDATE files SET path=?, relpath=CASE WHEN session='' AND high>0 THEN relpath ELSE ? END, dev=?, ino=?, "
        "position=?, settled=0, gone=0 WHERE id=?",
        (path, relpath, dev, ino, encode_position(position), file.id),
    )


def set_origins(db: sqlite3.Connection, file: int, origins: tuple[Origin, ...]) -> None:
    """Let the first bytes of a log count as those of others."""
    db.execute("UPDATE files SET origins=? WHERE id=?", (_encode_origins(origins), file))


def begin_anew(db: sqlite3.Connection, file: FileRow) -> FileRow:
    """Note that a log was truncated or rewritten in place: its content is another from now on."""
    db.execute(
        "UPDATE files SET old_origins=?, old_position=position, stream=?, origins='[]', "
        "head=NULL, state=NULL, high=0 WHERE id=?",
        (_encode_origins(file.origins_up_to(file.offset)), secrets.token_hex(8), file.id),
    )
    db.execute("DELETE FROM heads WHERE file=? AND old=1", (file.id,))
    db.execute("UPDATE heads SET old=1 WHERE file=?", (file.id,))
    return file_row(db, file.id)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a batch gave, to be added to a file's counters."""

    records: int = 0
    messages: int = 0
    unknown: int = 0
    malformed: int = 0
    oversize: int = 0


def save_progress(
    db: sqlite3.Connection,
    file: int,
    position: Position,
    state: bytes,
    silence: Silence | None,
    tally: Tally,
    newest: datetime | None,
    now: datetime,
    *,
    from_start: bool,
) -> None:
    """Store how far a file was read and when, within the transaction that holds what was read.

    `silence` is how much of its newest messages names nothing, for its next records; None if that is not kept.
    """
    db.execute(
        "UPDATE files SET position=?2, state=?3, silence=coalesce(?4, silence), size=?5, mtime_ns=?6, offset=?7, "
        "high=max(high, ?7), settled=?8 AND NOT (reread AND ?9), reread=reread AND ?9, records=?9*records+?10, "
        "messages=?9*messages+?11, unknown=?9*unknown+?12, malformed=?9*malformed+?13, oversize=?9*oversize+?14, "
        "last_record_at=max(coalesce(last_record_at,''), ?15), read_at=?16 WHERE id=?1",
        (
            file,
            encode_position(position),
            state,
            None if silence is None else msgspec.json.encode(silence.saved()).decode(),
            position.size,
            position.mtime_ns,
            position.offset,
            position.is_current(position.ino, position.size, position.mtime_ns),
            not from_start,
            tally.records,
            tally.messages,
            tally.unknown,
            tally.malformed,
            tally.oversize,
            newest.isoformat() if newest else "",
            now.isoformat(timespec="microseconds"),
        ),
    )


def silence_of(db: sqlite3.Connection, file: int) -> Silence:
    """Return how much of the newest messages of a file names nothing."""
    text = db.execute("SELECT silence FROM files WHERE id=?", (file,)).fetchone()[0]
    return Silence(msgspec.json.decode(text, type=dict[str, Remembered]))


def mark_gone(db: sqlite3.Connection, files: Iterable[int]) -> None:
    """Note that files are no longer there; what they gave stays."""
    db.executemany("UPDATE files SET gone=1 WHERE id=?", [(f,) for f in files])


def rewind(db: sqlite3.Connection, since: date | None, source: str | None = None) -> int:
    """Let files be read from 0 again: all, those with records of a day or later, those of one source. Return how many.

    Positions stay, to tell whether the content is still the same when it comes to that. Keys make a second reading
    harmless; times of untimed lines stay, they are kept in `marks`.
    """
    cursor = db.execute(
        "UPDATE files SET reread=1, settled=0 WHERE gone=0 AND position IS NOT NULL "
        "AND (?1 IS NULL OR substr(coalesce(last_record_at,''),1,10)>=?1 OR coalesce(last_record_at,'')='') "
        "AND (?2 IS NULL OR source IN (SELECT id FROM sources WHERE name=?2))",
        (since.isoformat() if since else None, source),
    )
    return cursor.rowcount


def rewind_read_since(db: sqlite3.Connection, moment: datetime) -> int:
    """Let files be read from 0 again that were read at a moment (UTC) or later; return how many.

    What was read while an entry was away did not count for it, however old the records are.
    """
    cursor = db.execute(
        "UPDATE files SET reread=1, settled=0 WHERE gone=0 AND position IS NOT NULL AND read_at>=?",
        (moment.isoformat(timespec="microseconds"),),
    )
    return cursor.rowcount


def has_rewound(db: sqlite3.Connection) -> bool:
    """Tell whether files wait to be read from 0 again."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM files WHERE reread=1 AND gone=0)").fetchone()[0])


def marks_of(db: sqlite3.Connection, stream: str) -> list[tuple[int, datetime]]:
    """Return from which offset on bytes of a content were first read at which time, in order of offset."""
    rows = db.execute("SELECT offset, at FROM marks WHERE stream=? ORDER BY offset", (stream,))
    return [(int(r[0]), datetime.fromisoformat(r[1])) for r in rows]


def add_mark(db: sqlite3.Connection, stream: str, offset: int, at: datetime) -> None:
    """Note that bytes from an offset on are first read at this time; an earlier note stands."""
    db.execute("INSERT OR IGNORE INTO marks VALUES (?,?,?)", (stream, offset, at.isoformat()))


def note_sessions(db: sqlite3.Connection, source: int, sessions: Iterable[tuple[str, date]]) -> None:
    """Note the sessions of a source by their newest day."""
    db.executemany(
        "INSERT INTO seen_sessions VALUES (?,?,?) "
        "ON CONFLICT(source, session) DO UPDATE SET day=max(day, excluded.day)",
        [(source, s, d.isoformat()) for s, d in sessions],
    )


def note_activity(db: sqlite3.Connection, source: int, days: Iterable[date], newest: datetime | None) -> None:
    """Note on which days a source gave records, and when it gave the newest."""
    db.executemany("INSERT OR IGNORE INTO activity VALUES (?,?)", [(source, d.isoformat()) for d in days])
    if newest is not None:
        db.execute(
            "UPDATE sources SET last_record_at=max(coalesce(last_record_at,''), ?) WHERE id=?",
            (newest.isoformat(), source),
        )
