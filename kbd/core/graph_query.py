"""Questions to a graph: entities under conditions, what is related over several hops, shortest paths.

Conditions are the grammar of constraints, or a JSON object as the public skill takes it: `{"status": "open"}`, with
`{"due": {"<": "2026-02-01"}}`, `{"or": […]}`, `{"and": […]}` and `{"not": {…}}` beyond that. Steps of a walk are
relations, `~` against their direction, with conditions in brackets: `has_task[status = open]/touches/~applies_to`. A
property that is a ref is a step as well, where it is named: `~assignee` leads from a person to tasks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kbd.core.constraint_checks import ConstraintChecks
from kbd.core.constraint_eval import holds
from kbd.core.constraints import (
    MAX_CHARS,
    And,
    Compare,
    Exists,
    Expression,
    In,
    Literal,
    Name,
    Not,
    Or,
    RuleFault,
    parse_condition,
)
from kbd.core.entity_checks import Tally
from kbd.core.facts import sources_of, targets_of
from kbd.core.graph_state import View, value_key
from kbd.core.operations import Edge, Entity, is_too_deep
from kbd.core.schema import Forms, Schema
from kbd.core.value_checks import canonical_value

_OPERATORS = {
    **{"=": "=", "==": "=", "eq": "=", "!=": "!=", "ne": "!=", "<": "<", "lt": "<", "<=": "<=", "lte": "<="},
    **{">": ">", "gt": ">", ">=": ">=", "gte": ">=", "contains": "contains"},
}
_MAX_DEPTH = 40
_STEP = re.compile(r"\s*(~?)\s*([^\s/\[\]~]+)\s*(?:\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\])?\s*(/|$)")


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a walk: a relation by any of its names, forwards or back, and what must hold of where it leads."""

    rel: str
    backwards: bool
    condition: Expression | None


def condition_of(given: Mapping[str, Any], depth: int = 0) -> Expression | None:
    """Return the expression of a JSON object; None for one that asks nothing.

    Raises:
        RuleFault: it has an operator that is none.
    """
    if depth > _MAX_DEPTH or (not depth and is_too_deep(given)):
        raise RuleFault(f"nested more than {_MAX_DEPTH} deep")
    parts = [part for key, value in given.items() for part in _conditions(key.removeprefix("$"), value, depth)]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _conditions(key: str, value: Any, depth: int) -> Iterator[Expression]:
    if key in ("and", "or") and isinstance(value, list):
        inner = [condition_of(item, depth + 1) for item in value if isinstance(item, dict)]
        if len(inner) != len(value) or None in inner or not inner:
            raise RuleFault(f"`{key}` needs a list of conditions")
        parts = tuple(part for part in inner if part is not None)
        yield And(parts) if key == "and" else Or(parts)
    elif key == "not" and isinstance(value, dict):
        negated = condition_of(value, depth + 1)
        if negated is not None:
            yield Not(negated)
    elif isinstance(value, dict) and value and all(_is_operator(one) for one in value):
        yield from (_test(key, operator.removeprefix("$"), operand) for operator, operand in value.items())
    else:
        yield Compare("=", Name(key), Literal(value))


def _is_operator(name: str) -> bool:
    return name.removeprefix("$") in {*_OPERATORS, "in", "exists"}


def _test(name: str, operator: str, operand: Any) -> Expression:
    if operator == "exists":
        return Exists(name) if operand is not False else Not(Exists(name))
    if operator == "in":
        if not isinstance(operand, list):
            raise RuleFault("`in` needs a list")
        return In(Name(name), tuple(map(Literal, operand)))
    return Compare(_OPERATORS[operator], Name(name), Literal(operand))


def hops_of(text: str, known: Collection[str]) -> tuple[Hop, ...]:
    """Return the steps of a walk; a text that is the name of a relation is one step whatever stands in it.

    Raises:
        RuleFault: the text is no walk.
    """
    if text in known:
        return (Hop(text, False, None),)
    if len(text) > MAX_CHARS:
        raise RuleFault(f"is longer than {MAX_CHARS} characters")
    hops: list[Hop] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise RuleFault(f"is no walk at {text[at : at + 20]!r}")
        hops.append(Hop(found[2], bool(found[1]), parse_condition(found[3]) if found[3] else None))
        at = found.end()
    if not hops or text.rstrip().endswith("/"):
        raise RuleFault("is no walk; write a/b/~c")
    return tuple(hops)


