"""A graph in the formats of other tools: Cypher, GraphML, Turtle and JSON. Pure: entities and relations in, lines out.

Properties keep their JSON types as far as a format has them; what it lacks (objects, lists of mixed types) is written
as JSON text. Types and relations become labels, and names are escaped, never trusted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kbd.core.operations import Edge, Entity

_PREFIX = "urn:kbd:"
# RFC 3986, section 2.3.
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Cypher's integers have 64 bits; a larger one is written as text, as all that a format lacks.
_CYPHER_INTEGERS = 1 << 63
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_XML_UNFIT = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF], "\ufffd")


def with_ends(
    entities: Iterable[Entity], edges: Iterable[Edge], entity_of: Callable[[str], Entity | None]
) -> Iterator[Entity]:
    """Yield the entities, then those that only relations lead to, such as files: a relation needs both its ends."""
    told = set()
    for entity in entities:
        told.add(entity.id)
        yield entity
    for ident in dict.fromkeys(end for edge in edges for end in (edge.source, edge.target)):
        found = entity_of(ident) if ident not in told else None
        if found is not None:
            yield found


def as_json(entities: Iterable[Entity], edges: Iterable[Edge]) -> Iterator[str]:
    """Yield one JSON object: `entities` in the shape of the skill, `relations` with from, rel, to and properties."""
    yield '{"version": 1, "entities": ['
    yield from _separated(json.dumps(entity.as_json(), ensure_ascii=False) for entity in entities)
    yield '], "relations": ['
    yield from _separated(
        json.dumps(
            {"from": edge.source, "rel": edge.rel, "to": edge.target, "properties": dict(edge.properties)},
            ensure_ascii=False,
        )
        for edge in edges
    )
    yield "]}"


def _separated(items: Iterable[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield ("," if number else "") + item


def as_cypher(entities: Iterable[Entity], edges: Iterable[Edge]) -> Iterator[str]:
    """Yield openCypher statements: a CREATE for each entity, a MATCH and CREATE for each relation.

    Every entity has the label `Entity` and an `id`, so `CREATE CONSTRAINT … (e:Entity) … e.id` makes loading fast. A
    property of its own that is called like one of kbd's (`id`, `created`, `updated`) is written as `p.id`.
    """
    for entity in entities:
        own = {"id": entity.id, "created": entity.created or None, "updated": entity.updated or None}
        properties = {f"p.{name}" if name in own else name: value for name, value in entity.properties.items()}
        yield f"CREATE (:Entity:{_cypher_name(entity.type)} {_cypher_map(properties | own)});"
    for edge in edges:
        ends = f"(a:Entity {{id: {_cypher_text(edge.source)}}}), (b:Entity {{id: {_cypher_text(edge.target)}}})"
        held = f" {_cypher_map(edge.properties)}" if edge.properties else ""
        yield f"MATCH {ends} CREATE (a)-[:{_cypher_name(edge.rel)}{held}]->(b);"


def _cypher_name(name: str) -> str:
    return "`" + (name or "_").replace("`", "``") + "`"


def _cypher_text(text: str) -> str:
    """Return a text in quotes. What is no letter is escaped; not in pairs of surrogates, which some engines drop."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + "'"


def _cypher_map(properties: Any) -> str:
    held = {name: value for name, value in properties.items() if value is not None}
    return "{" + ", ".join(f"{_cypher_name(name)}: {_cypher_value(value)}" for name, value in held.items()) + "}"


def _cypher_value(value: Any) -> str:
    if isinstance(value, str):
        return _cypher_text(value)
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < _CYPHER_INTEGERS):
        return json.dumps(value)
    if isinstance(value, list) and _is_cypher_list(value):
        return "[" + ", ".join(map(_cypher_value, value)) + "]"
    return _cypher_text(json.dumps(value, ensure_ascii=False))


def _is_cypher_list(value: list[Any]) -> bool:
    kinds = {type(item) for item in value}
    if kinds <= {int, float}:
        return all(isinstance(item, float) or abs(item) < _CYPHER_INTEGERS for item in value)
    return kinds <= {str} or kinds <= {bool}


