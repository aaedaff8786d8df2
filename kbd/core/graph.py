"""Changes of a graph, checked against the state they would produce: all of them hold, or none is made.

Each step is brought into the one form of the schema, checked against the state that the steps before it build, and
laid over that state. What can only hold at the end (relations an entity must have, constraints) is checked at the end,
for the entities the steps touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kbd.core.constraint_checks import ConstraintChecks
from kbd.core.constraint_eval import is_absent
from kbd.core.contracts import Contract, condition_problems, read_problem, write_problem
from kbd.core.entity_checks import EntityChecks, Tally, id_fault, label
from kbd.core.facts import stored_edges
from kbd.core.graph_state import Overlay, View, created, updated, value_key
from kbd.core.model import Problem
from kbd.core.operations import MAX_NESTING, Edge, Entity, Operation, Properties, is_too_deep, record_of
from kbd.core.redact import holds_secret
from kbd.core.relation_checks import RelationChecks
from kbd.core.schema import PropertyRule, Schema
from kbd.core.value_checks import canonical_value, shown, unwritable


@dataclass(slots=True)
class Prepared:
    """What becomes of a change.

    Attributes:
        operations: to be appended, in canonical form; empty if the state is already as wanted.
        problems: why the change is refused; it holds if there are none.
        warnings: constraints that warn only.
        view: the state after the change.
    """

    operations: list[Operation]
    problems: list[Problem]
    warnings: list[Problem]
    view: View


def prepare(view: View, schema: Schema, operations: Sequence[Operation], contract: Contract | None = None) -> Prepared:
    """Return a change as it would be written, and everything that speaks against it.

    Args:
        view: the graph as it stands; read only.
        schema: what it may hold.
        operations: the steps, names in any form.
        contract: of the skill on whose behalf it is made.
    """
    work = _Work(view, schema, contract)
    for number, operation in enumerate(operations, 1):
        work.step(operation, f"step {number}: " if len(operations) > 1 else "")
    work.close()
    return Prepared(work.written, list(dict.fromkeys(work.problems)), list(dict.fromkeys(work.warnings)), work.overlay)


def cascade(view: View, schema: Schema, ident: str, at: str) -> list[Operation]:
    """Return the steps that delete an entity together with what leads to it: its relations, and values that name it."""
    changes: dict[str, dict[str, object]] = {}
    for name, holder in _referrers(view, schema, ident):
        value = holder.properties.get(name)
        rest = [one for one in value if one != ident] if isinstance(value, list) else None
        changes.setdefault(holder.id, {})[name] = rest
    edges = {edge[:3] for edge in (*view.edges_from(ident), *view.edges_to(ident))}
    return [
        *(Operation("update", holder, "", properties, "", "", at) for holder, properties in changes.items()),
        *(Operation("unrelate", source, "", {}, rel, target, at) for source, rel, target in sorted(edges)),
        Operation("delete", ident, at=at),
    ]


def _referrers(view: View, schema: Schema, ident: str) -> Iterator[tuple[str, Entity]]:
    """Yield the entities whose properties name an entity, with the property; itself left out."""
    for name in sorted(schema.ref_names):
        for holder in view.holders(name, value_key(ident)):
            entity = view.entity(holder)
            if entity is not None and holder != ident:
                yield name, entity


def _is_held(entity: Entity, name: str, value: object) -> bool:
    return name in entity.properties and value_key(entity.properties[name]) == value_key(value)


def _in_one_form(rules: Mapping[str, PropertyRule], properties: Properties) -> dict[str, Any]:
    return {name: canonical_value(rules[name], v) if name in rules else v for name, v in properties.items()}


def _filled(rules: Mapping[str, PropertyRule], properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties with defaults for what has no value."""
    lacking = [rule for name, rule in rules.items() if rule.has_default and is_absent(properties.get(name))]
    return properties | {rule.name: canonical_value(rule, rule.default) for rule in lacking}


