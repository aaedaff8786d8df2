"""Checks of one relation against the schema, at the cost of what it touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbd.core.constraint_eval import is_absent
from kbd.core.entity_checks import EntityChecks, Tally, label
from kbd.core.facts import facts_of, path_back, sources_of, targets_of
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import Edge, Entity
from kbd.core.schema import RelationRule, Schema, near, near_or
from kbd.core.secret_checks import secret_places
from kbd.core.value_checks import shown

_WAY_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RelationChecks:
    """The checks of relations; view, schema and tally are those of `entities`."""

    entities: EntityChecks

    @property
    def view(self) -> View:
        """The graph."""
        return self.entities.view

    @property
    def schema(self) -> Schema:
        """What it may hold."""
        return self.entities.schema

    @property
    def tally(self) -> Tally:
        """What was checked."""
        return self.entities.tally

    def edge(self, edge: Edge) -> Iterator[Problem]:
        """Yield what is wrong with a relation by itself: its name, its ends, its properties."""
        where = f"{edge.source} {edge.rel} {edge.target}"
        for place in secret_places(edge.properties):
            yield Problem("secret_value", where, f"{place} holds something shaped like a secret", "keep a reference")
        ends = [(ident, self.view.entity(ident)) for ident in (edge.source, edge.target)]
        for ident, entity in ends:
            if not self.tally.count("relations", fits=entity is not None):
                yield Problem("end_dangling", where, f"{shown(ident)} does not exist", "create it first")
        rule, swapped = self.schema.relation_rule(edge.rel)
        if rule is None:
            if not self.schema.open_relations:
                hint = near_or(edge.rel, self.schema.relation_names, "declare it")
                yield Problem("relation_unknown", where, f"the schema has no relation '{edge.rel}'", hint)
            return
        source, target = [entity for _, entity in (reversed(ends) if swapped else ends)]
        yield from self._ends(rule, source, target, where)
        yield from self._edge_properties(rule, edge, where)

    def _ends(self, rule: RelationRule, source: Entity | None, target: Entity | None, where: str) -> Iterator[Problem]:
        rules = [(rule, source, target)]
        if rule.inverse in self.schema.relations:
            rules.append((self.schema.relations[rule.inverse], target, source))
        for one, start, end in rules:
            for key, types, entity in (("from_types", one.from_types, start), ("to_types", one.to_types, end)):
                if not types or entity is None:
                    continue
                if not self.tally.count(f"relations.{one.name}.{key}", fits=self.entities.is_one_of(entity, types)):
                    side = "starts at" if key == "from_types" else "leads to"
                    what = f"{one.name} {side} {' or '.join(types)}, not {label(entity)}"
                    yield Problem("end_type", where, what, "relate other entities, or mend the schema")

    def _edge_properties(self, rule: RelationRule, edge: Edge, where: str) -> Iterator[Problem]:
        for name in rule.required:
            fits = not is_absent(edge.properties.get(name))
            if not self.tally.count(f"relations.{rule.name}.properties.{name}.required", fits=fits):
                yield Problem("property_missing", where, f"'{name}' is required and has no value", "give it one")
        for name, value in edge.properties.items():
            if name in rule.properties and value is not None:
                yield from self.entities.value(rule.properties[name], value, where)
            elif rule.closed and not self.tally.count(
                f"relations.{rule.name}.properties", fits=name in rule.properties
            ):
                what = f"{rule.name} has no property '{name}'"
                yield Problem("property_unknown", where, what, near(name, rule.properties))

    def counts(self, edge: Edge) -> Iterator[Problem]:
        """Yield the limits of number that a relation breaks, at either end."""
        rule, swapped = self.schema.relation_rule(edge.rel)
        if rule is None:
            return
        source, target = (edge.target, edge.source) if swapped else (edge.source, edge.target)
        for one, start, end in facts_of(self.schema, rule, source, target):
            forms = self.schema.forms_of(one.name)
            if one.one_target or one.maximum is not None:
                yield from self.too_many(one, start, len(targets_of(self.view, forms, start)))
            if one.one_source:
                yield from self.too_many(one, end, len(sources_of(self.view, forms, end)), at_target=True)

    def too_many(self, rule: RelationRule, ident: str, count: int, *, at_target: bool = False) -> Iterator[Problem]:
        """Yield the upper limits that a number of relations at one end breaks."""
        limits = [("cardinality", 1)] if (rule.one_source if at_target else rule.one_target) else []
        if rule.maximum is not None and not at_target:
            limits.append(("max", rule.maximum))
        for key, limit in limits:
            if not self.tally.count(f"relations.{rule.name}.{key}", fits=count <= limit):
                said = rule.cardinality if key == "cardinality" else f"max {limit}"
                end = "as a target" if at_target else "as a source"
                what = f"{ident} has {count} {rule.name} {end}, and {said} allows {limit}"
                yield Problem("cardinality", ident, what, "unrelate the other one first")

    def too_few(self, entity: Entity) -> Iterator[Problem]:
        """Yield the relations that an entity must have and lacks."""
        kind = self.schema.canonical_type(entity.type)
        for rule in self.schema.relations.values():
            if rule.minimum and kind in rule.from_types:
                count = len(targets_of(self.view, self.schema.forms_of(rule.name), entity.id))
                if not self.tally.count(f"relations.{rule.name}.required", fits=count >= rule.minimum):
                    what = f"has {count} {rule.name} and needs {rule.minimum}"
                    hint = "create and relate in one plan: `kbd graph apply`"
                    yield Problem("relation_missing", label(entity), what, hint)

    def cycles(self, edge: Edge) -> Iterator[Problem]:
        """Yield the cycles that a relation closes."""
        rule, swapped = self.schema.relation_rule(edge.rel)
        if rule is None:
            return
        source, target = (edge.target, edge.source) if swapped else (edge.source, edge.target)
        for one, start, end in facts_of(self.schema, rule, source, target):
            for group in self.schema.groups:
                if one.name in group.names:
                    way = path_back(self.view, group, start, end)
                    if not self.tally.count(group.where, fits=not way):
                        yield cycle_problem(sorted(group.names), [start, *way])


def cycle_problem(names: list[str], way: list[str]) -> Problem:
    """Return the problem of a cycle; a long way is shown by its beginning and its end."""
    if len(way) > _WAY_SHOWN:
        way = [*way[: _WAY_SHOWN - 2], f"… ({len(way) - _WAY_SHOWN} more)", way[-1]]
    what = f"closes a cycle over {', '.join(names)}: {' → '.join(way)}"
    return Problem("cycle", way[0], what, "unrelate one of these first")
