"""Checks of one entity against the schema, at the cost of what it touches.

Every check that is made is counted under its place in the schema, so that coverage can say what was checked at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from kbd.core.constraint_eval import is_absent
from kbd.core.graph_state import View, value_key, value_keys
from kbd.core.model import Problem
from kbd.core.operations import Entity
from kbd.core.schema import (
    KNOWLEDGE_TYPES,
    PropertyRule,
    Schema,
    TypeRule,
    near_or,
)
from kbd.core.secret_checks import forbidden_names, secret_places
from kbd.core.value_checks import checks_of, shown

MAX_ID_CHARS = 256


@dataclass(slots=True)
class Tally:
    """How often each place of the schema was checked, and how often it was violated."""

    checked: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)

    def count(self, where: str, *, fits: bool) -> bool:
        """Count a check and return whether it fits."""
        self.checked[where] += 1
        if not fits:
            self.violated[where] += 1
        return fits


def label(entity: Entity) -> str:
    """Return how messages name an entity."""
    return f"{entity.type} {entity.id}".strip()


def id_fault(ident: str) -> str:
    """Return what is wrong with an id, "" if nothing."""
    if not ident.strip() or ident != ident.strip():
        return "an id has characters, and none of them at its ends is a space"
    if len(ident) > MAX_ID_CHARS:
        return f"an id has at most {MAX_ID_CHARS} characters"
    return "" if ident.isprintable() else "an id has no control characters"


@dataclass(frozen=True, slots=True)
class EntityChecks:
    """The checks of entities, as a view shows them, against a schema."""

    view: View
    schema: Schema
    tally: Tally = field(default_factory=Tally)

    def entity(self, entity: Entity, changed: Collection[str] | None = None) -> Iterator[Problem]:
        """Yield what is wrong with an entity by itself; values only of the changed properties if given."""
        where = label(entity)
        secrets = secret_places(entity.properties)
        for place in secrets:
            hint = "store it elsewhere and keep a reference, such as `secret_ref: keychain:name`"
            yield Problem("secret_value", where, f"{place} holds something shaped like a secret", hint)
        rule = self.schema.type_rule(entity.type)
        if rule is None:
            yield from self._unknown_type(entity)
            return
        tainted = {path.partition(".")[0].partition("[")[0] for path in secrets}
        for problem, path in self._forbidden(entity, rule):
            tainted.add(path.partition(".")[0].partition("[")[0])
            yield problem
        names = set(entity.properties if changed is None else changed) - tainted
        yield from self._required(entity, rule)
        yield from self._unknown_properties(entity, rule, names)
        yield from self._values(entity, rule, names)
        yield from self._unique(entity, rule, names)

    def _unknown_type(self, entity: Entity) -> Iterator[Problem]:
        if self.schema.open_types:
            return
        what = f"the schema has no type '{entity.type}'"
        if not self.schema.types:
            hint = "there is no schema, or it declares no types; `kbd graph init` writes one"
        elif entity.type in KNOWLEDGE_TYPES:
            hint = "knowledge files hold these entries, and they are read-only here; or declare the type"
        else:
            hint = near_or(entity.type, self.schema.type_names, "declare it")
        yield Problem("type_unknown", label(entity), what, hint)

    def _forbidden(self, entity: Entity, rule: TypeRule) -> Iterator[tuple[Problem, str]]:
        place = f"types.{rule.name}.forbidden_properties"
        found = forbidden_names(entity.properties, rule.forbidden)
        if rule.forbidden:
            self.tally.count(place, fits=not found)
        for path in found:
            hint = "store it elsewhere and keep a reference, such as `secret_ref: keychain:name`"
            yield Problem("property_forbidden", label(entity), f"'{path}' is forbidden", hint), path

    def _required(self, entity: Entity, rule: TypeRule) -> Iterator[Problem]:
        for name in rule.required:
            fits = not is_absent(entity.properties.get(name))
            if not self.tally.count(f"types.{rule.name}.required.{name}", fits=fits):
                yield Problem(
                    "property_missing", label(entity), f"'{name}' is required and has no value", "give it one"
                )

    def _unknown_properties(self, entity: Entity, rule: TypeRule, names: Collection[str]) -> Iterator[Problem]:
        if rule.closed:
            unknown = [name for name in sorted(names) if name not in rule.known]
            self.tally.count(f"types.{rule.name}.properties", fits=not unknown)
            for name in unknown:
                what = f"{rule.name} has no property '{name}'"
                hint = near_or(name, rule.known, "declare it, or set `open: true`")
                yield Problem("property_unknown", label(entity), what, hint)

    def _values(self, entity: Entity, rule: TypeRule, names: Collection[str]) -> Iterator[Problem]:
        for name in sorted(names):
            value = entity.properties.get(name)
            if name in rule.properties and value is not None:
                yield from self.value(rule.properties[name], value, label(entity))

    def value(self, rule: PropertyRule, value: Any, where: str) -> Iterator[Problem]:
        """Yield what is wrong with a value that is there, the entities it points to included."""
        for check in checks_of(rule, value):
            if not self.tally.count(check.where, fits=not check.what):
                yield Problem("value_invalid", where, f"'{rule.name}': {check.what}", check.hint)
        for ident in _ids(rule, value):
            yield from self._target(rule, ident, where)

    def _target(self, rule: PropertyRule, ident: str, where: str) -> Iterator[Problem]:
        target = self.view.entity(ident)
        ref = rule if rule.kind == "ref" or rule.items is None else rule.items
        if not self.tally.count(f"{ref.where}.ref", fits=target is not None and self.is_one_of(target, ref.targets)):
            if target is None:
                what = f"'{rule.name}' points to {shown(ident)}, which does not exist"
                yield Problem("ref_dangling", where, what, "create it first, or mend the id")
            else:
                what = f"'{rule.name}' points to {label(target)}, and asks for {' or '.join(ref.targets)}"
                yield Problem("ref_type", where, what, "give the id of an entity of that type")

    def is_one_of(self, entity: Entity, types: Collection[str]) -> bool:
        """Tell whether an entity is of one of the canonical types; of no types given it is."""
        return not types or self.schema.canonical_type(entity.type) in types

    def _unique(self, entity: Entity, rule: TypeRule, names: Set[str]) -> Iterator[Problem]:
        for group in rule.unique:
            values = [entity.properties.get(name) for name in group]
            if names.isdisjoint(group) or any(map(is_absent, values)):
                continue
            others = [one for one in self._holders(group[0], values[0]) if self._same(one, entity, rule, group)]
            if not self.tally.count(f"types.{rule.name}.unique.{'+'.join(group)}", fits=not others):
                what = f"{' and '.join(group)} {', '.join(map(shown, values))} belongs to {others[0].id} already"
                yield Problem("not_unique", label(entity), what, "update that one, or give another value")

    def _holders(self, name: str, value: Any) -> Iterator[Entity]:
        for key in value_keys(value)[:1]:
            for ident in self.view.holders(name, key):
                found = self.view.entity(ident)
                if found is not None:
                    yield found

    def _same(self, other: Entity, entity: Entity, rule: TypeRule, group: tuple[str, ...]) -> bool:
        if other.id == entity.id or self.schema.canonical_type(other.type) != rule.name:
            return False
        return all(value_key(other.properties.get(one)) == value_key(entity.properties.get(one)) for one in group)


def _ids(rule: PropertyRule, value: Any) -> Iterator[str]:
    if not rule.points:
        return
    values = value if isinstance(value, list) else [value]
    yield from (one for one in values if isinstance(one, str))