class _Work:
    """The state of one `prepare`."""

    def __init__(self, view: View, schema: Schema, contract: Contract | None) -> None:
        self.overlay = Overlay(view, schema.indexed)
        self.written: list[Operation] = []
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._schema, self._contract = schema, contract
        self._entities = EntityChecks(self.overlay, schema, Tally())
        self._relations = RelationChecks(self._entities)
        self._constraints = ConstraintChecks(self.overlay, schema, self._entities.tally)
        self._touched: dict[str, str] = {}
        self._made: set[str] = set()
        self._prefix = ""

    def step(self, operation: Operation, prefix: str) -> None:
        """Check one step upon those before it, and lay it over them even if it is wrong: all reasons are wanted."""
        self._prefix = prefix
        names = (operation.id, operation.type, operation.rel, operation.target)
        if any(map(holds_secret, names)):
            self._refuse("secret_value", "(a name)", "an id or a name is shaped like a secret", "take another one")
            return
        if is_too_deep(record_of(operation)):
            what = f"its properties make the line nested more than {MAX_NESTING} deep"
            self._refuse("value_invalid", shown(operation.id), what, "keep such texts in files")
            return
        for place in unwritable({"id": list(names), **operation.properties}):
            self._refuse("value_invalid", shown(operation.id), f"{shown(place)} cannot be written", "mend the text")
            return
        steps = {"create": self._create, "update": self._update, "delete": self._delete, "relate": self._relate}
        steps.get(operation.kind, self._unrelate)(operation)

    def close(self) -> None:
        """Check what has to hold at the end, of the entities that the steps touched."""
        for ident, prefix in self._touched.items():
            entity = self.overlay.entity(ident)
            if entity is None or entity.origin:
                continue
            self._prefix = prefix
            self._add(self._relations.too_few(entity))
            self._sort(self._constraints.constraints(entity))
            if self._contract:
                conditions, created_now = self._contract.postconditions, ident in self._made
                self._add(condition_problems(conditions, entity, self.overlay, self._schema, created=created_now))

    def _add(self, problems: Iterable[Problem]) -> None:
        self.problems += [replace(one, where=f"{self._prefix}{one.where}") for one in problems]

    def _sort(self, found: Iterable[tuple[Problem, bool]]) -> None:
        for problem, warns in found:
            told = replace(problem, where=f"{self._prefix}{problem.where}")
            (self.warnings if warns else self.problems).append(told)

    def _refuse(self, code: str, where: str, what: str, hint: str) -> None:
        self.problems.append(Problem(code, f"{self._prefix}{where}", what, hint))

    def _write(self, operation: Operation) -> None:
        self.overlay.apply(operation)
        self.written.append(operation)
        for ident in (operation.id, operation.target):
            if ident:
                self._touched[ident] = self._prefix

    def _canonical(self, type_: str, properties: Properties) -> dict[str, Any]:
        rule = self._schema.type_rule(type_)
        return _in_one_form(rule.properties if rule else {}, properties)

    def _create(self, operation: Operation) -> None:
        type_ = self._schema.canonical_type(operation.type)
        rule = self._schema.type_rule(type_)
        properties = _filled(rule.properties if rule else {}, self._canonical(type_, operation.properties))
        operation = operation._replace(type=type_, properties=properties)
        entity, held = created(operation), self.overlay.entity(operation.id)
        fault = id_fault(operation.id)
        if fault:
            self._refuse("id_invalid", shown(operation.id), fault, "give another id")
        if held is not None:
            self._refuse("id_taken", label(held), "the id is taken", "update that entity, or give another id")
            return
        self._before(entity)
        self._made.add(operation.id)
        self._write(operation)
        self._add(self._entities.entity(entity))

    def _update(self, operation: Operation) -> None:
        before = self._changeable(operation.id)
        if before is None:
            return
        properties = self._canonical(before.type, operation.properties)
        changed = {name for name, value in properties.items() if not _is_held(before, name, value)}
        operation = operation._replace(properties=properties)
        after = updated(before, operation)
        self._before(after)
        if not changed:
            return
        self._sort(self._constraints.transition(before, after))
        self._write(operation)
        self._add(self._entities.entity(after, changed))

    def _delete(self, operation: Operation) -> None:
        entity = self._changeable(operation.id)
        if entity is None:
            return
        self._before(entity)
        edges = [*self.overlay.edges_from(entity.id), *self.overlay.edges_to(entity.id)]
        uses = [f"{edge.source} {edge.rel} {edge.target}" for edge in edges]
        uses += [f"{one.id} by its {name}" for name, one in _referrers(self.overlay, self._schema, entity.id)]
        if uses:
            more = f" and {len(uses) - 3} more" if len(uses) > 3 else ""
            what = f"is still related: {', '.join(uses[:3])}{more}"
            self._refuse("still_related", label(entity), what, "end these first, or delete with --cascade")
        self._write(operation)

    def _changeable(self, ident: str) -> Entity | None:
        entity = self.overlay.entity(ident)
        if entity is None:
            self._refuse("id_unknown", shown(ident), "does not exist", "create it first, or mend the id")
        elif entity.origin:
            what = f"is held by {entity.origin} and read-only here"
            self._refuse("read_only", label(entity), what, "edit it where it is held")
        else:
            return entity
        return None

    def _before(self, entity: Entity) -> None:
        """Check what the contract asks of a change of an entity before it is made."""
        if self._contract:
            problem = write_problem(self._contract, self._schema, entity)
            self._add([problem] if problem else [])
            conditions = self._contract.preconditions
            self._add(condition_problems(conditions, entity, self.overlay, self._schema, created=True))

    def _relate(self, operation: Operation) -> None:
        operation = self._turned(operation)
        source, rel, target = operation.id, operation.rel, operation.target
        self._check_ends(source, target)
        forms = self._schema.forms_of(rel)
        held = stored_edges(self.overlay, forms, source, target)
        properties = self._canonical_edge(rel, {**(held[0].properties if held else {}), **operation.properties})
        if any(not operation.properties or one.properties == properties for one in held):
            return
        # A fact that is written already is changed where it stands, under the name it has there.
        edge = held[0]._replace(properties=properties) if held else Edge(source, rel, target, properties)
        self._write(operation._replace(id=edge.source, rel=edge.rel, target=edge.target, properties=properties))
        self._add(self._relations.edge(edge))
        if not held:
            self._add(self._relations.counts(edge))
            self._add(self._relations.cycles(edge))

    def _turned(self, operation: Operation) -> Operation:
        """Return a relation under its canonical name, its ends swapped if the name given is its inverse."""
        name, swapped = self._schema.relation_names.get(operation.rel, (operation.rel, False))
        if swapped:
            return operation._replace(id=operation.target, rel=name, target=operation.id)
        return operation._replace(rel=name)

    def _canonical_edge(self, rel: str, properties: Properties) -> dict[str, Any]:
        rule = self._schema.relations.get(rel)
        rules: Mapping[str, PropertyRule] = rule.properties if rule else {}
        return _filled(rules, _in_one_form(rules, properties))

    def _check_ends(self, source: str, target: str) -> None:
        """Check what the contract says of a relation: it changes its source, and looks at its target."""
        start, end = self.overlay.entity(source), self.overlay.entity(target)
        if self._contract and start is not None:
            self._before(start)
        if self._contract and end is not None:
            problem = read_problem(self._contract, self._schema, end)
            self._add([problem] if problem else [])

    def _unrelate(self, operation: Operation) -> None:
        operation = self._turned(operation)
        self._check_ends(operation.id, operation.target)
        held = stored_edges(self.overlay, self._schema.forms_of(operation.rel), operation.id, operation.target)
        if not held:
            where = f"{operation.id} {operation.rel} {operation.target}"
            self._refuse("edge_unknown", where, "does not hold", "see `kbd graph related`")
        for edge in held:
            if edge.origin:
                where, hint = f"{edge.source} {edge.rel} {edge.target}", "`kbd unrelate` ends it there"
                self._refuse("read_only", where, f"is held by {edge.origin} and read-only here", hint)
                continue
            self._write(operation._replace(id=edge.source, rel=edge.rel, target=edge.target, properties={}))
