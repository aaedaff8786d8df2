"""From the text of `schema.yaml` to a schema, in two phases: first what it says, then whether the names fit together.

All faults of both phases are reported at once. What kbd does not enforce is a fault, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kbd.core import yamltext
from kbd.core.model import Problem
from kbd.core.schema import CARDINALITIES, PropertyRule, RelationRule, Schema, TypeRule, near, plain_name
from kbd.core.schema_links import Drafts, link
from kbd.core.schema_properties import FORMATS, KINDS, Shape, ShapeFault, parse_shape
from kbd.core.schema_rules import DraftConstraint
from kbd.core.schema_text import SchemaText
from kbd.core.yamltext import Listing, Node, Scalar, compose
from kbd.core.yamlvalues import scalar_value, value_of
from kbd.errors import FileUnreadable

TOP_KEYS = ("types", "relations", "constraints", "version", "description")
TYPE_KEYS = (
    *("required", "forbidden_properties", "properties", "unique", "open", "aliases", "default", "validate"),
    "description",
)
TYPE_SUFFIXES = ("_enum", "_aliases")
PROPERTY_KEYS = (
    *("type", "items", "enum", "aliases", "pattern", "format", "min", "max", "default", "unique", "required"),
    "description",
)
RELATION_KEYS = (
    *("from_types", "to_types", "cardinality", "acyclic", "acyclic_with", "inverse", "symmetric", "required"),
    *("min", "max", "aliases", "properties", "description"),
)
CONSTRAINT_KEYS = ("type", "relation", "rule", "message", "enforcement", "description")


@dataclass(frozen=True, slots=True)
class SchemaReading:
    """The schema, None if it has faults; and the faults."""

    schema: Schema | None
    problems: tuple[Problem, ...]


def read_schema(data: bytes, name: str) -> SchemaReading:
    """Return the schema in the bytes of the file `name`. Never raises: a file that is no YAML is a fault."""
    text = SchemaText(name)
    try:
        root = compose(data, name).root
    except FileUnreadable as error:
        return SchemaReading(None, (Problem("schema_unreadable", error.where or name, error.what, error.hint),))
    if isinstance(root, Scalar | Listing) and not (isinstance(root, Scalar) and root.null):
        hint = "a schema has `types:` and `relations:`; `kbd graph init` writes one"
        return SchemaReading(None, (Problem("schema_unreadable", f"{name}:{root.line}", "no schema", hint),))
    schema = link(_Reader(text).drafts(root), text)
    return SchemaReading(None if text.problems else schema, tuple(text.problems))


class _Reader:
    """The first phase."""

    def __init__(self, text: SchemaText) -> None:
        self._text = text

    def drafts(self, root: Node | None) -> Drafts:
        text = self._text
        top = text.mapping(root, "", TOP_KEYS)
        if "version" in top and value_of(top["version"]) != 1:
            text.fault("schema_value", "version", "is not 1", "kbd knows version 1 only")
        open_types, types = self._declared(top.get("types"), "types")
        open_relations, relations = self._declared(top.get("relations"), "relations")
        drafts = Drafts(
            {name: self._type(name, node) for name, node in types.items()},
            {name: self._relation(name, node) for name, node in relations.items()},
            [],
            open_types=open_types,
            open_relations=open_relations,
        )
        drafts.constraints.extend(self._validations(types))
        drafts.constraints.extend(self._constraints(top.get("constraints")))
        return drafts

    def _declared(self, node: Node | None, where: str) -> tuple[bool, dict[str, Node]]:
        """Return whether undeclared names are open (`types: open`, or `open: true` among them), and the others."""
        if isinstance(node, Scalar) and node.text == "open":
            return True, {}
        named = self._text.named(node, where)
        flag = named.get("open")
        if isinstance(flag, Scalar) and isinstance(scalar_value(flag), bool):
            del named["open"]
            return scalar_value(flag) is True, named
        return False, named

    def _type(self, name: str, node: Node) -> TypeRule:
        text, where = self._text, f"types.{name}"
        given = text.mapping(node, where, TYPE_KEYS, TYPE_SUFFIXES)
        declared = text.named(given.get("properties"), f"{where}.properties")
        required = text.names(given.get("required"), f"{where}.required")
        properties = {one: self._property(one, value, f"{where}.properties") for one, value in declared.items()}
        required += tuple(one for one, value in declared.items() if self._says(value, "required"))
        unique = self._unique(given.get("unique"), f"{where}.unique")
        unique += tuple((one,) for one, value in declared.items() if self._says(value, "unique"))
        self._add_enums(given, properties, where)
        for one, value in text.named(given.get("default"), f"{where}.default").items():
            rule = properties.get(one) or PropertyRule(one, f"{where}.default.{one}")
            properties[one] = replace(rule, default=value_of(value), has_default=True)
        forbidden = text.names(given.get("forbidden_properties"), f"{where}.forbidden_properties")
        is_open = text.flag(given.get("open"), f"{where}.open")
        return TypeRule(
            name,
            closed=not is_open if "open" in given else "properties" in given,
            properties=properties,
            known=frozenset({*properties, *required, *(one for group in unique for one in group)}),
            required=tuple(dict.fromkeys(required)),
            forbidden={plain_name(one): one for one in forbidden},
            unique=unique,
            aliases=text.names(given.get("aliases"), f"{where}.aliases"),
        )

    def _says(self, node: Node, key: str) -> bool:
        return isinstance(node, yamltext.Mapping) and key in node.own() and value_of(node.own()[key][1]) is True

    def _add_enums(self, given: Mapping[str, Node], properties: dict[str, PropertyRule], where: str) -> None:
        """Take `X_enum` and `X_aliases`, which may stand beside a declaration of X or alone."""
        for key, node in given.items():
            suffix = next((one for one in TYPE_SUFFIXES if key.endswith(one)), None)
            if suffix is None or key in TYPE_KEYS:
                continue
            name, place = key.removesuffix(suffix), f"{where}.{key}"
            rule = properties.get(name) or PropertyRule(name, place)
            if suffix == "_aliases":
                properties[name] = replace(rule, aliases={**rule.aliases, **self._text.pairs(node, place)})
                continue
            if rule.enum is not None:
                self._text.fault("schema_value", place, f"'{name}' has an enum already", "keep one of them")
            properties[name] = replace(rule, enum=self._text.values(node, place), enum_where=place)

    def _unique(self, node: Node | None, where: str) -> tuple[tuple[str, ...], ...]:
        if isinstance(node, Listing) and any(isinstance(item, Listing) for item in node.items):
            return tuple(self._text.names(item, where) for item in node.items)
        return tuple((name,) for name in self._text.names(node, where))

    def _property(self, name: str, node: Node, under: str) -> PropertyRule:
        where = f"{under}.{name}"
        if isinstance(node, Scalar):
            return self._shaped(name, where, "any" if node.null else node.text)
        text = self._text
        given = text.mapping(node, where, PROPERTY_KEYS)
        enum = text.values(given.get("enum"), f"{where}.enum")
        rule = self._shaped(name, where, self._kind(given, where))
        if "items" in given:
            items = self._property("items", given["items"], where)
            self._refuse_keys(given["items"], f"{where}.items", ("unique", "required", "default"), "an item of a list")
            if rule.kind != "list":
                text.fault("schema_value", f"{where}.items", "only a list has items", "set `type: list`")
            rule = replace(rule, items=items)
        if enum is not None:
            rule = replace(rule, enum=enum, enum_where=f"{where}.enum")
        for flag in ("unique", "required"):
            text.flag(given.get(flag), f"{where}.{flag}")
        return replace(
            rule,
            aliases=text.pairs(given.get("aliases"), f"{where}.aliases"),
            pattern=text.words(given.get("pattern"), f"{where}.pattern") or None,
            minimum=self._bound(given, "min", rule, where),
            maximum=self._bound(given, "max", rule, where),
            default=value_of(given.get("default")),
            has_default="default" in given,
        )

    def _refuse_keys(self, node: Node, where: str, keys: tuple[str, ...], owner: str) -> None:
        """Add a fault for keys that are enforced elsewhere and not here."""
        for key in node.own() if isinstance(node, yamltext.Mapping) else ():
            if key in keys:
                self._text.fault("schema_key", where, f"kbd enforces no '{key}' of {owner}", "take it away", node.line)

    def _kind(self, given: Mapping[str, Node], where: str) -> str:
        kind = self._text.words(given.get("type"), f"{where}.type") or "any"
        wanted = self._text.words(given.get("format"), f"{where}.format")
        if not wanted:
            return kind
        if wanted not in FORMATS or kind not in ("any", "string"):
            hint = near(wanted, FORMATS) if wanted not in FORMATS else "formats are for strings"
            self._text.fault("schema_value", f"{where}.format", f"no format '{wanted}' for {kind}", hint)
        return FORMATS.get(wanted, kind)

    def _shaped(self, name: str, where: str, kind: str) -> PropertyRule:
        try:
            return _rule_of(parse_shape(kind), name, where)
        except ShapeFault as fault:
            hint = near(kind.strip("?[] "), [*KINDS, "ref(Type)", "enum(a, b)"])
            self._text.fault("schema_value", where, str(fault), hint)
            return PropertyRule(name, where)

    def _bound(self, given: Mapping[str, Node], key: str, rule: PropertyRule, where: str) -> float | str | None:
        if key not in given:
            return None
        value = value_of(given[key])
        fits = isinstance(value, str) if rule.kind in ("date", "datetime") else isinstance(value, int | float)
        if not fits or isinstance(value, bool) or rule.kind in ("boolean", "object", "ref"):
            hint = "numbers and times take values, strings and lists take lengths"
            self._text.fault("schema_value", f"{where}.{key}", f"is no limit for {rule.kind}", hint)
            return None
        return value if isinstance(value, int | float | str) else None

    def _relation(self, name: str, node: Node) -> RelationRule:
        text, where = self._text, f"relations.{name}"
        given = text.mapping(node, where, RELATION_KEYS)
        cardinality = text.words(given.get("cardinality"), f"{where}.cardinality")
        if cardinality and cardinality not in CARDINALITIES:
            hint = near(cardinality, CARDINALITIES)
            text.fault("schema_value", f"{where}.cardinality", f"unknown cardinality '{cardinality}'", hint)
        minimum = text.count(given.get("min"), f"{where}.min")
        if text.flag(given.get("required"), f"{where}.required"):
            minimum = max(minimum or 0, 1)
        declared = text.named(given.get("properties"), f"{where}.properties")
        for one, value in declared.items():
            self._refuse_keys(value, f"{where}.properties.{one}", ("unique",), "a property of a relation")
        return RelationRule(
            name,
            from_types=text.names(given.get("from_types"), f"{where}.from_types"),
            to_types=text.names(given.get("to_types"), f"{where}.to_types"),
            cardinality=cardinality if cardinality in CARDINALITIES else "",
            minimum=minimum,
            maximum=text.count(given.get("max"), f"{where}.max"),
            acyclic=text.flag(given.get("acyclic"), f"{where}.acyclic"),
            acyclic_with=text.names(given.get("acyclic_with"), f"{where}.acyclic_with"),
            inverse=text.words(given.get("inverse"), f"{where}.inverse"),
            symmetric=text.flag(given.get("symmetric"), f"{where}.symmetric"),
            properties={one: self._property(one, value, f"{where}.properties") for one, value in declared.items()},
            closed="properties" in given,
            required=tuple(one for one, value in declared.items() if self._says(value, "required")),
            aliases=text.names(given.get("aliases"), f"{where}.aliases"),
        )

    def _validations(self, types: Mapping[str, Node]) -> Iterator[DraftConstraint]:
        for name, node in types.items():
            rule = node.own().get("validate") if isinstance(node, yamltext.Mapping) else None
            for at, item in enumerate(_items(rule[1]) if rule else ()):
                where = f"types.{name}.validate" + (f"[{at}]" if at else "")
                self._text.lines[where] = item.line
                yield DraftConstraint(where, self._text.words(item, where), name)

    def _constraints(self, node: Node | None) -> Iterator[DraftConstraint]:
        if isinstance(node, yamltext.Mapping):
            pairs = [
                (key, one) for key, value in self._text.named(node, "constraints").items() for one in _items(value)
            ]
            found = [(f"{key}: {self._text.words(value, f'constraints.{key}')}", value) for key, value in pairs]
            for at, (rule, value) in enumerate(found):
                self._text.lines[f"constraints[{at}]"] = value.line
                yield DraftConstraint(f"constraints[{at}]", rule)
            return
        for at, item in enumerate(_items(node)):
            where = f"constraints[{at}]"
            self._text.lines[where] = item.line
            yield self._constraint(item, where)

    def _constraint(self, node: Node, where: str) -> DraftConstraint:
        text = self._text
        if not isinstance(node, yamltext.Mapping):
            return DraftConstraint(where, text.words(node, where))
        single = node.pairs[0] if len(node.pairs) == 1 else None
        if single and isinstance(single[0], Scalar) and single[0].text not in CONSTRAINT_KEYS:
            # `- Event: end >= start` is a mapping to YAML and a sentence to its author.
            return DraftConstraint(where, f"{single[0].text}: {text.words(single[1], where)}")
        given = text.mapping(node, where, CONSTRAINT_KEYS)
        enforcement = text.words(given.get("enforcement"), f"{where}.enforcement") or "block"
        if enforcement not in ("block", "warn"):
            text.fault("schema_value", f"{where}.enforcement", f"unknown '{enforcement}'", "known: block, warn")
        return DraftConstraint(
            where,
            text.words(given.get("rule"), f"{where}.rule"),
            text.words(given.get("type"), f"{where}.type"),
            text.words(given.get("relation"), f"{where}.relation"),
            text.words(given.get("message"), f"{where}.message"),
            warns=enforcement == "warn",
        )


def _items(node: Node | None) -> tuple[Node, ...]:
    if node is None or (isinstance(node, Scalar) and node.null):
        return ()
    return node.items if isinstance(node, Listing) else (node,)


def _rule_of(shape: Shape, name: str, where: str) -> PropertyRule:
    items = _rule_of(shape.items, f"{name}[]", f"{where}.items") if shape.items else None
    enum_where = f"{where}.enum" if shape.enum else ""
    return PropertyRule(name, where, shape.kind, shape.targets, items, shape.enum, enum_where, optional=shape.optional)