def as_graphml(entities: Iterable[Entity], edges: Iterable[Edge]) -> Iterator[str]:
    """Yield GraphML: nodes by id with `type` and their properties, edges with `rel`. Values other than text are JSON.

    All keys are declared as strings, because one property may have values of several types.
    """
    nodes, links = list(entities), list(edges)
    keys: dict[tuple[str, str], str] = {}
    for scope, held in (
        ("node", [_graphml_node(one) for one in nodes]),
        ("edge", [_graphml_edge(one) for one in links]),
    ):
        for name in dict.fromkeys(name for fields in held for name in fields):
            keys[scope, name] = f"d{len(keys)}"
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for (scope, name), key in keys.items():
        yield f'<key id="{key}" for="{scope}" attr.name={_xml_attribute(name)} attr.type="string"/>'
    yield '<graph id="kbd" edgedefault="directed">'
    for one in nodes:
        yield f"<node id={_xml_attribute(one.id)}>{_xml_data('node', _graphml_node(one), keys)}</node>"
    for edge in links:
        ends = f"source={_xml_attribute(edge.source)} target={_xml_attribute(edge.target)}"
        yield f"<edge {ends}>{_xml_data('edge', _graphml_edge(edge), keys)}</edge>"
    yield "</graph>"
    yield "</graphml>"


def _graphml_node(entity: Entity) -> dict[str, Any]:
    return {
        "type": entity.type,
        **{f"p.{name}": value for name, value in entity.properties.items() if value is not None},
    }


def _graphml_edge(edge: Edge) -> dict[str, Any]:
    return {"rel": edge.rel, **{f"p.{name}": value for name, value in edge.properties.items() if value is not None}}


def _xml_data(scope: str, fields: dict[str, Any], keys: dict[tuple[str, str], str]) -> str:
    return "".join(f'<data key="{keys[scope, name]}">{_xml_text(value)}</data>' for name, value in fields.items())


def _xml_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape(text.translate(_XML_UNFIT), {"\r": "&#13;"})


def _xml_attribute(text: str) -> str:
    return quoteattr(text.translate(_XML_UNFIT), {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def as_turtle(entities: Iterable[Entity], edges: Iterable[Edge]) -> Iterator[str]:
    """Yield Turtle: entities, types, relations and properties as `urn:kbd:…`, the properties of relations reified."""
    yield f"@prefix : <{_PREFIX}> ."
    yield "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."
    for entity in entities:
        subject = _iri("entity", entity.id)
        yield f"{subject} a {_iri('type', entity.type)} ."
        for name, value in _pairs(entity.properties):
            yield f"{subject} {_iri('property', name)} {_turtle_value(value)} ."
    for number, edge in enumerate(edges):
        triple = _iri("entity", edge.source), _iri("relation", edge.rel), _iri("entity", edge.target)
        yield f"{' '.join(triple)} ."
        if edge.properties:
            statement = f"_:s{number}"
            parts = zip(("rdf:subject", "rdf:predicate", "rdf:object"), triple, strict=True)
            yield f"{statement} a rdf:Statement ; {' ; '.join(f'{key} {term}' for key, term in parts)} ."
            for name, value in _pairs(edge.properties):
                yield f"{statement} {_iri('property', name)} {_turtle_value(value)} ."


def _pairs(properties: Any) -> Iterator[tuple[str, Any]]:
    """Yield names with values; a list is several values of one name."""
    for name, value in properties.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, item


def _iri(kind: str, name: str) -> str:
    encoded = "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in name.encode())
    return f"<{_PREFIX}{kind}:{encoded}>"


def _turtle_value(value: Any) -> str:
    if isinstance(value, bool) or (isinstance(value, int) and not isinstance(value, bool)):
        return json.dumps(value)
    if isinstance(value, float) and math.isfinite(value):
        return f'"{value!r}"^^<http://www.w3.org/2001/XMLSchema#double>'
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


FORMATS: dict[str, Callable[[Iterable[Entity], Iterable[Edge]], Iterator[str]]] = {
    "cypher": as_cypher,
    "graphml": as_graphml,
    "json": as_json,
    "turtle": as_turtle,
}