@dataclass(frozen=True, slots=True)
class Query:
    """Questions to one graph; names of types and relations may be any that the schema knows."""

    view: View
    schema: Schema

    def entities(self, type_: str | None, condition: Expression | None) -> Iterator[Entity]:
        """Yield the entities of a type under a condition, in the order of the graph."""
        types = self.schema.spellings(type_) if type_ else None
        for entity in self.view.entities(types):
            if condition is None or self.meets(entity, condition):
                yield entity

    def meets(self, entity: Entity, condition: Expression) -> bool:
        """Tell whether a condition holds of an entity, its values and its type taken in their one form."""
        around = ConstraintChecks(self.view, self.schema, Tally())
        return holds(condition, self._canonical(entity), around) is True

    def _canonical(self, entity: Entity) -> Entity:
        rule = self.schema.type_rule(entity.type)
        if rule is None:
            return entity
        properties = {
            name: canonical_value(rule.properties[name], value) if name in rule.properties else value
            for name, value in entity.properties.items()
        }
        return entity._replace(type=rule.name, properties=properties)

    def related(self, ident: str, rel: str | None, direction: str) -> Iterator[tuple[str, str, Entity]]:
        """Yield relation, direction (`outgoing`, `incoming`) and other end of what is related to an entity.

        Facts written under an alias or the inverse appear under the name asked for; each other end once a relation.
        """
        edges = [(edge.rel, "outgoing", edge.target) for edge in self._edges(ident, rel, outgoing=True)]
        edges += [(edge.rel, "incoming", edge.source) for edge in self._edges(ident, rel, outgoing=False)]
        for name, way, other in dict.fromkeys(edges):
            entity = self.view.entity(other)
            if entity is not None and direction in (way, "both"):
                yield name, way, entity

    def _edges(self, ident: str, rel: str | None, *, outgoing: bool) -> Iterator[Edge]:
        if rel is None:
            yield from self.view.edges_from(ident) if outgoing else self.view.edges_to(ident)
            return
        for other in sorted(self._ends(ident, rel, backwards=not outgoing)):
            yield Edge(ident, rel, other) if outgoing else Edge(other, rel, ident)

    def _ends(self, ident: str, rel: str, *, backwards: bool) -> set[str]:
        """Return where one step leads: over a relation by any of its names, or over a property that is a ref."""
        if not self._is_ref(rel):
            return (sources_of if backwards else targets_of)(self.view, self._forms(rel), ident)
        if backwards:
            return {one for one in self.view.holders(rel, value_key(ident)) if ident in self._named_by(one, rel)}
        return self._named_by(ident, rel)

    def _is_ref(self, name: str) -> bool:
        return name in self.schema.ref_names and name not in self.schema.relation_names

    def _named_by(self, ident: str, name: str) -> set[str]:
        """Return the ids in a property of an entity, if its type has it as a ref."""
        entity = self.view.entity(ident)
        rule = self.schema.type_rule(entity.type) if entity else None
        if entity is None or rule is None or name not in rule.properties or not rule.properties[name].points:
            return set()
        value = entity.properties.get(name)
        return {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}

    def _forms(self, rel: str) -> Forms:
        canonical, swapped = self.schema.relation_names.get(rel, (rel, False))
        forms = self.schema.forms_of(canonical)
        return Forms(forms.backward, forms.forward) if swapped else forms

    def walk(self, start: str, hops: Iterable[Hop]) -> list[Entity]:
        """Return where a walk leads, each entity once, in order of their ids."""
        front = {start}
        for hop in hops:
            ends = {end for ident in front for end in self._ends(ident, hop.rel, backwards=hop.backwards)}
            reached = {ident: self.view.entity(ident) for ident in ends}
            front = {
                ident
                for ident, entity in reached.items()
                if entity and (hop.condition is None or self.meets(entity, hop.condition))
            }
        return [entity for ident in sorted(front) for entity in [self.view.entity(ident)] if entity]

    def path(self, start: str, end: str, rels: Collection[str], most: int) -> list[Edge]:
        """Return a shortest path, relations taken in either direction; empty if there is none of at most `most` steps.

        Args:
            start, end: ids.
            rels: only these relations, and properties that are refs; all relations if empty.
            most: the number of steps.
        """
        refs = [rel for rel in dict.fromkeys(rels) if self._is_ref(rel)]
        forms = [self._forms(rel) for rel in rels if rel not in refs]
        names = {name for one in forms for name in one.forward | one.backward} if rels else None
        came: dict[str, Edge | None] = {start: None}
        front = [start]
        for _ in range(most):
            if end in came or not front:
                break
            widened: list[str] = []
            for ident in front:
                edges = [*self.view.edges_from(ident, names), *self.view.edges_to(ident, names)]
                for ref in refs:
                    edges += [*self._edges(ident, ref, outgoing=True), *self._edges(ident, ref, outgoing=False)]
                for edge in sorted(edges, key=lambda edge: edge[:3]):
                    other = edge.target if edge.source == ident else edge.source
                    if other not in came and self.view.entity(other) is not None:
                        came[other] = edge
                        widened.append(other)
            front = widened
        return _way(came, end)


def _way(came: Mapping[str, Edge | None], end: str) -> list[Edge]:
    way: list[Edge] = []
    edge = came.get(end)
    while edge is not None:
        way.append(edge)
        end = edge.source if edge.target == end else edge.target
        edge = came[end]
    return way[::-1]
