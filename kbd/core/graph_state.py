"""The graph as it stands after its operations, in two forms: a lean one for replay, and one that answers questions.

`Overlay` answers every question of a check in time that goes by what is asked, not by the size of the graph, and lies
over another view, so that the state a change would produce can be looked at before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from json.encoder import encode_basestring
from typing import Protocol

from kbd.core.operations import Edge, Entity, Operation, Properties

Triple = tuple[str, str, str]
_NOTHING: Properties = {}


class View(Protocol):
    """What checks and queries ask of a graph, wherever it is kept."""

    def entity(self, ident: str) -> Entity | None:
        """Return the entity of an id."""

    def edge(self, triple: Triple) -> Edge | None:
        """Return the relation between two entities, under its name as written; None if it does not hold."""

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose source it is; of these names, as written, if given."""

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose target it is; of these names, as written, if given."""

    def holders(self, name: str, key: str) -> Iterable[str]:
        """Return the ids of the entities whose indexed property has the value, or has it in its list (`value_key`)."""

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield all entities; of these types, as written, if given."""

    def edges(self) -> Iterator[Edge]:
        """Yield all relations."""


def value_key(value: object) -> str:
    """Return a text that is the same for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if type(value) is str:
        return encode_basestring(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def value_keys(value: object) -> list[str]:
    """Return the keys under which a value is found: of a list those of its items; none for null."""
    if isinstance(value, list):
        return [value_key(item) for item in value if item is not None]
    return [] if value is None else [value_key(value)]


def updated(entity: Entity, operation: Operation) -> Entity:
    """Return the entity after an update."""
    properties = {**entity.properties, **operation.properties}
    return Entity(entity.id, entity.type, properties, entity.created, operation.at or entity.updated, entity.origin)


def created(operation: Operation) -> Entity:
    """Return the entity that a create makes."""
    at = operation.at
    return Entity(operation.id, operation.type, operation.properties, operation.created or at, at or operation.created)


class GraphState:
    """Replay of a log: the last word on every entity and relation, nothing more.

    As in the skill, a delete leaves relations behind (validation reports them as dangling), and of operations on what
    is not there nothing comes.
    """

    def __init__(self) -> None:
        """Begin with an empty graph."""
        self.entities: dict[str, Entity] = {}
        self.edges: dict[Triple, Properties] = {}

    def apply(self, operation: Operation) -> str:
        """Change the state; return the code of a fault (see `operations.FAULTS`), "" if all is well."""
        return next((code for _, code in self.apply_all((operation,))), "")

    def apply_all(self, operations: Iterable[Operation]) -> list[tuple[int, str]]:
        """Change the state by one operation after the other; return the faults, each with the number of its operation.

        One loop without calls: a cold replay goes through it a million times.
        """
        entities, edges, faults = self.entities, self.edges, []
        for number, (kind, ident, type_, properties, rel, target, at, made_at, _) in enumerate(operations):
            if kind == "relate":
                edges[ident, rel, target] = properties or _NOTHING
            elif kind == "unrelate":
                if edges.pop((ident, rel, target), None) is None:
                    faults.append((number, "unknown_edge"))
            elif kind == "create":
                if ident in entities:
                    faults.append((number, "duplicate_id"))
                made_at = at if made_at == at else made_at
                entities[ident] = Entity(ident, type_, properties, made_at or at, at or made_at)
            elif (entity := entities.get(ident)) is None:
                faults.append((number, "unknown_id"))
            elif kind == "update":
                held = {**entity.properties, **properties}
                entities[ident] = Entity(ident, entity.type, held, entity.created, at or entity.updated)
            else:
                del entities[ident]
        return faults


class Empty:
    """The view of a graph without anything in it."""

    def entity(self, ident: str) -> Entity | None:
        """Return None."""
        return None

    def edge(self, triple: Triple) -> Edge | None:
        """Return None."""
        return None

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return nothing."""
        return ()

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return nothing."""
        return ()

    def holders(self, name: str, key: str) -> Iterable[str]:
        """Return nothing."""
        return ()

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield nothing."""
        return iter(())

    def edges(self) -> Iterator[Edge]:
        """Yield nothing."""
        return iter(())


