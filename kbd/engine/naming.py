"""Names of bases and sources change in the configuration; what they stand for keeps its history.

A base is known by its files, a source by its root and agent, once their old name is configured no more. Taken for new
ones, the days their files' numbers cover would earn nothing, and undated lines of logs would count again.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Sequence

from kbd.config import BaseConfig
from kbd.store.ledger import Ledger, lessons, transcripts
from kbd.store.notes import knowledge_files

_NUMBERED = re.compile(r"-\d+\Z")


def base_ids(ledger: Ledger, bases: Sequence[BaseConfig]) -> dict[str, int]:
    """Return the ids of the configured bases by name, made or renamed as needed."""
    known = _ids(ledger.db)
    missing = [base for base in bases if base.name not in known]
    if not missing:
        return known
    with ledger.transaction() as db:
        for base in missing:
            orphans = {name: number for name, number in _ids(db).items() if name not in {b.name for b in bases}}
            former = _former_base(db, base, orphans)
            if former is not None:
                db.execute("UPDATE bases SET name=? WHERE id=?", (base.name, former))
            lessons.base_id(db, base.name)
    return _ids(ledger.db)


def _ids(db: sqlite3.Connection) -> dict[str, int]:
    return {str(r["name"]): int(r["id"]) for r in db.execute("SELECT id, name FROM bases")}


def _former_base(db: sqlite3.Connection, base: BaseConfig, orphans: dict[str, int]) -> int | None:
    """Return the base that had these files under a name that is configured no more."""
    files = set(knowledge_files(base.files).files) if orphans else set()
    for number in orphans.values():
        noted = {path for path, note in lessons.notes_of(db, number).items() if not note.archive}
        if noted and noted <= files:
            return number
    return None


def source_number(ledger: Ledger, name: str, root: str, agent: str, configured: Collection[str]) -> int:
    """Return the id of a source, made or renamed as needed.

    Args:
        ledger: open for writing.
        name: its name now; a further default root of an agent is numbered, as in `codex-2`.
        root: its folder.
        agent: its format.
        configured: names of all sources in the configuration.
    """
    row = ledger.db.execute(
        "SELECT id FROM sources WHERE name=? AND root=? AND agent=?", (name, root, agent)
    ).fetchone()
    if row is not None:
        return int(row[0])
    with ledger.transaction() as db:
        former = db.execute("SELECT id, name FROM sources WHERE root=? AND agent=?", (root, agent)).fetchall()
        for number, old in former:
            known = db.execute("SELECT 1 FROM sources WHERE name=?", (name,)).fetchone()
            if known is None and old not in configured and _NUMBERED.sub("", old) not in configured:
                db.execute("UPDATE sources SET name=? WHERE id=?", (name, number))
                db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_sessions_key(number), old))
        return transcripts.source_id(db, name, root, agent)


def session_prefix(ledger: Ledger, source: int, name: str) -> str:
    """Return what names the sessions of a source's logs: the name it was first known by."""
    return ledger.meta(_sessions_key(source)) or name


def _sessions_key(source: int) -> str:
    return f"sessions of source {source}"
