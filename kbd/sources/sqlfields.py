"""SQL expressions that read an agent's database whatever its version: a column that is not there is NULL."""

from __future__ import annotations

from collections.abc import Iterable

MAX_DEPTH = 32


def column(alias: str, name: str, columns: Iterable[str]) -> str:
    """Return a column, or NULL where the table has none of that name."""
    return f'{alias}."{name}"' if name in columns else "NULL"


def json_field(value: str, path: str) -> str:
    """Return a field of a JSON text, NULL if the text is no JSON."""
    return f"CASE WHEN json_valid({value}) THEN json_extract({value}, '{path}') END"


def root_of(alias: str, table: str, parent: str) -> str:
    """Return the id of the session that stands above all parents of one, even if its own row is gone.

    Sessions that name each other in a circle have the one a few steps up as their root, which is as good as any.
    """
    above = f"SELECT {alias}.id, {alias}.{parent}, 0"
    step = f"SELECT p.id, p.{parent}, steps+1 FROM up JOIN {table} p ON p.id=up.parent WHERE steps<{MAX_DEPTH}"  # noqa: S608 - names of the format's own
    root = "SELECT coalesce(nullif(parent, ''), id) FROM up ORDER BY steps DESC LIMIT 1"
    return f"(WITH RECURSIVE up(id, parent, steps) AS ({above} UNION ALL {step}) {root})"
