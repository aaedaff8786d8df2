"""The second phase of reading a schema: names are resolved, and what the parts say of each other is checked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kbd.core.constraints import musts_in
from kbd.core.patterns import PatternFault, compiled
from kbd.core.schema import (
    ANY_TYPE,
    FILE_TYPE,
    KNOWLEDGE_TYPES,
    AcyclicGroup,
    Constraint,
    Forms,
    PropertyRule,
    RelationRule,
    Schema,
    Transitions,
    TypeRule,
    names_entities,
    near,
)
from kbd.core.schema_rules import DraftConstraint, link_constraints
from kbd.core.schema_text import SchemaText
from kbd.core.value_checks import canonical_value, checks_of

_TYPING_ERROR = 0.8  # so alike that one name is meant for the other
_ANY = frozenset({ANY_TYPE, "any", "*"})


@dataclass(frozen=True, slots=True)
class Drafts:
    """What the text of a schema says, its names as written."""

    types: dict[str, TypeRule]
    relations: dict[str, RelationRule]
    constraints: list[DraftConstraint]
    open_types: bool
    open_relations: bool


def link(drafts: Drafts, text: SchemaText) -> Schema:
    """Return the schema; what does not fit together becomes a fault of `text`, and the schema is then of no use."""
    linker = _Linker(drafts, text)
    types = {name: linker.type(rule) for name, rule in drafts.types.items()}
    relations = {name: linker.relation(rule) for name, rule in drafts.relations.items()}
    # A type that only relations and refs name is declared by that: it may exist, and nothing is asked of it.
    types.update(linker.implied)
    linker.type_names.update({name: name for name in linker.implied})
    rules = link_constraints(drafts.constraints, types, relations, text)
    relations = linker.inverses(rules.relations)
    forms = {name: _forms(rule, relations) for name, rule in relations.items()}
    ref_names = frozenset(_ref_names(rules.types, rules.constraints))
    return Schema(
        rules.types,
        relations,
        _described(rules.constraints, linker.type_names),
        drafts.open_types,
        drafts.open_relations,
        linker.type_names,
        linker.relation_names,
        forms,
        tuple(_groups(relations, forms, rules.acyclic_places)),
        frozenset(_unique_names(rules.types.values())) | ref_names,
        ref_names,
    )


def _described(constraints: Iterable[Constraint], type_names: Mapping[str, str]) -> tuple[Constraint, ...]:
    return tuple(replace(one, type=type_names.get(one.type, one.type)) for one in constraints)


class _Linker:
    def __init__(self, drafts: Drafts, text: SchemaText) -> None:
        self._drafts, self._text = drafts, text
        self.type_names = self._names(drafts.types.values(), "types")
        self.relation_names = {
            name: (canonical, False) for name, canonical in self._names(drafts.relations.values(), "relations").items()
        }
        self.implied: dict[str, TypeRule] = {}
        self._known_types = {*self.type_names, *KNOWLEDGE_TYPES, FILE_TYPE, *_ANY}

    def _names(self, rules: Iterable[TypeRule | RelationRule], under: str) -> dict[str, str]:
        names: dict[str, str] = {}
        for rule in rules:
            for name in (rule.name, *rule.aliases):
                if names.setdefault(name, rule.name) != rule.name:
                    where = f"{under}.{rule.name}"
                    what = f"'{name}' is a name of {names[name]} as well"
                    self._text.fault("schema_name", where, what, "a name belongs to one of them")
        return names

    def _type_names(self, names: Iterable[str], where: str) -> tuple[str, ...]:
        given = tuple(names)
        for name in given:
            if name in self._known_types or self._drafts.open_types:
                continue
            if difflib.get_close_matches(name.lower(), map(str.lower, self._known_types), 1, _TYPING_ERROR):
                self._text.fault("schema_name", where, f"unknown type '{name}'", near(name, self._known_types))
            self.implied[name] = TypeRule(name)
        if _ANY.intersection(given):
            return ()
        return tuple(dict.fromkeys(self.type_names.get(name, name) for name in given))

    def type(self, rule: TypeRule) -> TypeRule:
        where = f"types.{rule.name}"
        properties = {name: self._property(one) for name, one in rule.properties.items()}
        for name in rule.required:
            if name in properties and properties[name].optional:
                self._text.fault("schema_value", where, f"'{name}' is required and optional (`?`)", "take one away")
        for name in rule.known:
            if name in rule.forbidden.values():
                self._text.fault("schema_value", where, f"'{name}' is declared and forbidden", "take one away")
        return replace(rule, properties=properties)

    def _property(self, rule: PropertyRule) -> PropertyRule:
        items = self._property(rule.items) if rule.items else None
        rule = replace(rule, items=items, targets=self._type_names(rule.targets, rule.where))
        if rule.pattern is not None:
            try:
                compiled(rule.pattern)
            except PatternFault as fault:
                hint = "write it without lookaheads, flags and references to groups"
                self._text.fault("schema_value", f"{rule.where}.pattern", str(fault), hint)
                return rule
        self._check_limits(rule)
        self._check_words(rule)
        return rule

    def _check_limits(self, rule: PropertyRule) -> None:
        for key, limit in (("min", rule.minimum), ("max", rule.maximum)):
            if isinstance(limit, str) and any(check.what for check in checks_of(_bare(rule), limit)):
                self._text.fault("schema_value", f"{rule.where}.{key}", f"is no {rule.kind}", "mend it")
        low, high = rule.minimum, rule.maximum
        numbers = isinstance(low, int | float) and isinstance(high, int | float) and low > high
        if numbers or (isinstance(low, str) and isinstance(high, str) and low > high):
            self._text.fault("schema_value", rule.where, f"min {low} is over max {high}", "swap them")

    def _check_words(self, rule: PropertyRule) -> None:
        """Check that aliases stand for allowed values, and that the default is one."""
        for word, value in rule.aliases.items():
            if rule.enum is not None and value not in rule.enum:
                what = f"the alias '{word}' stands for '{value}', which the enum does not have"
                self._text.fault("schema_value", rule.where, what, near(str(value), map(str, rule.enum)))
        if rule.has_default:
            found = next((one for one in checks_of(rule, canonical_value(rule, rule.default)) if one.what), None)
            if found:
                self._text.fault("schema_value", f"{rule.where}", f"its default is wrong: {found.what}", found.hint)

    def relation(self, rule: RelationRule) -> RelationRule:
        where = f"relations.{rule.name}"
        linked = replace(
            rule,
            from_types=self._type_names(rule.from_types, f"{where}.from_types"),
            to_types=self._type_names(rule.to_types, f"{where}.to_types"),
            acyclic_with=tuple(self._relation_names(rule.acyclic_with, f"{where}.acyclic_with")),
            properties={name: self._property(one) for name, one in rule.properties.items()},
        )
        if linked.minimum is not None and linked.maximum is not None and linked.minimum > linked.maximum:
            self._text.fault("schema_value", where, "min is over max", "swap them")
        if linked.minimum and not linked.from_types:
            self._text.fault("schema_value", where, "a minimum needs `from_types`", "say of which types it is asked")
        for what in _contradictions(linked):
            self._text.fault("schema_value", where, what, "take one away")
        return linked

    def _relation_names(self, names: Iterable[str], where: str) -> Iterator[str]:
        for name in names:
            if name not in self.relation_names:
                what = f"unknown relation '{name}'"
                self._text.fault("schema_name", where, what, near(name, self.relation_names))
            yield self.relation_names.get(name, (name, False))[0]

    def inverses(self, relations: Mapping[str, RelationRule]) -> dict[str, RelationRule]:
        """Return the relations with both of a pair of inverses naming each other."""
        paired = dict(relations)
        for rule in relations.values():
            if not rule.inverse:
                continue
            where = f"relations.{rule.name}.inverse"
            other = relations.get(self.relation_names.get(rule.inverse, ("", False))[0])
            if other is None:
                if self.relation_names.setdefault(rule.inverse, (rule.name, True)) != (rule.name, True):
                    what = f"'{rule.inverse}' is the inverse of another relation"
                    self._text.fault("schema_name", where, what, "a name belongs to one relation")
                continue
            back = self.relation_names.get(other.inverse, (other.inverse, False))[0]
            if other.name == rule.name or (other.inverse and back != rule.name):
                what = f"'{other.name}' is not its inverse"
                self._text.fault("schema_name", where, what, "use `symmetric`, or let them name each other")
            paired[rule.name] = replace(paired[rule.name], inverse=other.name)
            paired[other.name] = replace(paired[other.name], inverse=rule.name)
        return paired


def _bare(rule: PropertyRule) -> PropertyRule:
    return PropertyRule(rule.name, rule.where, rule.kind)


def _contradictions(rule: RelationRule) -> Iterator[str]:
    if not rule.symmetric:
        return
    if rule.acyclic or rule.acyclic_with:
        yield "a symmetric relation is a cycle by itself, and it is to be acyclic"
    if rule.inverse:
        yield "a symmetric relation is its own inverse"
    if set(rule.from_types) != set(rule.to_types):
        yield "a symmetric relation has the same types at both ends"
    if rule.cardinality in ("one_to_many", "many_to_one"):
        yield f"a symmetric relation cannot be {rule.cardinality}"


def _forms(rule: RelationRule, relations: Mapping[str, RelationRule]) -> Forms:
    forward = frozenset({rule.name, *rule.aliases})
    if rule.symmetric:
        return Forms(forward, forward)
    if not rule.inverse:
        return Forms(forward, frozenset())
    other = relations.get(rule.inverse)
    return Forms(forward, frozenset({rule.inverse, *(other.aliases if other else ())}))


def _groups(
    relations: Mapping[str, RelationRule], forms: Mapping[str, Forms], places: Mapping[str, str]
) -> Iterator[AcyclicGroup]:
    for rule in relations.values():
        sets = [("acyclic", frozenset({rule.name}))] if rule.acyclic else []
        if rule.acyclic_with:
            sets.append(("acyclic_with", frozenset({rule.name, *rule.acyclic_with})))
        for key, names in sets:
            held = [forms[name] for name in names if name in forms]
            forward = frozenset().union(*(one.forward for one in held))
            backward = frozenset().union(*(one.backward for one in held))
            where = f"relations.{rule.name}.{key}"
            yield AcyclicGroup(
                places.get(rule.name, where) if key == "acyclic" else where, names, Forms(forward, backward)
            )


def _unique_names(types: Iterable[TypeRule]) -> Iterator[str]:
    return (group[0] for rule in types for group in rule.unique if group)


def _ref_names(types: Mapping[str, TypeRule], constraints: Iterable[Constraint]) -> Iterator[str]:
    yield from (rule.name for one in types.values() for rule in one.properties.values() if rule.points)
    for constraint in constraints:
        if not isinstance(constraint.body, Transitions):
            yield from (name for name in musts_in(constraint.body) if names_entities(types[constraint.type], name))
