"""Knowledge seen from the graph: entries, files and their relations as read-only entities and relations.

An entry is an entity under its handle, of the type `Pitfall`, `Decision` and so on; a file is `file:PATH` of the type
`File`; anything else that a relation names is `topic:NAME` of the type `Topic`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, Protocol

from kbd.core.graph_state import Triple, View
from kbd.core.model import Relation, State
from kbd.core.normal import normalise
from kbd.core.operations import Edge, Entity
from kbd.core.schema import FILE_TYPE, KNOWLEDGE_TYPES

ORIGIN = "knowledge"
FILE_PREFIX = "file:"
TOPIC_PREFIX = "topic:"
HANDLE_PREFIX = "k-"
TOPIC_TYPE = "Topic"
_PREFIXES = (HANDLE_PREFIX, FILE_PREFIX, TOPIC_PREFIX)
_TYPES = frozenset({*KNOWLEDGE_TYPES, FILE_TYPE, TOPIC_TYPE})


class EntryLike(Protocol):
    """What the bridge looks at in an entry; `kbd.store.ledger.lessons.EntryRow` has it."""

    @property
    def handle(self) -> str: ...  # noqa: D102 - the fields of an entry
    @property
    def title(self) -> str: ...  # noqa: D102 - ditto
    @property
    def norm(self) -> str: ...  # noqa: D102 - ditto
    @property
    def type(self) -> str: ...  # noqa: D102 - ditto
    @property
    def state(self) -> State: ...  # noqa: D102 - ditto
    @property
    def file(self) -> str: ...  # noqa: D102 - ditto
    @property
    def section(self) -> str: ...  # noqa: D102 - ditto


class Knowledge:
    """Entries and their relations as a view of their own."""

    def __init__(self, entries: Iterable[EntryLike], relations: Iterable[Relation]) -> None:
        """Take entries and relations; expired relations are left out."""
        self._entities: dict[str, Entity] = {}
        self._handles: dict[str, str] = {}
        self._out: dict[str, list[Edge]] = {}
        self._in: dict[str, list[Edge]] = {}
        for entry in entries:
            self._entities[entry.handle] = _entity(entry)
            self._handles.setdefault(entry.norm, entry.handle)
        for relation in relations:
            if relation.e is None:
                self._link(relation)

    def _link(self, relation: Relation) -> None:
        files = relation.p == "applies_to"
        source, target = self._ident(relation.s, is_file=False), self._ident(relation.o, is_file=files)
        edge = Edge(source, relation.p, target, origin=ORIGIN)
        self._out.setdefault(source, []).append(edge)
        self._in.setdefault(target, []).append(edge)

    def _ident(self, name: str, *, is_file: bool) -> str:
        ident = self._handles.get(normalise(name)) or (FILE_PREFIX if is_file else TOPIC_PREFIX) + name
        if ident not in self._entities:
            virtual = _virtual(ident)
            if virtual is not None:
                self._entities[ident] = virtual
        return ident

    def entity(self, ident: str) -> Entity | None:
        """Return an entry or what a relation names; any `file:PATH` is a file."""
        return self._entities.get(ident) or (_virtual(ident) if ident.startswith(FILE_PREFIX) else None)

    def edge(self, triple: Triple) -> Edge | None:
        """Return the relation between two entities; None if it does not hold."""
        return next((edge for edge in self._out.get(triple[0], ()) if edge[:3] == triple), None)

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose source it is; of these names, if given."""
        return [edge for edge in self._out.get(ident, ()) if names is None or edge.rel in names]

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose target it is; of these names, if given."""
        return [edge for edge in self._in.get(ident, ()) if names is None or edge.rel in names]

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield all entities; of these types, if given."""
        return (one for one in self._entities.values() if types is None or one.type in types)

    def edges(self) -> Iterator[Edge]:
        """Yield all relations."""
        return (edge for edges in self._out.values() for edge in edges)


def _entity(entry: EntryLike) -> Entity:
    properties: dict[str, Any] = {"title": entry.title, "state": entry.state.value}
    properties |= {"file": entry.file, "section": entry.section}
    return Entity(entry.handle, entry.type.capitalize(), properties, origin=ORIGIN)


def _virtual(ident: str) -> Entity | None:
    for prefix, type_, key in ((FILE_PREFIX, FILE_TYPE, "path"), (TOPIC_PREFIX, TOPIC_TYPE, "name")):
        if ident.startswith(prefix) and len(ident) > len(prefix):
            return Entity(ident, type_, {key: ident.removeprefix(prefix)}, origin=ORIGIN)
    return None


class Bridged:
    """A graph with the knowledge beside it, read only when something asks for it. Entities of the graph come first."""

    def __init__(self, graph: View, load: Callable[[], Knowledge]) -> None:
        """Take a graph, and how to get at the knowledge."""
        self._graph, self._load = graph, load

    @cached_property
    def _knowledge(self) -> Knowledge:
        return self._load()

    def entity(self, ident: str) -> Entity | None:
        """Return the entity of an id."""
        found = self._graph.entity(ident)
        if found is not None or not ident.startswith(_PREFIXES):
            return found
        return self._knowledge.entity(ident)

    def edge(self, triple: Triple) -> Edge | None:
        """Return the relation between two entities; None if it does not hold."""
        found = self._graph.edge(triple)
        return found or (self._knowledge.edge(triple) if triple[0].startswith(_PREFIXES) else None)

    def edges_from(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose source it is; of these names, if given."""
        own = self._graph.edges_from(ident, names)
        return [*own, *self._knowledge.edges_from(ident, names)] if ident.startswith(_PREFIXES) else own

    def edges_to(self, ident: str, names: Collection[str] | None = None) -> Iterable[Edge]:
        """Return the relations whose target it is; of these names, if given."""
        own = self._graph.edges_to(ident, names)
        return [*own, *self._knowledge.edges_to(ident, names)] if ident.startswith(_PREFIXES) else own

    def holders(self, name: str, key: str) -> Iterable[str]:
        """Return the ids of the graph's entities whose indexed property has the value."""
        return self._graph.holders(name, key)

    def entities(self, types: Collection[str] | None = None) -> Iterator[Entity]:
        """Yield the graph's entities; with types, also the knowledge of these types."""
        yield from self._graph.entities(types)
        if types is not None and not _TYPES.isdisjoint(types):
            yield from self._knowledge.entities(types)

    def edges(self) -> Iterator[Edge]:
        """Yield the graph's relations."""
        return self._graph.edges()
