"""Relations `applies_to` grown from evidence: which files an entry was cited for, and when last."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import date

from kbd.core.model import Relation
from kbd.core.relate import EXPIRE_DAYS, FILES_PER_ENTRY
from kbd.store.ledger.counts import COUNTING

CHANGED, REVIVED = 1, 2
"""Why a relation is to be written (column `dirty`). One that was used again after kbd let it expire has no end any
more; of any other, the end that a person gave it in the file stays."""


def age_relations(db: sqlite3.Connection, base: int, changed: Iterable[Relation]) -> None:
    """Take over what changed by mere time in the relations of a base's file: to be written with the others."""
    rows = [(base, r.s, r.p, r.o, *(d.isoformat() if d else None for d in (r.c, r.u, r.e))) for r in changed]
    db.executemany(
        "INSERT INTO relations(base, s, p, o, c, u, e, dirty) VALUES (?,?,?,?,?,?,?,1) "
        "ON CONFLICT(base, s, p, o) DO UPDATE SET u=excluded.u, e=excluded.e, dirty=1",
        rows,
    )


def forget_relations(db: sqlite3.Connection, base: int, gone: Iterable[Relation]) -> None:
    """Let go of relations that were moved to the archive."""
    rows = [(base, r.s, r.p, r.o) for r in gone]
    db.executemany("DELETE FROM relations WHERE base=? AND s=? AND p=? AND o=?", rows)


def grow_relations(db: sqlite3.Connection, entries: Iterable[int], today: date) -> None:
    """Bring the relations of these entries in step with their citations; idempotent.

    `c` is the first, `u` the newest day of a citation for the file. Over 20 live files the stalest expire. A relation
    whose days did not change is left alone, so that one which a person removed stays removed.
    """
    for entry in entries:
        row = db.execute("SELECT base, title FROM entries WHERE id=?", (entry,)).fetchone()
        days = _days_by_file(db, entry, today)
        if row is None or not days:
            continue
        keep = set(sorted(days, key=lambda f: (days[f][1], f), reverse=True)[:FILES_PER_ENTRY])
        for name in sorted(days):
            _touch(db, row["base"], row["title"], name, days[name], name in keep, today)


def _days_by_file(db: sqlite3.Connection, entry: int, today: date) -> dict[str, tuple[str, str]]:
    days: dict[str, tuple[str, str]] = {}
    rows = db.execute(f"SELECT m.files, g.day {COUNTING} AND m.files != '[]'", {"entry": entry})
    for files, day in rows.fetchall():
        used = min(day, today.isoformat())
        for name in json.loads(files):
            first, newest = days.get(name, (used, used))
            days[name] = (min(first, used), max(newest, used))
    return days


def _touch(db: sqlite3.Connection, base: int, s: str, o: str, days: tuple[str, str], live: bool, today: date) -> None:
    row = db.execute(
        "SELECT c, u, e FROM relations WHERE base=? AND s=? AND p='applies_to' AND o=?", (base, s, o)
    ).fetchone()
    if row is None:
        # What was last used a year ago would expire at once; it may lie in the archive already.
        if live and (today - date.fromisoformat(days[1])).days < EXPIRE_DAYS:
            db.execute(
                "INSERT INTO relations(base, s, p, o, c, u) VALUES (?,?,'applies_to',?,?,?)", (base, s, o, *days)
            )
        return
    expired = None if live and days[1] > (row["u"] or "") else row["e"]
    if not live and row["e"] is None:
        expired = today.isoformat()
    if (max(row["u"] or "", days[1]), expired) != (row["u"], row["e"]):
        db.execute(
            "UPDATE relations SET u=max(coalesce(u,''), ?), e=?, dirty=max(dirty, ?) "
            "WHERE base=? AND s=? AND p='applies_to' AND o=?",
            (days[1], expired, REVIVED if row["e"] and not expired else CHANGED, base, s, o),
        )
