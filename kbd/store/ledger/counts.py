"""From facts to numbers: which mentions count, and what `ref`, `last`, `citations`, `sessions` are.

A mention counts if its block is valid, its message is no listing, its day lies within the life of the
pattern that matched (first sight, alias end), and its session did not write the entry earlier that day.
A reference is a distinct (session, day); those on or before the day that the adopted number covers, and those that a
person's undo set aside, are evidence, not added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import date

# CROSS JOIN keeps SQLite from asking, for each mention, all messages of its session and day: that is quadratic.
COUNTING = """
  FROM mentions m
  JOIN blocks b ON b.id = m.block AND b.superseded = 0
  JOIN messages g ON g.id = b.message
  JOIN patterns p ON p.id = m.pattern
  WHERE m.entry = :entry AND m.listed = 0
    AND (p.earns_from IS NULL OR g.day >= p.earns_from) AND (p.until IS NULL OR g.day <= p.until)
    AND NOT EXISTS (
      SELECT 1 FROM authorships a CROSS JOIN messages w ON w.id = a.message
      WHERE a.entry = m.entry AND w.session = g.session AND w.day = g.day AND w.at <= g.at)
"""


def recount(db: sqlite3.Connection, entries: Iterable[int], today: date) -> None:
    """Compute the numbers of these entries anew from the facts; idempotent."""
    for entry in entries:
        row = db.execute("SELECT base_ref, adjust, covers, last_floor FROM entries WHERE id=?", (entry,)).fetchone()
        if row is None:
            continue
        is_named = db.execute("SELECT 1 FROM mentions WHERE entry=? LIMIT 1", (entry,)).fetchone() is not None
        references = reference_days(db, entry) if is_named else []  # a new base has thousands that nobody named yet
        covers = row["covers"] or ""
        aside = _set_aside(db, entry) if is_named else set()
        counted = [(session, day) for session, day in references if (session, day) not in aside]
        added = {(session, day) for session, day in counted if day > covers}
        db.execute("DELETE FROM refs WHERE entry=?", (entry,))
        db.executemany("INSERT INTO refs VALUES (?,?,?,?)", [(entry, *one, one in added) for one in references])
        days = [day for _, day in counted] + [d for d in (row["covers"], row["last_floor"]) if d]
        days = [d for d in days if d <= today.isoformat()]
        citations, listed = _named(db, entry) if is_named else (0, 0)
        db.execute(
            "UPDATE entries SET ref=?, last=?, citations=?, sessions=?, listed=? WHERE id=?",
            (
                max(row["base_ref"] + row["adjust"] + len(added), 0),
                max(days, default=None),
                citations,
                len({session for session, _ in references}),
                listed,
                entry,
            ),
        )


def _named(db: sqlite3.Connection, entry: int) -> tuple[int, int]:
    """Return by how many blocks an entry is cited, and in how many messages it is listed."""
    citations = db.execute(f"SELECT count(DISTINCT m.block) {COUNTING}", {"entry": entry}).fetchone()[0]
    listed = db.execute(
        "SELECT count(DISTINCT b.message) FROM mentions m JOIN blocks b ON b.id=m.block "
        "WHERE m.entry=? AND m.listed=1 AND b.superseded=0",
        (entry,),
    ).fetchone()[0]
    return int(citations), int(listed)


def overtaken(db: sqlite3.Connection, today: date) -> list[int]:
    """Return the entries whose newest reference was ahead when they were counted: the clock had been set back."""
    rows = db.execute(
        "SELECT DISTINCT r.entry FROM refs r JOIN entries e ON e.id=r.entry "
        "WHERE r.day>coalesce(e.last, '') AND r.day<=?",
        (today.isoformat(),),
    )
    return [int(row[0]) for row in rows]


def _set_aside(db: sqlite3.Connection, entry: int) -> set[tuple[str, str]]:
    return {(str(r[0]), str(r[1])) for r in db.execute("SELECT session, day FROM set_aside WHERE entry=?", (entry,))}


def reference_days(db: sqlite3.Connection, entry: int) -> list[tuple[str, str]]:
    """Return the references of an entry: distinct (session, day), in order of day."""
    rows = db.execute(
        f"SELECT DISTINCT g.session, g.day {COUNTING} ORDER BY g.day, g.session",
        {"entry": entry},
    )
    return [(str(r[0]), str(r[1])) for r in rows]


def counted_references(db: sqlite3.Connection, entry: int) -> int:
    """Return how many references are added to the number that an entry's file had."""
    return int(db.execute("SELECT count(*) FROM refs WHERE entry=? AND added=1", (entry,)).fetchone()[0])


def added_after(db: sqlite3.Connection, entry: int, covers: str | None) -> int:
    """Return how many references lie after a day that a number covers."""
    aside = _set_aside(db, entry)
    return sum(1 for one in reference_days(db, entry) if one not in aside and one[1] > (covers or ""))


def references_by_entry(db: sqlite3.Connection, base: int, since: date, until: date) -> list[tuple[int, int, int]]:
    """Return (entry, references, their sessions) for what a base's entries got in a span of days, most first."""
    rows = db.execute(
        "SELECT r.entry, count(*), count(DISTINCT r.session) FROM refs r JOIN entries e ON e.id=r.entry "
        "WHERE e.base=? AND r.day BETWEEN ? AND ? GROUP BY r.entry ORDER BY 2 DESC, 3 DESC, e.title, e.id",
        (base, since.isoformat(), until.isoformat()),
    )
    return [(int(entry), int(number), int(sessions)) for entry, number, sessions in rows]


def sessions_between(db: sqlite3.Connection, base: int, since: date, until: date) -> int:
    """Return how many sessions referred to a base's entries in a span of days."""
    row = db.execute(
        "SELECT count(DISTINCT r.session) FROM refs r JOIN entries e ON e.id=r.entry "
        "WHERE e.base=? AND r.day BETWEEN ? AND ?",
        (base, since.isoformat(), until.isoformat()),
    ).fetchone()
    return int(row[0])


def references_since(db: sqlite3.Connection, base: int, day: date) -> int:
    """Return the references of a base dated on or after a day."""
    return int(
        db.execute(
            "SELECT count(*) FROM refs r JOIN entries e ON e.id=r.entry WHERE e.base=? AND r.day>=?",
            (base, day.isoformat()),
        ).fetchone()[0]
    )
