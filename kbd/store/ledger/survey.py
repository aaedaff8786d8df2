"""The ledger in sums: sources, bases, relations, for `status`."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import date

from kbd.core.model import Problem, Relation
from kbd.store.ledger.lessons import day


@dataclass(frozen=True, slots=True)
class SourceSums:
    """A source as read so far.

    Attributes:
        files, size, lag_bytes: of the transcripts that are there.
        records, messages, unknown, malformed, oversize: of all that were read, those that went since included.
        health, detail: as the daemon found the root.
    """

    name: str
    root: str
    files: int
    size: int
    lag_bytes: int
    records: int
    messages: int
    unknown: int
    malformed: int
    oversize: int
    last_record_at: str | None
    health: str
    detail: str


_SOURCES = """
  SELECT s.name, s.root, s.health, s.detail, nullif(s.last_record_at, '') AS last_record_at,
    count(f.id) FILTER (WHERE f.gone=0) AS files,
    total(f.size) FILTER (WHERE f.gone=0) AS size,
    total(max(f.size - f.offset, 0)) FILTER (WHERE f.gone=0) AS lag_bytes,
    total(f.records) AS records, total(f.messages) AS messages, total(f.unknown) AS unknown,
    total(f.malformed) AS malformed, total(f.oversize) AS oversize
  FROM sources s LEFT JOIN files f ON f.source=s.id
  GROUP BY s.id ORDER BY s.name
"""


def source_sums(db: sqlite3.Connection) -> list[SourceSums]:
    """Return all sources ever read, by name."""
    return [_sums(row) for row in db.execute(_SOURCES)]


def _sums(row: sqlite3.Row) -> SourceSums:
    counts = {
        key: int(row[key])
        for key in ("files", "size", "lag_bytes", "records", "messages", "unknown", "malformed", "oversize")
    }
    return SourceSums(
        name=row["name"],
        root=row["root"],
        last_record_at=row["last_record_at"],
        health=row["health"],
        detail=row["detail"],
        **counts,
    )


def sessions_and_citations(db: sqlite3.Connection, since: date, until: date) -> tuple[int, int]:
    """Return the sessions whose newest record, and the references whose day, lies in a span of days (both ends in)."""
    span = (since.isoformat(), until.isoformat())
    sessions = db.execute("SELECT count(*) FROM seen_sessions WHERE day BETWEEN ? AND ?", span).fetchone()[0]
    references = db.execute("SELECT count(*) FROM refs WHERE day BETWEEN ? AND ?", span).fetchone()[0]
    return int(sessions), int(references)


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A base in the ledger, with the size of its live files in tokens (as estimated when they were read)."""

    id: int
    name: str
    first_read: date | None
    decay_after: date | None
    last_decay: date | None
    tokens: int

    @property
    def last_pass(self) -> date | None:
        """Day of the last decay pass; before the first, the day it had to wait for."""
        return max((d for d in (self.last_decay, self.decay_after) if d), default=None)


def base_rows(db: sqlite3.Connection) -> dict[str, BaseRow]:
    """Return all bases ever read, by name."""
    rows = db.execute(
        "SELECT b.id, b.name, b.first_read, b.decay_after, b.last_decay, coalesce(sum(n.tokens), 0) AS tokens "
        "FROM bases b LEFT JOIN notes n ON n.base=b.id AND n.archive=0 GROUP BY b.id"
    )
    return {
        r["name"]: BaseRow(
            r["id"], r["name"], day(r["first_read"]), day(r["decay_after"]), day(r["last_decay"]), r["tokens"]
        )
        for r in rows
    }


def relations_of_base(db: sqlite3.Connection, base: int) -> list[Relation]:
    """Return the relations of a base that the ledger knows, in order."""
    rows = db.execute("SELECT s, p, o, c, u, e FROM relations WHERE base=? ORDER BY s, p, o", (base,))
    return [Relation(r["s"], r["p"], r["o"], day(r["c"]), day(r["u"]), day(r["e"])) for r in rows]


def note_problems(db: sqlite3.Connection, bases: set[int]) -> list[Problem]:
    """Return the problems found in the knowledge files of these bases when they were last read."""
    rows = db.execute("SELECT base, problems FROM notes WHERE problems!='[]' ORDER BY path").fetchall()
    return [Problem(*fields) for row in rows if row["base"] in bases for fields in json.loads(row["problems"])]
