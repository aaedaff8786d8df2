"""What a schema declares, how each of it is enforced, and how many facts it was checked against.

The audit that the public skill fails: a constraint that nothing checks is worse than none, because it is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbd.core.entity_checks import Tally
from kbd.core.schema import PropertyRule, RelationRule, Schema, Transitions, TypeRule

# When a violation is refused: before its step is written, or when all steps of a plan are done. What is brought about
# in writing refuses nothing.
AT_WRITE = "at the write"
AT_END = "at the end"
IN_WRITING = "in writing"
AT_CHANGE = "at an update"
WARNS = "by a warning"


@dataclass(frozen=True, slots=True)
class Row:
    """One declared constraint.

    Attributes:
        where: its place in the schema.
        says: what it demands, in short.
        how: how it is enforced.
        checked: how many facts it was checked against; None for what changes what is written and refuses nothing.
        violated: how many of them break it.
    """

    where: str
    says: str
    how: str
    checked: int | None
    violated: int = 0

    @property
    def is_idle(self) -> bool:
        """It has checked nothing so far."""
        return self.checked == 0


def coverage(schema: Schema, tally: Tally) -> list[Row]:
    """Return a row for each constraint that the schema declares, in its order."""
    rows: list[Row] = []
    for where, says, how in _declared(schema):
        checked = None if how == IN_WRITING else tally.checked[where]
        rows.append(Row(where, says, how, checked, tally.violated[where]))
    return rows


def openings(schema: Schema) -> list[str]:
    """Return what the schema leaves unchecked, on purpose."""
    opened = [
        f"types.{one.name}: open, properties without a rule are not checked"
        for one in schema.types.values()
        if not one.closed
    ]
    if schema.open_types:
        opened.append("types: open, types without a rule are not checked")
    if schema.open_relations:
        opened.append("relations: open, relations without a rule are not checked")
    return opened


def _declared(schema: Schema) -> Iterator[tuple[str, str, str]]:
    for rule in schema.types.values():
        yield from _of_type(rule)
    yield "relations", "both ends exist", AT_WRITE
    for relation in schema.relations.values():
        yield from _of_relation(relation)
    for group in schema.groups:
        yield group.where, f"no cycle over {', '.join(sorted(group.names))}", AT_WRITE
    for one in schema.constraints:
        how = WARNS if one.warns else AT_CHANGE if isinstance(one.body, Transitions) else AT_END
        yield one.where, one.text, how


def _of_type(rule: TypeRule) -> Iterator[tuple[str, str, str]]:
    where = f"types.{rule.name}"
    if rule.aliases:
        yield f"{where}.aliases", ", ".join(rule.aliases), IN_WRITING
    for name in rule.required:
        yield f"{where}.required.{name}", f"{name} has a value", AT_WRITE
    if rule.forbidden:
        yield f"{where}.forbidden_properties", f"never {', '.join(rule.forbidden.values())}, at any depth", AT_WRITE
    if rule.closed:
        yield f"{where}.properties", "no other properties", AT_WRITE
    for one in rule.properties.values():
        yield from _of_property(one)
    for group in rule.unique:
        yield f"{where}.unique.{'+'.join(group)}", f"{' and '.join(group)} belong to one entity", AT_WRITE


def _of_property(rule: PropertyRule) -> Iterator[tuple[str, str, str]]:
    if rule.kind not in ("any", "ref"):
        yield rule.where, rule.kind, AT_WRITE
    if rule.kind == "ref":
        yield f"{rule.where}.ref", f"exists{_of_types(rule.targets)}", AT_WRITE
    if rule.enum is not None:
        yield rule.enum_where, ", ".join(map(str, rule.enum)), AT_WRITE
    if rule.pattern is not None:
        yield f"{rule.where}.pattern", rule.pattern, AT_WRITE
    for key, limit in (("min", rule.minimum), ("max", rule.maximum)):
        if limit is not None:
            yield f"{rule.where}.{key}", str(limit), AT_WRITE
    if rule.aliases:
        yield (
            f"{rule.where}.aliases",
            ", ".join(f"{word} is {value}" for word, value in rule.aliases.items()),
            IN_WRITING,
        )
    if rule.has_default:
        yield f"{rule.where}.default", str(rule.default), IN_WRITING
    if rule.items is not None:
        yield from _of_property(rule.items)


def _of_types(types: tuple[str, ...]) -> str:
    return f", of type {' or '.join(types)}" if types else ""


def _of_relation(rule: RelationRule) -> Iterator[tuple[str, str, str]]:
    where = f"relations.{rule.name}"
    limited = rule.cardinality != "many_to_many"
    said = (
        ("from_types", ", ".join(rule.from_types), AT_WRITE),
        ("to_types", ", ".join(rule.to_types), AT_WRITE),
        ("cardinality", rule.cardinality, AT_WRITE if limited else IN_WRITING),
        ("required", f"at least {rule.minimum}" if rule.minimum else "", AT_END),
        ("max", f"at most {rule.maximum}" if rule.maximum is not None else "", AT_WRITE),
        ("inverse", rule.inverse, IN_WRITING),
        ("symmetric", "holds both ways" if rule.symmetric else "", IN_WRITING),
        ("aliases", ", ".join(rule.aliases), IN_WRITING),
        ("properties", "no other properties" if rule.closed else "", AT_WRITE),
    )
    yield from ((f"{where}.{key}", says, how) for key, says, how in said if says)
    for name in rule.required:
        yield f"{where}.properties.{name}.required", f"{name} has a value", AT_WRITE
    for one in rule.properties.values():
        yield from _of_property(one)
