"""The contract of a skill with a graph: what it reads and writes, and what must hold before and after.

It stands in the front matter of `SKILL.md` under `ontology`, as the public `ontology` skill suggests; there nothing
enforces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kbd.core import yamltext
from kbd.core.constraint_checks import ConstraintChecks
from kbd.core.constraint_eval import holds
from kbd.core.constraints import Rule, RuleFault, parse_rule
from kbd.core.entity_checks import Tally, label
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import Entity
from kbd.core.schema import ANY_TYPE, FILE_TYPE, KNOWLEDGE_TYPES, Schema, near
from kbd.core.schema_rules import check_names
from kbd.core.schema_text import SchemaText
from kbd.core.yamltext import Listing, Node, Scalar, compose
from kbd.errors import FileUnreadable

KEYS = ("reads", "writes", "preconditions", "postconditions")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a contract: its text as written, and the rule that it says, of a canonical type."""

    text: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Contract:
    """What a skill may do in a graph.

    Attributes:
        skill: its name.
        reads, writes: canonical types; what it writes it may read as well.
    """

    skill: str
    reads: frozenset[str]
    writes: frozenset[str]
    preconditions: tuple[Condition, ...] = ()
    postconditions: tuple[Condition, ...] = ()

    def may_read(self, type_: str) -> bool:
        """Tell whether it may see entities of a canonical type."""
        return ANY_TYPE in self.reads | self.writes or type_ in self.reads | self.writes

    def may_write(self, type_: str) -> bool:
        """Tell whether it may change entities of a canonical type."""
        return ANY_TYPE in self.writes or type_ in self.writes


@dataclass(frozen=True, slots=True)
class ContractReading:
    """The contract, None if it has faults; and the faults."""

    contract: Contract | None
    problems: tuple[Problem, ...]


def read_contract(data: bytes, name: str, schema: Schema) -> ContractReading:
    """Return the contract in the front matter of a skill's file, checked against the schema. Never raises."""
    text = SchemaText(name)
    front = _front_matter(data)
    try:
        root = compose(front, name).root if front else None
    except FileUnreadable as error:
        return ContractReading(None, (Problem("contract_unreadable", error.where or name, error.what, error.hint),))
    own = root.own() if isinstance(root, yamltext.Mapping) else {}
    if "ontology" not in own:
        hint = "begin the file with `---`, `ontology:` and its reads and writes, `---`"
        return ContractReading(None, (Problem("contract_unreadable", name, "no `ontology` in its front matter", hint),))
    skill = own["name"][1] if "name" in own else None
    contract = _contract(own["ontology"][1], skill.text if isinstance(skill, Scalar) else name, schema, text)
    return ContractReading(None if text.problems else contract, tuple(text.problems))


def _front_matter(data: bytes) -> bytes:
    """Return the lines between the first two `---`; before them as many blank lines, so that numbers of lines stay."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    marks = [at for at, line in enumerate(lines) if line.rstrip() == b"---"]
    if len(marks) < 2 or any(line.strip() for line in lines[: marks[0]]):
        return b""
    return b"\n" * (marks[0] + 1) + b"\n".join(lines[marks[0] + 1 : marks[1]])


def _contract(node: Node, skill: str, schema: Schema, text: SchemaText) -> Contract:
    given = text.mapping(node, "ontology", KEYS)
    types = {
        key: frozenset(_types(text.names(given.get(key), f"ontology.{key}"), f"ontology.{key}", schema, text))
        for key in ("reads", "writes")
    }
    conditions = {
        key: tuple(_conditions(given.get(key), f"ontology.{key}", schema, text))
        for key in ("preconditions", "postconditions")
    }
    return Contract(skill, types["reads"], types["writes"], conditions["preconditions"], conditions["postconditions"])


def _types(names: Iterable[str], where: str, schema: Schema, text: SchemaText) -> Iterator[str]:
    known = {*schema.type_names, *KNOWLEDGE_TYPES, FILE_TYPE, ANY_TYPE}
    for name in names:
        if name not in known and not schema.open_types:
            text.fault("contract_type", where, f"the schema has no type '{name}'", near(name, known))
        yield schema.canonical_type(name)


def _conditions(node: Node | None, where: str, schema: Schema, text: SchemaText) -> Iterator[Condition]:
    items = node.items if isinstance(node, Listing) else () if node is None else (node,)
    for item in items:
        written = _sentence(item, where, text)
        try:
            yield Condition(written, _rule(written, schema, after="post" in where))
        except RuleFault as fault:
            hint = "write `Task.assignee must exist`, `Created Task has status=open` or `Task: due exists`"
            text.fault("contract_rule", where, f"{written!r} {fault}", hint, item.line)


def _sentence(item: Node, where: str, text: SchemaText) -> str:
    if isinstance(item, yamltext.Mapping) and len(item.pairs) == 1 and isinstance(item.pairs[0][0], Scalar):
        # `- Task: due exists` is a mapping to YAML and a sentence to its author.
        return f"{item.pairs[0][0].text}: {text.words(item.pairs[0][1], where)}"
    return text.words(item, where)


def _rule(written: str, schema: Schema, *, after: bool) -> Rule:
    names = {*schema.type_names}
    first = parse_rule(written, names)
    type_ = schema.type_rule(first.type)
    if type_ is None:
        raise RuleFault(f"is about no type of the schema ({near(first.type, names)})")
    if first.on_created and not after:
        raise RuleFault("can only hold afterwards")
    rule = parse_rule(written, names, type_.known)
    check_names(rule.expression, type_, schema.relations, schema.types)
    return Rule(type_.name, rule.expression, rule.on_created)


def write_problem(contract: Contract, schema: Schema, entity: Entity) -> Problem | None:
    """Return the refusal of a change of an entity that the skill did not declare to write."""
    if contract.may_write(schema.canonical_type(entity.type)):
        return None
    return _undeclared(contract, entity, "write", contract.writes)


def read_problem(contract: Contract, schema: Schema, entity: Entity) -> Problem | None:
    """Return the refusal of a look at an entity that the skill did not declare to read."""
    if contract.may_read(schema.canonical_type(entity.type)):
        return None
    return _undeclared(contract, entity, "read", contract.reads | contract.writes)


def _undeclared(contract: Contract, entity: Entity, verb: str, types: frozenset[str]) -> Problem:
    what = f"the contract of {contract.skill} does not {verb} {entity.type}"
    hint = f"it {verb}s: {', '.join(sorted(types)) or 'nothing'}; declare the type in its front matter"
    return Problem(f"contract_{verb}", label(entity), what, hint)


def condition_problems(
    conditions: Iterable[Condition], entity: Entity, view: View, schema: Schema, *, created: bool
) -> Iterator[Problem]:
    """Yield the conditions that an entity does not meet in a state of the graph. Missing values meet none."""
    around = ConstraintChecks(view, schema, Tally())
    kind = schema.canonical_type(entity.type)
    for one in conditions:
        if one.rule.type != kind or (one.rule.on_created and not created):
            continue
        if holds(one.rule.expression, entity, around) is not True:
            yield Problem("contract_condition", label(entity), f"does not meet '{one.text}'", "change what is written")


def as_rows(contract: Contract) -> Mapping[str, list[str]]:
    """Return the contract for display."""
    return {
        "reads": sorted(contract.reads),
        "writes": sorted(contract.writes),
        "preconditions": [one.text for one in contract.preconditions],
        "postconditions": [one.text for one in contract.postconditions],
    }
