"""The tables of a graph in SQLite, and the graph they hold as a view that answers what checks ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kbd.core.graph_state import GraphState, Triple, created, updated, value_keys
from kbd.core.operations import Edge, Entity, Operation

_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(dict).decode
FORMAT = 1
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entities(id TEXT PRIMARY KEY, type TEXT NOT NULL, properties TEXT NOT NULL, created TEXT NOT NULL,
    updated TEXT NOT NULL);
CREATE TABLE edges(source TEXT NOT NULL, rel TEXT NOT NULL, target TEXT NOT NULL, properties TEXT NOT NULL,
    PRIMARY KEY(source, rel, target)) WITHOUT ROWID;
CREATE TABLE terms(name TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY(name, key, id)) WITHOUT ROWID;
CREATE TABLE faults(line INTEGER NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL, who TEXT NOT NULL);
"""
INDEXES = """
CREATE INDEX IF NOT EXISTS entities_type ON entities(type);
CREATE INDEX IF NOT EXISTS edges_target ON edges(target, rel, source);
"""
_PUT = """
INSERT INTO entities VALUES (?,?,?,?,?)
ON CONFLICT(id) DO UPDATE SET type=excluded.type, properties=excluded.properties, created=excluded.created,
    updated=excluded.updated
"""


class GraphTables:
    """A graph in an open database. Fulfils `kbd.core.graph_state.View`."""

    def __init__(self, db: sqlite3.Connection, indexed: Collection[str]) -> None:
        """Take a database with `TABLES`; `indexed` names the properties that `holders` answers for."""
        self._db = db
        self._indexed = frozenset(indexed)

    def make(self) -> None:
        """Make the tables in an empty database."""
        for statement in filter(str.strip, (TABLES + INDEXES).split(";")):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version={FORMAT}")

    def fill(self, state: GraphState) -> None:
        """Replace everything by a replayed graph: rows in order and indexes last, which is many times as fast."""
        for table in ("entities", "edges", "terms"):
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own tables
        for index in ("entities_type", "edges_target"):
            self._db.execute(f"DROP INDEX IF EXISTS {index}")
        entities = state.entities.values()
        self._db.executemany("INSERT INTO entities VALUES (?,?,?,?,?)", map(_entity_row, entities))
        edges = ((*triple, _text(state.edges[triple])) for triple in sorted(state.edges))
        self._db.executemany("INSERT INTO edges VALUES (?,?,?,?)", edges)
        terms = sorted(_terms(entities, self._indexed))
        self._db.executemany("INSERT OR IGNORE INTO terms VALUES (?,?,?)", terms)
        for statement in filter(str.strip, INDEXES.split(";")):
            self._db.execute(statement)

    def apply(self, operation: Operation) -> str:
        """Change the tables; the same as `GraphState.apply`."""
        kind, ident = operation.kind, operation.id
        if kind == "relate":
            row = (ident, operation.rel, operation.target, _text(operation.properties))
            self._db.execute("INSERT OR REPLACE INTO edges VALUES (?,?,?,?)", row)
            return ""
        if kind == "unrelate":
            triple = (ident, operation.rel, operation.target)
            gone = self._db.execute("DELETE FROM edges WHERE source=? AND rel=? AND target=?", triple)
            return "" if gone.rowcount else "unknown_edge"
        entity = self.entity(ident)
        if kind == "create":
            self._put(created(operation), entity)
            return "duplicate_id" if entity else ""
        if entity is None:
            return "unknown_id"
        if kind == "update":
            self._put(updated(entity, operation), entity)
        else:
            self._drop_terms(entity)
            self._db.execute("DELETE FROM entities WHERE id=?", (ident,))
        return ""

    def apply_all(self, operations: Iterable[Operation]) -> list[tuple[int, str]]:
        """Change the tables; the same as `GraphState.apply_all`."""
        codes = map(self.apply, operations)
        return [(number, code) for number, code in enumerate(codes) if code]

    def _put(self, entity: Entity, before: Entity | None) -> None:
        if before is not None:
            self._drop_terms(before)
        self._db.execute(_PUT, _entity_row(entity))
        self._db.executemany("INSERT OR IGNORE INTO terms VALUES (?,?,?)", _terms((entity,), self._indexed))

    def _drop_terms(self, entity: Entity) -> None:
        self._db.executemany("DELETE FROM terms WHERE name=? AND key=? AND id=?", _terms((entity,), self._indexed))

    def entity(self, ident: str) -> Entity | None:
        """Return the entity of an id."""
        row = self._db.execute("SELECT * FROM entities WHERE id=?", (ident,)).fetchone()
        return None if row is None else _entity(row)

    def edge(self, triple: Triple) -> Edge | None:
        """Return the relation between two entities; None if it does not hold."""
        wanted = "SELECT properties FROM edges WHERE source=? AND rel=? AND target=?"
        row = self._db.execute(wanted, triple).fetchone()
        return None if row is None else Edge(*triple, _DECODE(row[0]))

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose source it is; of these names, if given."""
        return self._edges("source", ident, names)

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose target it is; of these names, if given."""
        return self._edges("target", ident, names)

    def _edges(self, end: str, ident: str, names: Collection[str] | None) -> Iterable[Edge]:
        if names is not None and not names:
            return ()
        wanted = "" if names is None else f" AND rel IN ({','.join('?' * len(names))})"
        # Only the name of a column and question marks are put into the statement.
        rows = self._db.execute(f"SELECT * FROM edges WHERE {end}=?{wanted}", (ident, *(names or ())))  # noqa: S608 - ditto
        return [Edge(source, rel, target, _DECODE(text)) for source, rel, target, text in rows]

    def holders(self, name: str, key: str) -> Iterable[str]:
        """Return the ids of the entities whose indexed property has the value, or has it in its list."""
        return [row[0] for row in self._db.execute("SELECT id FROM terms WHERE name=? AND key=?", (name, key))]

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield all entities in the order of their creation; of these types, if given."""
        if types is None:
            rows = self._db.execute("SELECT * FROM entities ORDER BY rowid")
        else:
            marks = ",".join("?" * len(types))
            rows = self._db.execute(f"SELECT * FROM entities WHERE type IN ({marks}) ORDER BY rowid", tuple(types))  # noqa: S608 - question marks only
        yield from map(_entity, rows)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of entities and of relations."""
        entities, edges = self._db.execute(
            "SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM edges)"
        ).fetchone()
        return entities, edges

    def most_related(self) -> str:
        """Return the id with the most relations, "" if there are none."""
        ends = "SELECT source AS id FROM edges UNION ALL SELECT target FROM edges"
        row = self._db.execute(f"SELECT id FROM ({ends}) GROUP BY id ORDER BY count(*) DESC, id LIMIT 1").fetchone()  # noqa: S608 - our own names
        return row[0] if row else ""

    def edges(self) -> Iterator[Edge]:
        """Yield all relations."""
        rows = self._db.execute("SELECT * FROM edges")
        return (Edge(source, rel, target, _DECODE(text)) for source, rel, target, text in rows)


def _text(properties: Mapping[str, Any]) -> str:
    return _ENCODE(properties).decode() if properties else "{}"


def _entity_row(entity: Entity) -> tuple[str, str, str, str, str]:
    return entity.id, entity.type, _text(entity.properties), entity.created, entity.updated


def _entity(row: tuple[str, str, str, str, str]) -> Entity:
    ident, type_, text, created_at, updated_at = row
    return Entity(ident, type_, _DECODE(text), created_at, updated_at)


def _terms(entities: Iterable[Entity], indexed: frozenset[str]) -> Iterable[tuple[str, str, str]]:
    return [
        (name, key, entity.id)
        for entity in entities
        for name, value in entity.properties.items()
        if name in indexed
        for key in value_keys(value)
    ]
