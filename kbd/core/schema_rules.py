"""The constraints of a schema: expressions, transitions of a property, and rules that other parts enforce."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kbd.core.constraints import Expression, RuleFault, names_in, parse_rule, relations_in
from kbd.core.schema import Constraint, RelationRule, Transitions, TypeRule, near, plain_name
from kbd.core.schema_text import SchemaText

_FORBIDDEN = re.compile(r"forbidden_properties\s*:\s*\[(.*)\]", re.IGNORECASE | re.DOTALL)
_TRANSITIONS = re.compile(r"([\w-]+)\s+transitions?\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
_LEADING_TYPE = re.compile(r"([^\W\d][\w-]*)\s*:\s*(?=[\w-]+\s+transitions?\s*:|forbidden_properties\s*:)")
ATTRIBUTES = frozenset({"id", "type", "created", "updated"})


@dataclass(frozen=True, slots=True)
class DraftConstraint:
    """A constraint as written; `type` and `relation` are "" where the text has to say it."""

    where: str
    rule: str
    type: str = ""
    relation: str = ""
    message: str = ""
    warns: bool = False


@dataclass(slots=True)
class Rules:
    """What the constraints come to: some of them are rules of a type or a relation in other words."""

    types: dict[str, TypeRule]
    relations: dict[str, RelationRule]
    constraints: list[Constraint] = field(default_factory=list)
    acyclic_places: dict[str, str] = field(default_factory=dict)


def link_constraints(
    drafts: Iterable[DraftConstraint],
    types: Mapping[str, TypeRule],
    relations: Mapping[str, RelationRule],
    text: SchemaText,
) -> Rules:
    """Return the constraints, and types and relations with what constraints add to them."""
    rules = Rules(dict(types), dict(relations))
    for draft in drafts:
        try:
            if draft.relation:
                _add_relation_rule(draft, rules)
            else:
                _add_type_rule(draft, rules)
        except RuleFault as fault:
            hint = "see the grammar in the README: `Event: end >= start if end exists`"
            text.fault("schema_rule", draft.where, str(fault), hint)
    return rules


def _add_relation_rule(draft: DraftConstraint, rules: Rules) -> None:
    rule = rules.relations.get(draft.relation)
    if rule is None:
        raise RuleFault(f"unknown relation '{draft.relation}' ({near(draft.relation, rules.relations)})")
    if draft.rule.lower() != "acyclic" or draft.type or draft.warns:
        raise RuleFault("of a relation a constraint can only say `acyclic`, which blocks")
    rules.relations[rule.name] = replace(rule, acyclic=True)
    if not rule.acyclic:
        rules.acyclic_places[rule.name] = draft.where


def _add_type_rule(draft: DraftConstraint, rules: Rules) -> None:
    if not draft.rule:
        raise RuleFault("says nothing; it needs a `rule`")
    body, type_ = draft.rule, draft.type
    leading = _LEADING_TYPE.match(body)
    if leading is not None and not type_:
        body, type_ = body[leading.end() :], leading[1]
    forbidden, transitions = _FORBIDDEN.fullmatch(body.strip()), _TRANSITIONS.fullmatch(body.strip())
    if forbidden is not None:
        _forbid(_known_type(type_, rules), forbidden[1], draft, rules)
        return
    if transitions is not None:
        rule = _known_type(type_, rules)
        steps = Transitions(transitions[1], _steps(transitions[2], rule, transitions[1]))
        rules.constraints.append(Constraint(draft.where, rule.name, draft.rule, steps, draft.message, draft.warns))
        return
    rule, expression = _expression(body, type_, rules)
    rules.constraints.append(Constraint(draft.where, rule.name, draft.rule, expression, draft.message, draft.warns))


def _known_type(name: str, rules: Rules) -> TypeRule:
    rule = rules.types.get(name) or next((one for one in rules.types.values() if name in one.aliases), None)
    if rule is None:
        what = f"unknown type '{name}' ({near(name, rules.types)})" if name else "names no type; write `Type: …`"
        raise RuleFault(what)
    return rule


def _forbid(rule: TypeRule, names: str, draft: DraftConstraint, rules: Rules) -> None:
    if draft.warns:
        raise RuleFault("forbidden properties always block")
    given = [name.strip().strip("'\"") for name in names.split(",") if name.strip()]
    rules.types[rule.name] = replace(rule, forbidden={**rule.forbidden, **{plain_name(name): name for name in given}})


def _steps(text: str, rule: TypeRule, name: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of `open -> in_progress -> (done|blocked) -> done`; several chains are separated by `,`."""
    pairs: set[tuple[str, str]] = set()
    for chain in re.split(r"[;,]", text):
        groups = [re.split(r"[|/]", part.strip().strip("()")) for part in re.split(r"->|→", chain)]
        words = [[word.strip() for word in group] for group in groups]
        if len(words) < 2 or not all(word for group in words for word in group):
            raise RuleFault("transitions are written as `open -> done`")
        pairs |= {(a, b) for before, after in pairwise(words) for a in before for b in after}
    enum = rule.properties[name].enum if name in rule.properties else None
    for word in sorted({word for pair in pairs for word in pair}):
        if enum is not None and word not in enum:
            raise RuleFault(f"'{word}' is no value of {name} ({near(word, map(str, enum))})")
    return frozenset(pairs)


def _expression(body: str, type_: str, rules: Rules) -> tuple[TypeRule, Expression]:
    names = {name for one in rules.types.values() for name in (one.name, *one.aliases)}
    first = parse_rule(body, names)
    if first.on_created:
        raise RuleFault("`Created … has` belongs in the contract of a skill")
    if type_ and first.type and _known_type(first.type, rules) is not _known_type(type_, rules):
        raise RuleFault(f"is about {type_} and {first.type} at once")
    rule = _known_type(type_ or first.type, rules)
    expression = parse_rule(body, names, rule.known).expression
    check_names(expression, rule, rules.relations, rules.types)
    return rule, expression


def check_names(
    expression: Expression, rule: TypeRule, relations: Mapping[str, RelationRule], types: Collection[str]
) -> None:
    """Check that an expression asks for nothing the schema does not know; raises RuleFault."""
    for name in sorted(names_in(expression)):
        if rule.closed and name not in rule.known and name not in ATTRIBUTES:
            raise RuleFault(f"unknown property '{name}' of {rule.name} ({near(name, rule.known)})")
    known = {name for one in relations.values() for name in (one.name, *one.aliases, one.inverse) if name}
    for test in relations_in(expression):
        if test.rel not in known:
            raise RuleFault(f"unknown relation '{test.rel}' ({near(test.rel, known)})")
        if test.type and test.type not in types:
            raise RuleFault(f"unknown type '{test.type}' ({near(test.type, types)})")
