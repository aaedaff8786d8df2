"""On which days a base could have been cited: days with a record of any source, or with a session in its projects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import date

_OF_BASE = """
  SELECT source, day FROM activity WHERE ?1 NOT IN (SELECT id FROM bases WHERE limited)
  UNION SELECT source, day FROM base_activity WHERE ?1 IN (SELECT id FROM bases WHERE limited) AND base=?1
"""


def note_base_activity(db: sqlite3.Connection, source: int, days: Iterable[tuple[int, date]]) -> None:
    """Note on which days a source gave sessions in the projects of which bases."""
    db.executemany("INSERT OR IGNORE INTO base_activity VALUES (?,?,?)", [(b, source, d.isoformat()) for b, d in days])


def active_days(db: sqlite3.Connection, base: int) -> list[date]:
    """Return the days on which a base could have been cited."""
    return [date.fromisoformat(r[0]) for r in db.execute(f"SELECT DISTINCT day FROM ({_OF_BASE})", (base,))]  # noqa: S608 - a constant


def newest_by_source(db: sqlite3.Connection, base: int, today: date) -> dict[str, date]:
    """Return by a source's name the newest such day up to today."""
    rows = db.execute(
        f"SELECT s.name, max(a.day) FROM ({_OF_BASE}) a JOIN sources s ON s.id=a.source "  # noqa: S608 - a constant
        "WHERE a.day<=?2 GROUP BY s.id",
        (base, today.isoformat()),
    )
    return {str(r[0]): date.fromisoformat(r[1]) for r in rows}
