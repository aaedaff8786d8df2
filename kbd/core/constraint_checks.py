"""Constraints of one entity: expressions over it and what stands around it, and transitions of its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbd.core.constraint_eval import holds, is_absent, property_of
from kbd.core.constraints import names_in
from kbd.core.entity_checks import Tally, label
from kbd.core.facts import sources_of, targets_of
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import Entity
from kbd.core.schema import Constraint, Schema, Transitions, names_entities
from kbd.core.value_checks import shown


@dataclass(frozen=True, slots=True)
class ConstraintChecks:
    """The constraints of a schema upon a graph; also what expressions see of the graph around an entity."""

    view: View
    schema: Schema
    tally: Tally

    def constraints(self, entity: Entity) -> Iterator[tuple[Problem, bool]]:
        """Yield the constraints that an entity breaks, each with whether it only warns."""
        kind = self.schema.canonical_type(entity.type)
        for one in self.schema.constraints:
            if one.type != kind or isinstance(one.body, Transitions):
                continue
            found = holds(one.body, entity, self)
            if found is not None and not self.tally.count(one.where, fits=found):
                named = sorted(name for name in names_in(one.body) if not is_absent(property_of(entity, name)))
                values = ", ".join(f"{name} {shown(property_of(entity, name))}" for name in named)
                yield _broken(one, entity, f"with {values}" if values else ""), one.warns

    def transition(self, before: Entity, after: Entity) -> Iterator[tuple[Problem, bool]]:
        """Yield the transitions that a change of an entity breaks, each with whether it only warns."""
        kind = self.schema.canonical_type(after.type)
        for one in self.schema.constraints:
            if one.type != kind or not isinstance(one.body, Transitions):
                continue
            old, new = (entity.properties.get(one.body.name) for entity in (before, after))
            if is_absent(old) or old == new:
                continue
            if not self.tally.count(one.where, fits=(str(old), str(new)) in one.body.allowed):
                yield _broken(one, after, f"{one.body.name} goes from {shown(old)} to {shown(new)}"), one.warns

    def named_exist(self, entity: Entity, name: str) -> bool:
        """Tell whether all entities exist that the property names, as far as it names entities."""
        rule = self.schema.type_rule(entity.type)
        if rule is None or not names_entities(rule, name):
            return True
        value = entity.properties.get(name)
        idents = value if isinstance(value, list) else [value]
        return all(isinstance(one, str) and self.view.entity(one) is not None for one in idents)

    def has_relation(self, entity: Entity, rel: str, type_: str) -> bool:
        """Tell whether the entity is the source of such a relation, to a type if one is given."""
        canonical, swapped = self.schema.relation_names.get(rel, (rel, False))
        forms = self.schema.forms_of(canonical)
        ends = (sources_of if swapped else targets_of)(self.view, forms, entity.id)
        wanted = (self.schema.canonical_type(type_),) if type_ else ()
        found = (self.view.entity(one) for one in ends)
        return any(one and (not wanted or self.schema.canonical_type(one.type) in wanted) for one in found)


def _broken(constraint: Constraint, entity: Entity, with_: str) -> Problem:
    what = f"{constraint.message or 'breaks'}: {constraint.text}" + (f" ({with_})" if with_ else "")
    return Problem("constraint", label(entity), what, "change the values so that it holds")
