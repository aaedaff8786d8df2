"""What a line of a graph's event log says: one operation in the form the public skill writes, or a foreign shape of it.

The log is compatible with files of the `ontology` agent skill 1.0.4. Agents append to such files by hand, so the reader
takes every shape found in public graphs that has one meaning, and says what was odd about it; a line without a meaning
is a fault and never the end of a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kbd.core.model import Problem

KINDS = ("create", "update", "delete", "relate", "unrelate")
COMPACT = "compact"
MAX_NESTING = 64
_ENTITY_KEYS = frozenset({"id", "type", "properties", "created", "updated", "relations", "timestamp"})
_SOURCES = ("from", "from_id", "source", "subject")
_RELS = ("rel", "relation_type", "relation", "predicate", "type")
_TARGETS = ("to", "to_id", "target", "object")
_AUTHORS = ("by", "author", "agent", "session", "skill")
_AUTHOR_KEYS = frozenset(_AUTHORS)

Properties = Mapping[str, Any]


class Operation(NamedTuple):
    """One change of the graph. A named tuple because a cold replay makes a million of them.

    Attributes:
        kind: one of `KINDS`.
        id: the entity concerned; the subject of a relation.
        type: of the entity, as written; create only.
        properties: of the entity (update: those that change) or of the relation.
        rel: the relation, as written; relate and unrelate only.
        target: the object of the relation.
        at: the timestamp as written, "" if there is none.
        created: the time of creation that a create carries, if it is not `at`.
        by: who wrote it, as far as the line says.
    """

    kind: str
    id: str
    type: str = ""
    properties: Properties = {}  # never written to
    rel: str = ""
    target: str = ""
    at: str = ""
    created: str = ""
    by: str = ""


class Entity(NamedTuple):
    """A thing of the graph as it stands.

    Attributes:
        id: unique in the graph.
        type: as written, perhaps an alias.
        properties: names to JSON values.
        created, updated: timestamps as written; "" if unknown.
        origin: "" for the log; else what holds it (`knowledge`), and then it is read-only here.
    """

    id: str
    type: str
    properties: Properties
    created: str = ""
    updated: str = ""
    origin: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it in the shape of the skill."""
        shown: dict[str, Any] = {"id": self.id, "type": self.type, "properties": dict(self.properties)}
        shown |= {"created": self.created or None, "updated": self.updated or None}
        return shown | ({"origin": self.origin} if self.origin else {})


class Edge(NamedTuple):
    """A relation as it stands: source, its name as written, target, its properties; `origin` as of an entity."""

    source: str
    rel: str
    target: str
    properties: Properties = {}  # never written to
    origin: str = ""


