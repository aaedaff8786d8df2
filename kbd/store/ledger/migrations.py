"""Makes the tables of an older ledger those of `schema.py`, and says what their new columns hold.

All tables are made anew and filled by the names of their columns, whatever shape they had: nothing is left of an older
schema. A column that a later version adds needs a step here only if its default is not what holds for older rows.

Version 1 was changed in place, so a ledger of it may lack whatever came later, and its keys were made in several ways.
A key made otherwise would let a message that is read again count twice. Keys cannot be made anew, as the ledger does
not hold what was said. So nothing that was counted is dropped: all blocks are marked as inherited, all transcripts are
read once more from the start, and what is inherited is found again by its place (see inherited.py). Of what is gone
the counts stay as they stood.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbd.core.normal import ECHO_CHARS
from kbd.store.ledger.schema import SCHEMA_VERSION, TABLES

Columns = Mapping[str, tuple[str, ...]]
"""Of each table."""


@dataclass(frozen=True, slots=True)
class Step:
    """What takes a ledger to a version.

    Attributes:
        before: works on the tables as they are.
        lacking: what a column holds, as SQL over its table, where the table lacks it; else its default.
        anew: the same, whatever the column held.
        tables: those that came with it; any other one is in older ledgers, too.
    """

    before: Callable[[sqlite3.Connection, Columns], None] = lambda db, columns: None
    lacking: Mapping[str, str] = field(default_factory=dict)
    anew: Mapping[str, str] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()


def _before_2(db: sqlite3.Connection, columns: Columns) -> None:
    from kbd.sources.text import text_session  # noqa: PLC0415 - every command opens a ledger, hardly one migrates it

    db.create_function("log_session", 2, lambda source, path: f"{source}:{text_session(path)}", deterministic=True)
    # How they were made tells nothing today; what is there says it again, and a copy of what is gone counts anew.
    if "thread" not in columns.get("beginnings", ("thread",)):
        db.execute("DELETE FROM beginnings")
    if "nth" in columns.get("sayings", ()):
        db.execute("DELETE FROM sayings")
    if "file" in columns.get("marks", ()):
        db.execute("DELETE FROM marks WHERE file NOT IN (SELECT id FROM files)")
    db.execute("DELETE FROM meta WHERE key LIKE 'words of base %'")  # so that knowledge files are parsed anew


STEPS: Mapping[int, Step] = {
    2: Step(
        before=_before_2,
        lacking={
            "bodies.opening": f"coalesce((SELECT substr(e.body, 1, {ECHO_CHARS}) FROM entries e "  # noqa: S608 - a number
            "WHERE e.id=bodies.entry AND e.body_sha=bodies.sha), '')",
            "marks.stream": "(SELECT f.stream FROM files f WHERE f.id=marks.file)",
            "files.session": "coalesce((SELECT log_session(s.name, relpath) FROM sources s "
            "WHERE s.id=files.source AND s.agent='text'), '')",
            "files.origins": "CASE WHEN shared_len>0 AND shared_stream IS NOT NULL THEN json_array(json_array("
            "shared_len, shared_stream, coalesce(shared_session, ''))) ELSE '[]' END",
            "files.old_origins": "'[]'",
            "holders.thread": "''",
            "holders.told": "at",
            "holders.place": "max(min(offset, 1<<45), -(1<<45)) << 16",
        },
        anew={
            "blocks.inherited": "1",
            "files.state": "NULL",
            "files.silence": "'{}'",
            "files.settled": "0",
            "files.reread": "position IS NOT NULL",
        },
        tables=frozenset(
            ("aliases", "lineage", "trunks", "beginnings", "threads", "origins", "sayings", "heads")
            + ("purged", "set_aside", "undo", "undo_changes")
        ),
    ),
    # What was read at a time unknown may have been read while an entry was away.
    3: Step(lacking={"files.read_at": "'9999-12-31T00:00:00+00:00'"}, tables=frozenset(("base_activity",))),
}


def migrate(db: sqlite3.Connection) -> None:
    """Make an older ledger one of the present schema, within the caller's transaction.

    Raises:
        sqlite3.DatabaseError: it holds what no ledger holds.
    """
    version = version_of(db)
    steps = [STEPS[number] for number in range(version + 1, SCHEMA_VERSION + 1) if number in STEPS]
    for step in steps:
        step.before(db, _columns(db))
    _make_anew(db, steps)
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def migrated_copy(db: sqlite3.Connection) -> sqlite3.Connection:
    """Return an older ledger as the present kbd sees it, in memory, and close it: for those who only read."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with contextlib.closing(db):
        db.backup(copy)
    copy.row_factory = sqlite3.Row
    migrate(copy)
    return copy


def is_older(db: sqlite3.Connection) -> bool:
    """Tell whether a ledger is of an older schema."""
    return version_of(db) < SCHEMA_VERSION


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a ledger's schema."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _make_anew(db: sqlite3.Connection, steps: list[Step]) -> None:
    old = _columns(db)
    for (index,) in db.execute("SELECT name FROM sqlite_master WHERE type='index' AND sql IS NOT NULL").fetchall():
        db.execute(f"DROP INDEX {_quoted(index)}")
    for table in old:
        db.execute(f"ALTER TABLE {_quoted(table)} RENAME TO {_quoted(_ASIDE + table)}")
    with contextlib.closing(sqlite3.connect(":memory:")) as present:
        present.executescript(TABLES)
        fresh = _columns(present)
        made = present.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type='index'").fetchall()
    if missing := fresh.keys() - old.keys() - {table for step in steps for table in step.tables}:
        raise sqlite3.DatabaseError(f"has no {min(missing)}")
    for (statement,) in made[: len(fresh)]:
        db.execute(statement)
    # In the order of TABLES: of what a step asks for in another table, that was filled before.
    for table in sorted(old, key=[*fresh, *old].index):
        if table in fresh:
            _fill(db, table, old[table], fresh[table], steps)
        db.execute(f"DROP TABLE {_quoted(_ASIDE + table)}")  # at once, so that the next one takes its pages
    for (statement,) in made[len(fresh) :]:
        db.execute(statement)


_ASIDE = "older "


def _fill(db: sqlite3.Connection, table: str, old: tuple[str, ...], fresh: tuple[str, ...], steps: list[Step]) -> None:
    values = {column: column for column in fresh if column in old}
    for step in steps:
        for column in fresh:
            value = step.anew.get(f"{table}.{column}") or step.lacking.get(f"{table}.{column}")
            if value is not None and (f"{table}.{column}" in step.anew or column not in old):
                values[column] = value
    names, expressions = ", ".join(values), ", ".join(values.values())
    db.execute(f"INSERT INTO {table}({names}) SELECT {expressions} FROM {_quoted(_ASIDE + table)} AS {table}")  # noqa: S608 - names are ours


def _columns(db: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the tables with the names of their columns, in the order in which they were made."""
    tables = db.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'")
    return {
        str(table): tuple(str(r[1]) for r in db.execute(f"PRAGMA table_info({_quoted(table)})"))
        for (table,) in tables.fetchall()
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