class Overlay:
    """Changes upon another view; over `Empty` it is a whole graph in memory."""

    def __init__(self, under: View, indexed: Collection[str]) -> None:
        """Lay nothing yet over `under`; `indexed` names the properties that `holders` answers for."""
        self._under = under
        self._indexed = frozenset(indexed)
        self._entities: dict[str, Entity | None] = {}
        # Of each end the relations that differ from the view below; None stands for one that ended.
        self._out: dict[str, dict[Triple, Edge | None]] = {}
        self._in: dict[str, dict[Triple, Edge | None]] = {}
        self._terms: dict[tuple[str, str], dict[str, None]] = {}

    @classmethod
    def of(cls, state: GraphState, indexed: Collection[str]) -> Overlay:
        """Return a replayed graph as a view."""
        overlay = cls(Empty(), indexed)
        for entity in state.entities.values():
            overlay._put(entity)
        for (source, rel, target), properties in state.edges.items():
            overlay._link(Edge(source, rel, target, properties))
        return overlay

    def entity(self, ident: str) -> Entity | None:
        """Return the entity of an id."""
        return self._entities[ident] if ident in self._entities else self._under.entity(ident)

    def edge(self, triple: Triple) -> Edge | None:
        """Return the relation between two entities; None if it does not hold."""
        own = self._out.get(triple[0], {})
        return own[triple] if triple in own else self._under.edge(triple)

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose source it is; of these names, if given."""
        return _merged(self._under.edges_from(ident, names), self._out.get(ident), names)

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose target it is; of these names, if given."""
        return _merged(self._under.edges_to(ident, names), self._in.get(ident), names)

    def holders(self, name: str, key: str) -> Iterable[str]:
        """Return the ids of the entities whose indexed property has the value, or has it in its list."""
        below = [ident for ident in self._under.holders(name, key) if ident not in self._entities]
        return [*below, *self._terms.get((name, key), ())]

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield all entities; of these types, if given."""
        yield from (entity for entity in self._under.entities(types) if entity.id not in self._entities)
        yield from (one for one in self._entities.values() if one and (types is None or one.type in types))

    def edges(self) -> Iterator[Edge]:
        """Yield all relations."""
        for edge in self._under.edges():
            if edge[:3] not in self._out.get(edge.source, {}):
                yield edge
        yield from (edge for own in self._out.values() for edge in own.values() if edge is not None)

    def apply(self, operation: Operation) -> str:
        """Change the state; return the code of a fault, "" if all is well. The same as `GraphState.apply`."""
        kind, ident = operation.kind, operation.id
        if kind == "relate":
            self._link(Edge(ident, operation.rel, operation.target, operation.properties))
            return ""
        if kind == "unrelate":
            return self._unlink((ident, operation.rel, operation.target))
        entity = self.entity(ident)
        if kind == "create":
            self._put(created(operation))
            return "duplicate_id" if entity else ""
        if entity is None:
            return "unknown_id"
        if kind == "update":
            self._put(updated(entity, operation))
        else:
            self._drop_terms(ident)
            self._entities[ident] = None
        return ""

    def _put(self, entity: Entity) -> None:
        self._drop_terms(entity.id)
        self._entities[entity.id] = entity
        for name in self._indexed & entity.properties.keys():
            for key in value_keys(entity.properties[name]):
                self._terms.setdefault((name, key), {})[entity.id] = None

    def _drop_terms(self, ident: str) -> None:
        before = self._entities.get(ident)
        for name in self._indexed & before.properties.keys() if before else ():
            for key in value_keys(before.properties[name] if before else None):
                self._terms[name, key].pop(ident, None)

    def _link(self, edge: Edge) -> None:
        self._out.setdefault(edge.source, {})[edge[:3]] = edge
        self._in.setdefault(edge.target, {})[edge[:3]] = edge

    def _unlink(self, triple: Triple) -> str:
        source, _, target = triple
        if self.edge(triple) is None:
            return "unknown_edge"
        self._out.setdefault(source, {})[triple] = None
        self._in.setdefault(target, {})[triple] = None
        return ""


def _merged(
    below: Iterable[Edge], own: dict[Triple, Edge | None] | None, names: Collection[str] | None
) -> Iterable[Edge]:
    if not own:
        return below
    kept = [edge for edge in below if edge[:3] not in own]
    return kept + [edge for edge in own.values() if edge and (names is None or edge.rel in names)]