def walk(properties: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield path (`login.password`), name and value of all in properties; items of a list have the list's name."""
    waiting: list[tuple[str, str, Any]] = [(name, name, value) for name, value in properties.items()]
    while waiting:
        path, name, value = waiting.pop()
        yield path, name, value
        if isinstance(value, Mapping):
            waiting += [(f"{path}.{key}", str(key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{at}]", name, inner) for at, inner in enumerate(value)]


def is_too_deep(value: object) -> bool:
    """Tell whether a value is nested more than `MAX_NESTING` deep, which no check need then bear."""
    level, depth = [value], 0
    while level and depth <= MAX_NESTING:
        depth += 1
        level = [
            inner
            for held in level
            if isinstance(held, list | dict)
            for inner in (held.values() if isinstance(held, dict) else held)
        ]
    return bool(level)


class Fault(NamedTuple):
    """Something odd about a line: a code of `FAULTS` and what exactly, if there is more to say."""

    code: str
    detail: str = ""


class Reading(NamedTuple):
    """What a record says: its operations, in order, and what is odd about it."""

    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...] = ()


# code: (what, what to do, whether something of the line is lost)
FAULTS: Mapping[str, tuple[str, str, bool]] = {
    "bad_json": ("not JSON", "mend or remove the line", True),
    "oversize_line": ("longer than a line may be", "split it into several operations", True),
    "not_an_object": ("no JSON object", "mend or remove the line", True),
    "not_text": ("holds characters that are no valid text", "write it as UTF-8", True),
    "too_deep": (
        f"nested more than {MAX_NESTING} deep",
        "keep such texts in files, and their paths in the graph",
        True,
    ),
    "bad_operation": ("an operation that lacks what it needs", "mend or remove the line", True),
    "unknown_operation": ("unknown operation", f"known: {', '.join(KINDS)}", True),
    "incomplete_plan": ("a plan of which steps are missing, so none of it counts", "apply the plan again", True),
    "torn_line": ("the last line is torn", "the next write of kbd cuts it off", True),
    "duplicate_id": ("creates an id that exists, and replaces it", "give the new entity an id of its own", True),
    "unknown_id": ("an entity that does not exist at this point", "create it first, or remove the line", True),
    "unknown_edge": ("ends a relation that does not hold", "remove the line", True),
    "bad_timestamp": ("the timestamp is no time", "write it as 2026-01-31T09:30:00+00:00", True),
    "future_timestamp": ("the timestamp lies in the future", "mend the clock or the line", True),
    "comment_line": ("a comment; JSON Lines has none, and the skill cannot read it", "remove the line", False),
    "byte_order_mark": ("a byte order mark before the first line", "save it without", False),
    "missing_timestamp": ("without a timestamp", "kbd takes that of the line above", False),
    "nested_relation": ("a relation written inside the line", "kbd reads it as relate", False),
    "relation_as_entity": ("a relation kept as an entity", "kbd reads it as relate", False),
    "loose_properties": ("properties that are no object", "kbd reads what it can", False),
    "implied_operation": ("no `op`", "kbd takes it for what it looks like", False),
    "id_not_text": ("an id that is no text", "kbd takes it as text", False),
}


def problem_of(fault: Fault, where: str, by: str = "") -> Problem:
    """Return a fault as a problem at a place, with who wrote it if that is known."""
    what, hint, _ = FAULTS[fault.code]
    who = f" (by {by})" if by else ""
    return Problem(fault.code, where, f"{what}: {fault.detail}{who}" if fault.detail else what + who, hint)


def is_note(code: str) -> bool:
    """Tell whether a fault of this code loses nothing."""
    return code in FAULTS and not FAULTS[code][2]


def canonical_operation(record: Mapping[str, Any]) -> Operation | None:
    """Return the operation of a record in exactly the skill's form with all it needs; None for any other."""
    kind, at = record.get("op"), record.get("timestamp")
    if type(at) is not str or not at or not _AUTHOR_KEYS.isdisjoint(record):
        return None
    if kind == "create":
        entity = record.get("entity")
        return _canonical_create(entity, at) if type(entity) is dict else None
    ident, properties = record.get("id"), record.get("properties", {})
    if type(properties) is not dict:
        return None
    if kind == "relate" or kind == "unrelate":
        source, rel, target = record.get("from"), record.get("rel"), record.get("to")
        if type(source) is str and type(rel) is str and type(target) is str and source and rel and target:
            return Operation(kind, source, "", properties, rel, target, at)
    elif (kind == "update" or kind == "delete") and type(ident) is str and ident:
        return Operation(kind, ident, "", properties, "", "", at)
    return None


def _canonical_create(entity: Mapping[str, Any], at: str) -> Operation | None:
    ident, kind, properties, created = (
        entity.get("id"),
        entity.get("type"),
        entity.get("properties"),
        entity.get("created", at),
    )
    if type(ident) is not str or type(kind) is not str or type(properties) is not dict or type(created) is not str:
        return None
    if not ident or not kind or kind == "Relation" or not entity.keys() <= _ENTITY_KEYS or "relations" in entity:
        return None
    return Operation("create", ident, kind, properties, "", "", at, created)


def read_record(record: object) -> Reading:
    """Return what a decoded line says, whatever shape it has. Never raises."""
    if not isinstance(record, dict):
        return Reading((), (Fault("not_an_object"),))
    operation = canonical_operation(record)
    return Reading((operation,)) if operation is not None else _Foreign(record).read()


class _Foreign:
    """Reads one record that is not in the skill's exact form, and gathers what is odd about it."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._faults: list[Fault] = []
        at = record.get("timestamp")
        self._at = at if isinstance(at, str) else ""
        self._by = next((str(record[key]) for key in _AUTHORS if isinstance(record.get(key), str)), "")

    def read(self) -> Reading:
        kind = self._record.get("op")
        if kind == COMPACT:
            return Reading(())
        if kind is None:
            kind = self._implied()
        if kind not in KINDS:
            return Reading((), (Fault("unknown_operation", _cut(repr(kind))),))
        read = {"create": self._create, "update": self._change, "delete": self._change}.get(kind, self._relate)
        operations = tuple(read(kind))
        if not operations:
            self._faults.append(Fault("bad_operation", str(kind)))
        elif not any(one.at for one in operations):
            self._faults.append(Fault("missing_timestamp"))
        return Reading(tuple(one._replace(by=self._by) for one in operations), tuple(self._faults))

    def _implied(self) -> str | None:
        record = self._record
        if isinstance(record.get("entity"), dict) or ("id" in record and "type" in record):
            kind = "create"
        elif _first(record, _SOURCES) and _first(record, _TARGETS):
            kind = "relate"
        else:
            return None
        self._faults.append(Fault("implied_operation"))
        return kind

    def _create(self, _: str) -> Iterable[Operation]:
        entity = self._record.get("entity")
        if not isinstance(entity, dict):
            if isinstance(self._record.get("relation"), dict):
                return self._relate("relate")
            entity = {key: value for key, value in self._record.items() if key not in ("op", "timestamp", *_AUTHORS)}
        properties = self._properties(entity)
        if entity.get("type") == "Relation" and (edge := self._edge("relate", {**entity, "type": None, **properties})):
            self._faults.append(Fault("relation_as_entity"))
            return [edge]
        ident, kind = self._id(entity.get("id")), entity.get("type")
        if not ident:
            return []
        created = next((v for v in (entity.get("created"), entity.get("updated")) if isinstance(v, str)), "")
        at = self._at or created
        create = Operation("create", ident, kind if isinstance(kind, str) else "", properties, "", "", at, created)
        return [create, *self._own_relations(ident, entity.get("relations"), at)]

    def _properties(self, entity: Mapping[str, Any]) -> Properties:
        given = entity.get("properties", {})
        if isinstance(given, list):
            self._faults.append(Fault("loose_properties"))
            pairs = [item for item in given if isinstance(item, dict)]
            named = {item["key"]: item.get("value") for item in pairs if isinstance(item.get("key"), str)}
            return named or {key: value for item in pairs for key, value in item.items()}
        loose = {key: value for key, value in entity.items() if key not in _ENTITY_KEYS}
        if loose or not isinstance(given, dict):
            self._faults.append(Fault("loose_properties"))
        return {**loose, **given} if isinstance(given, dict) else loose

    def _own_relations(self, ident: str, given: object, at: str) -> Iterable[Operation]:
        for item in given if isinstance(given, list) else ():
            edge = self._edge("relate", {**item, "from": ident}) if isinstance(item, dict) else None
            self._faults.append(Fault("nested_relation") if edge else Fault("bad_operation", "relations"))
            if edge:
                yield edge._replace(at=at)

    def _change(self, kind: str) -> Iterable[Operation]:
        entity = self._record.get("entity")
        held = entity if isinstance(entity, dict) else self._record
        ident = self._id(held.get("id"))
        properties = held.get("properties", {})
        if not isinstance(properties, dict):
            self._faults.append(Fault("loose_properties"))
            properties = {}
        return [Operation(kind, ident, "", properties, "", "", self._at)] if ident else []

    def _relate(self, kind: str) -> Iterable[Operation]:
        nested = self._record.get("relation")
        if isinstance(nested, dict):
            self._faults.append(Fault("nested_relation"))
        edge = self._edge(kind, {**self._record, **nested} if isinstance(nested, dict) else self._record)
        return [edge] if edge else []

    def _edge(self, kind: str, held: Mapping[str, Any]) -> Operation | None:
        source, rel, target = (self._id(_first(held, keys)) for keys in (_SOURCES, _RELS, _TARGETS))
        properties = held.get("properties", {})
        if not (source and rel and target):
            return None
        return Operation(kind, source, "", properties if isinstance(properties, dict) else {}, rel, target, self._at)

    def _id(self, value: object) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            self._faults.append(Fault("id_not_text", str(value)))
            return str(value)
        return ""


def _first(held: Mapping[str, Any], keys: Iterable[str]) -> object:
    return next((held[key] for key in keys if isinstance(held.get(key), str | int)), None)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def record_of(operation: Operation) -> dict[str, Any]:
    """Return the operation as the skill would write it; `read_record` of it gives the operation again."""
    kind, ident, type_, properties, rel, target, at, created, by = operation
    record: dict[str, Any] = {"op": kind}
    match kind:
        case "create":
            record["entity"] = {"id": ident, "type": type_, "properties": dict(properties)}
            record["entity"] |= {"created": created or at, "updated": at}
        case "relate":
            record |= {"from": ident, "rel": rel, "to": target, "properties": dict(properties)}
        case "unrelate":
            record |= {"from": ident, "rel": rel, "to": target}
        case "update":
            record |= {"id": ident, "properties": dict(properties)}
        case _:
            record["id"] = ident
    record["timestamp"] = at
    return record | ({"by": by} if by else {})
