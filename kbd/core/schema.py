"""What a graph may hold: types, relations and constraints as values, with every name already resolved.

`kbd.core.schema_reading` makes a schema from text and refuses one that says anything the engine does not enforce.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbd.core.constraints import Expression
from kbd.core.normal import normalise

ANY_TYPE = "Entity"
KNOWLEDGE_TYPES = ("Guideline", "Pitfall", "Decision", "Model", "Process")
FILE_TYPE = "File"
CARDINALITIES = ("one_to_one", "one_to_many", "many_to_one", "many_to_many")


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """What the values of a property must be.

    Attributes:
        name: of the property.
        where: its place in the schema, such as `types.Task.properties.due`.
        kind: one of `schema_properties.KINDS`.
        targets: of a ref, the types it may point to; empty for any.
        items: of a list, the rule of its items.
        enum: the values allowed, None for all; `enum_where` is the place that says so.
        aliases: other words for values of the enum.
        pattern: a regular expression that text must contain (anchored by its author), as in JSON Schema.
        minimum, maximum: of numbers and times the value, of text its length, of lists the number of items.
        default: fills the property at creation if `has_default`.
    """

    name: str
    where: str
    kind: str = "any"
    targets: tuple[str, ...] = ()
    items: PropertyRule | None = None
    enum: tuple[Any, ...] | None = None
    enum_where: str = ""
    aliases: Mapping[str, Any] = field(default_factory=dict)
    pattern: str | None = None
    minimum: float | str | None = None
    maximum: float | str | None = None
    default: Any = None
    has_default: bool = False
    optional: bool = False

    @property
    def points(self) -> bool:
        """The values, or the items of the list, are ids of entities."""
        return self.kind == "ref" or (self.items is not None and self.items.points)


@dataclass(frozen=True, slots=True)
class TypeRule:
    """What entities of a type must be.

    Attributes:
        closed: properties that the schema does not know are refused.
        properties: the rules of its properties, by name.
        known: every property that the schema names for it.
        required: properties that must have a value.
        forbidden: normalised names that may stand nowhere, not even nested (`plain_name`).
        unique: groups of properties whose values together belong to one entity only.
        aliases: other names of the type.
    """

    name: str
    closed: bool = False
    properties: Mapping[str, PropertyRule] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)
    unique: tuple[tuple[str, ...], ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationRule:
    """What relations of a name must be.

    Attributes:
        from_types, to_types: canonical types of the ends; empty for any.
        cardinality: one of `CARDINALITIES`; "" if none is declared.
        minimum, maximum: how many of them an entity of `from_types` must and may have; None for no limit.
        acyclic: they form no cycle by themselves; `acyclic_with`: nor together with these.
        inverse: the name of the relation read backwards.
        symmetric: it holds both ways.
        properties: rules of the relation's own properties; `closed` if others are refused.
        required: those of them that must have a value.
    """

    name: str
    from_types: tuple[str, ...] = ()
    to_types: tuple[str, ...] = ()
    cardinality: str = ""
    minimum: int | None = None
    maximum: int | None = None
    acyclic: bool = False
    acyclic_with: tuple[str, ...] = ()
    inverse: str = ""
    symmetric: bool = False
    properties: Mapping[str, PropertyRule] = field(default_factory=dict)
    closed: bool = False
    required: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def one_target(self) -> bool:
        """A source has at most one target."""
        return self.cardinality in ("one_to_one", "many_to_one")

    @property
    def one_source(self) -> bool:
        """A target has at most one source."""
        return self.cardinality in ("one_to_one", "one_to_many")


@dataclass(frozen=True, slots=True)
class Transitions:
    """Which values of a property may follow which; values that no step names may neither be left nor reached."""

    name: str
    allowed: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule over entities of a type.

    Attributes:
        where: its place in the schema.
        text: as written.
        message: what its author wants to be said, "" for the text.
        warns: it warns and does not refuse.
    """

    where: str
    type: str
    text: str
    body: Expression | Transitions
    message: str = ""
    warns: bool = False


@dataclass(frozen=True, slots=True)
class Forms:
    """The names under which facts of a relation are written: as they stand, and with their ends swapped."""

    forward: frozenset[str]
    backward: frozenset[str]


@dataclass(frozen=True, slots=True)
class AcyclicGroup:
    """Relations that together may form no cycle; `where` is the place that says so."""

    where: str
    names: frozenset[str]
    forms: Forms


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema without faults. The empty one declares nothing, so it accepts nothing.

    Attributes:
        types, relations: by canonical name.
        type_names: every name of a type to its canonical one.
        relation_names: every name of a relation to its canonical one, and whether the ends are swapped.
        indexed: properties that are looked up by value: refs and unique ones.
        ref_names: properties that are refs.
    """

    types: Mapping[str, TypeRule] = field(default_factory=dict)
    relations: Mapping[str, RelationRule] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    open_types: bool = False
    open_relations: bool = False
    type_names: Mapping[str, str] = field(default_factory=dict)
    relation_names: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    forms: Mapping[str, Forms] = field(default_factory=dict)
    groups: tuple[AcyclicGroup, ...] = ()
    indexed: frozenset[str] = frozenset()
    ref_names: frozenset[str] = frozenset()

    def type_rule(self, name: str) -> TypeRule | None:
        """Return the rule of a type by any of its names."""
        return self.types.get(self.type_names.get(name, name))

    def canonical_type(self, name: str) -> str:
        """Return the one name of a type."""
        return self.type_names.get(name, name)

    def spellings(self, name: str) -> tuple[str, ...]:
        """Return all names of a type."""
        rule = self.type_rule(name)
        return (name,) if rule is None else (rule.name, *rule.aliases)

    def relation_rule(self, name: str) -> tuple[RelationRule | None, bool]:
        """Return the rule of a relation by any of its names, and whether that name swaps the ends."""
        canonical, swapped = self.relation_names.get(name, (name, False))
        return self.relations.get(canonical), swapped

    def forms_of(self, name: str) -> Forms:
        """Return the names under which facts of a relation are written, by its canonical or any undeclared name."""
        return self.forms.get(name) or Forms(frozenset({name}), frozenset())


def names_entities(rule: TypeRule, name: str) -> bool:
    """Tell whether a property that is said to `must exist` names entities by their ids.

    It does if it is a ref, and also if the schema says nothing else of it: neither a type of values nor an enum, and
    not that it is required, as titles are.
    """
    declared = rule.properties.get(name)
    if declared is None:
        return name not in rule.required
    return declared.points or (declared.kind == "any" and declared.enum is None and name not in rule.required)


def plain_name(name: str) -> str:
    """Return a property's name without case and separators: `API-Key`, `api_key` and `apiKey` are one."""
    return normalise(name).replace("_", "").replace("-", "").replace(" ", "").replace(".", "")


def near(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the nearest known name, else the known names, else ""."""
    names = sorted(set(known))
    folded = {one.lower(): one for one in reversed(names)}
    close = difflib.get_close_matches(name.lower(), list(folded), 1, 0.6)
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    return f"known: {', '.join(names[:12])}{' …' if len(names) > 12 else ''}" if names else ""


def near_or(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the same, and what else can be done; only that if no name is known."""
    found = near(name, known)
    return f"{found}{'' if found.endswith('?') else ';'} or {otherwise}" if found else otherwise
