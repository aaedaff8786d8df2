"""Standing problems: what the newest pass met, shown until it is mended."""

from __future__ import annotations

import sqlite3

from kbd.core.model import Problem


def set_fault(db: sqlite3.Connection, problem: Problem) -> None:
    """Raise a standing problem, shown until it is cleared."""
    db.execute(
        "INSERT OR REPLACE INTO faults VALUES (?,?,?,?)", (problem.code, problem.where, problem.what, problem.hint)
    )


def clear_fault(db: sqlite3.Connection, code: str, place: str) -> None:
    """Take back a standing problem."""
    db.execute("DELETE FROM faults WHERE code=? AND place=?", (code, place))


def faults(db: sqlite3.Connection) -> list[Problem]:
    """Return the standing problems."""
    return [Problem(*tuple(r)) for r in db.execute("SELECT code, place, what, hint FROM faults ORDER BY code, place")]
