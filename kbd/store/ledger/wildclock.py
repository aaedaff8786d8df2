"""Days that were noted while the clock was far ahead; once it is right again, they would hold things up for years."""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta

from kbd.store.ledger.lessons import ALIAS_DAYS

TOLERATED_DAYS = 2
"""A clock that goes back by so little (a zone, a correction) catches up by itself; nothing is done twice meanwhile."""

_COLUMNS = {
    "bases": ("first_read", "last_decay", "decay_after"),
    "entries": ("first_seen", "dormant_since", "archived_since", "active_since", "gone_on"),
    "patterns": ("earns_from",),
}


def pull_back(db: sqlite3.Connection, today: date) -> list[int]:
    """Set the days that lie ahead to today; return the entries to count anew. Within a transaction; idempotent.

    A pass that was recorded for a day ahead no longer stops those of the days between, and an entry that came then
    earns from today on. What people wrote into files stays.
    """
    day, limit = today.isoformat(), (today + timedelta(days=TOLERATED_DAYS)).isoformat()
    waiting = db.execute("SELECT DISTINCT entry FROM patterns WHERE earns_from>?", (limit,)).fetchall()
    # The day of first sight stands in for a date that the text does not give.
    db.execute("UPDATE entries SET created=? WHERE created>? AND created=first_seen", (day, limit))
    for table, columns in _COLUMNS.items():
        for column in columns:
            db.execute(f"UPDATE {table} SET {column}=? WHERE {column}>?", (day, limit))  # noqa: S608 - constants
    ends = (today + timedelta(days=ALIAS_DAYS)).isoformat()
    db.execute("UPDATE patterns SET until=? WHERE until>?", (ends, ends))
    return [int(row[0]) for row in waiting]


def lies_ahead(db: sqlite3.Connection, today: date) -> bool:
    """Tell whether a day was noted further ahead than a clock may go back, though no record is dated so.

    Records dated ahead mean the contrary: it is the clock of today that is wrong, as after a flat battery.
    """
    limit = (today + timedelta(days=TOLERATED_DAYS)).isoformat()
    asked = " UNION ALL ".join(
        f"SELECT 1 FROM {table} WHERE {' OR '.join(f'{column}>:limit' for column in columns)}"  # noqa: S608 - constants
        for table, columns in _COLUMNS.items()
    )
    told = "SELECT EXISTS (SELECT 1 FROM activity WHERE day>:limit)"
    noted, recorded = db.execute(f"SELECT EXISTS ({asked}), ({told})", {"limit": limit}).fetchone()
    return bool(noted) and not recorded
