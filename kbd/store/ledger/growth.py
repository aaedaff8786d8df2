"""Relations `applies_to` grown from evidence: which files an entry was cited for, and when last."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import date

from kbd.store.ledger.counts import COUNTING

MAX_LIVE_FILES = 20


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
        keep = set(sorted(days, key=lambda f: (days[f][1], f), reverse=True)[:MAX_LIVE_FILES])
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
        if live:
            db.execute(
                "INSERT INTO relations(base, s, p, o, c, u) VALUES (?,?,'applies_to',?,?,?)", (base, s, o, *days)
            )
        return
    expired = None if live and days[1] > (row["u"] or "") else row["e"]
    if not live and row["e"] is None:
        expired = today.isoformat()
    if (max(row["u"] or "", days[1]), expired) != (row["u"], row["e"]):
        db.execute(
            "UPDATE relations SET u=max(coalesce(u,''), ?), e=?, dirty=1 "
            "WHERE base=? AND s=? AND p='applies_to' AND o=?",
            (days[1], expired, base, s, o),
        )
