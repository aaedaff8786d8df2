"""Every check of a whole graph, in time that goes by its size, and what of a schema was checked at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kbd.core.constraint_checks import ConstraintChecks
from kbd.core.entity_checks import EntityChecks, Tally, id_fault, label
from kbd.core.facts import cycles_of, facts_of
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import Edge, Entity
from kbd.core.relation_checks import RelationChecks, cycle_problem
from kbd.core.schema import Schema
from kbd.core.value_checks import canonical_value, shown

_CYCLES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Validation:
    """What is wrong with a graph, what is only to be noted, and what was checked."""

    problems: list[Problem]
    notes: list[Problem]
    tally: Tally


def validate(view: View, schema: Schema, own: View | None = None) -> Validation:
    """Check a whole graph: what is `own`, if that is not all of the view, with references looked up in the view."""
    work = _Work(view, schema)
    for entity in (own or view).entities():
        if not entity.origin:
            work.entity(entity)
    for edge in (own or view).edges():
        work.edge(edge)
    work.close()
    return Validation(work.problems, work.notes, work.entities.tally)


def validate_touched(view: View, schema: Schema, idents: Iterable[str], edges: Iterable[Edge]) -> Validation:
    """Check some entities and relations of a graph, each with all that could be wrong with it."""
    work = _Work(view, schema)
    for ident in idents:
        entity = view.entity(ident)
        if entity is not None and not entity.origin:
            work.entity(entity)
    for edge in edges:
        work.problems += work.relations.edge(edge)
        work.problems += work.relations.counts(edge)
        work.problems += work.relations.cycles(edge)
    return Validation(list(dict.fromkeys(work.problems)), work.notes, work.entities.tally)


@dataclass(slots=True)
class _Facts:
    """Facts gathered for limits of number and for cycles."""

    sources: Counter[tuple[str, str]] = field(default_factory=Counter)
    targets: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)


class _Work:
    def __init__(self, view: View, schema: Schema) -> None:
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.entities = EntityChecks(view, schema, Tally())
        self.relations = RelationChecks(self.entities)
        self._constraints = ConstraintChecks(view, schema, self.entities.tally)
        self._schema = schema
        self._facts = _Facts()
        self._cyclic = {name for group in schema.groups for name in group.names}

    def entity(self, entity: Entity) -> None:
        fault = id_fault(entity.id)
        if fault:
            self.problems.append(Problem("id_invalid", shown(entity.id), fault, "write the entity anew"))
        self.problems += self.entities.entity(entity)
        self.problems += self.relations.too_few(entity)
        for problem, warns in self._constraints.constraints(entity):
            (self.notes if warns else self.problems).append(problem)
        self.notes += self._drift(entity)

    def _drift(self, entity: Entity) -> Iterator[Problem]:
        """Yield what is written in another form than the one that kbd writes."""
        rule = self._schema.type_rule(entity.type)
        if rule is None:
            return
        if entity.type != rule.name:
            what = f"the type is written '{entity.type}', an alias of '{rule.name}'"
            yield Problem("form_drift", label(entity), what, "`kbd graph compact` writes the one form")
        for name, one in rule.properties.items():
            value = entity.properties.get(name)
            if one.aliases and canonical_value(one, value) != value:
                what = f"'{name}' is written {shown(value)}, an alias of {shown(canonical_value(one, value))}"
                yield Problem("form_drift", label(entity), what, "`kbd graph compact` writes the one form")

    def edge(self, edge: Edge) -> None:
        self.problems += self.relations.edge(edge)
        rule, swapped = self._schema.relation_rule(edge.rel)
        if rule is None:
            return
        source, target = (edge.target, edge.source) if swapped else (edge.source, edge.target)
        forms = self._schema.forms_of(rule.name)
        facts = self._facts
        for one, start, end in facts_of(self._schema, rule, source, target):
            limited = one.cardinality not in ("", "many_to_many") or one.maximum is not None
            if not limited and one.name not in self._cyclic:
                continue
            if len(forms.forward) + len(forms.backward) > 1:
                # Only then can one fact be written twice.
                if (one.name, start, end) in facts.seen:
                    continue
                facts.seen.add((one.name, start, end))
            facts.sources[one.name, start] += 1
            facts.targets[one.name, end] += 1
            if one.name in self._cyclic:
                facts.steps.setdefault(one.name, {}).setdefault(start, set()).add(end)

    def close(self) -> None:
        relations = self._schema.relations
        for (name, ident), count in self._facts.sources.items():
            self.problems += self.relations.too_many(relations[name], ident, count)
        for (name, ident), count in self._facts.targets.items():
            self.problems += self.relations.too_many(relations[name], ident, count, at_target=True)
        for group in self._schema.groups:
            held = [self._facts.steps.get(name, {}) for name in sorted(group.names)]
            steps: dict[str, set[str]] = {}
            for one in held:
                for start, ends in one.items():
                    steps.setdefault(start, set()).update(ends)
            found = cycles_of(steps, _CYCLES_SHOWN)
            if steps:
                self.entities.tally.checked[group.where] += sum(map(len, steps.values()))
                self.entities.tally.violated[group.where] += len(found)
            self.problems += [cycle_problem(sorted(group.names), way) for way in found]
