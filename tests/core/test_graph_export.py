"""Exports read back by other parsers say what the graph says."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import networkx
import ocg
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.graph_export import FORMATS, as_cypher, as_graphml, as_json, as_turtle, with_ends
from kbd.core.operations import Edge, Entity

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff\ufffd"), min_size=1, max_size=8
)
XML_TEXT = TEXT.filter(lambda text: not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text))
VALUES = st.one_of(
    TEXT, st.integers(-9, 9), st.booleans(), st.floats(-9, 9), st.lists(TEXT, max_size=2), st.just({"a": [1]})
)
WEIRD = "a\"b\\c'd`e\nf\tg<h>&é😀"
GRAPH = (
    [
        Entity(
            "a b",
            "Task",
            {"title": WEIRD, "n": 1, "tags": ["x", WEIRD], "mixed": [1, "x"], "deep": {"k": None}},
            "2026",
            "",
        ),
        Entity("b", "项目", {"none": None, "ok": True, "f": 1.5}),
    ],
    [Edge("a b", "has`x", "b", {"w": WEIRD}), Edge("b", "r", "b")],
)


def text_of(format_, entities=GRAPH[0], edges=GRAPH[1]):
    return "\n".join(FORMATS[format_](entities, edges))


def test_a_file_that_only_a_relation_names_is_exported_with_it():
    edges = [Edge("t", "touches", "file:a.py"), Edge("t", "blocks", "nobody"), Edge("file:a.py", "r", "t")]
    task, file = Entity("t", "Task", {}), Entity("file:a.py", "File", {"path": "a.py"})
    held = list(with_ends([task], edges, {"file:a.py": file, "t": task}.get))
    assert held == [task, file]
    _, _, relations = loaded(held, edges)
    assert sorted(relations) == sorted([edges[0], edges[2]])


def test_json_holds_everything():
    read = json.loads(text_of("json"))
    assert [
        Entity(e["id"], e["type"], e["properties"], e["created"] or "", e["updated"] or "") for e in read["entities"]
    ] == GRAPH[0]
    assert [Edge(e["from"], e["rel"], e["to"], e["properties"]) for e in read["relations"]] == GRAPH[1]
    assert json.loads("".join(as_json([], []))) == {"version": 1, "entities": [], "relations": []}


@settings(deadline=None)
@given(
    st.dictionaries(XML_TEXT, XML_TEXT | st.integers() | st.lists(st.booleans(), max_size=2), max_size=3),
    XML_TEXT,
    XML_TEXT,
)
def test_graphml_holds_ids_types_and_properties(properties, ident, type_):
    edge = Edge(ident, type_, ident, properties)
    root = ElementTree.fromstring("\n".join(as_graphml([Entity(ident, type_, properties)], [edge])))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    names = {key.get("id"): key.get("attr.name") for key in root.iter(f"{space}key")}
    node, link = next(root.iter(f"{space}node")), next(root.iter(f"{space}edge"))
    for element, label in ((node, "type"), (link, "rel")):
        held = {names[item.get("key")]: item.text or "" for item in element}
        assert held.pop(label) == type_
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in properties.items()}
        assert held == {f"p.{name}": value for name, value in texts.items()}
    assert (node.get("id"), link.get("source"), link.get("target")) == (ident, ident, ident)


def test_networkx_reads_the_graphml():
    read = networkx.parse_graphml(text_of("graphml"))
    assert dict(read.nodes["a b"])["p.title"] == WEIRD
    assert sorted((s, t, d["rel"]) for s, t, d in read.edges(data=True)) == [("a b", "b", "has`x"), ("b", "b", "r")]


_TURTLE = re.compile(r'(\S+) (\S+) ("(?:[^"\\]|\\.)*"(?:\^\^\S+)?|\S+) \.')


@settings(deadline=None)
@given(st.dictionaries(TEXT, TEXT, max_size=3), TEXT)
def test_turtle_is_one_triple_a_line_with_escaped_names(properties, ident):
    lines = list(as_turtle([Entity(ident, "T", properties)], []))
    triples = [_TURTLE.fullmatch(line).groups() for line in lines if not line.startswith("@prefix")]
    assert len(triples) == 1 + len(properties)
    assert {unquote(subject[len("<urn:kbd:entity:") : -1]) for subject, _, _ in triples} == {ident}
    read = {unquote(name[len("<urn:kbd:property:") : -1]): json.loads(value) for _, name, value in triples[1:]}
    assert read == properties


def test_rdflib_reads_the_turtle():
    read = rdflib.Graph().parse(data=text_of("turtle"), format="turtle")
    entity, title = (rdflib.URIRef(f"urn:kbd:{name}") for name in ("entity:a%20b", "property:title"))
    assert str(read.value(entity, title)) == WEIRD
    assert (
        rdflib.URIRef("urn:kbd:entity:b"),
        rdflib.URIRef("urn:kbd:relation:r"),
        rdflib.URIRef("urn:kbd:entity:b"),
    ) in read


_STRING = r"'(?:[^'\\\n]|\\(?:[\\']|u[0-9a-f]{4}))*'"
_NAME = r"`(?:[^`]|``)*`"
_LITERAL = rf"(?:{_STRING}|-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|true|false)"
_VALUE = rf"(?:{_LITERAL}|\[(?:{_LITERAL}(?:, {_LITERAL})*)?\])"
_MAP = rf"\{{(?:{_NAME}: {_VALUE}(?:, {_NAME}: {_VALUE})*)?\}}"
_CREATE = re.compile(rf"CREATE \(:Entity:{_NAME} {_MAP}\);")
_MATCH = re.compile(
    rf"MATCH \(a:Entity \{{id: {_STRING}\}}\), \(b:Entity \{{id: {_STRING}\}}\) "
    rf"CREATE \(a\)-\[:{_NAME}(?: {_MAP})?\]->\(b\);"
)


@settings(deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=3), TEXT, TEXT)
def test_every_cypher_statement_is_in_the_grammar(properties, ident, type_):
    create, match = as_cypher([Entity(ident, type_, properties)], [Edge(ident, type_, ident, properties)])
    assert _CREATE.fullmatch(create)
    assert _MATCH.fullmatch(match)


def loaded(entities, edges):
    """Return labels and properties by id, and the relations, as an openCypher engine holds them after the export."""
    engine = ocg.Graph()
    for statement in as_cypher(entities, edges):
        engine.execute(statement)
    nodes = engine.execute("MATCH (n:Entity) RETURN labels(n) AS labels, properties(n) AS held")
    found = engine.execute("MATCH (a)-[r]->(b) RETURN a.id AS a, type(r) AS rel, b.id AS b, properties(r) AS held")
    # This engine keeps the quotes of a name that stands for a label; of those of properties it does not.
    labels = {one["held"]["id"]: {unquoted(label) for label in one["labels"]} for one in nodes}
    relations = [Edge(one["a"], unquoted(one["rel"]), one["b"], one["held"]) for one in found]
    return labels, {one["held"]["id"]: one["held"] for one in nodes}, relations


def unquoted(name):
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def in_cypher(value):
    """Return a value as Cypher can hold it: what it lacks is JSON text."""
    if isinstance(value, int) and not -(2**63) < value < 2**63:
        return json.dumps(value)
    mixed = isinstance(value, list) and len({type(one) for one in value}) > 1
    return json.dumps(value, ensure_ascii=False) if mixed or isinstance(value, dict) else value


def test_an_engine_loads_the_cypher():
    labels, held, relations = loaded(*GRAPH)
    assert labels == {one.id: {"Entity", one.type} for one in GRAPH[0]}
    for one in GRAPH[0]:
        own = {name: in_cypher(value) for name, value in one.properties.items() if value is not None}
        assert held[one.id] == own | {"id": one.id} | ({"created": one.created} if one.created else {})
    assert sorted(relations) == sorted(GRAPH[1])


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(TEXT, VALUES | st.integers() | st.just(""), max_size=3), TEXT, TEXT)
def test_an_engine_holds_what_the_graph_does(properties, ident, type_):
    _, held, relations = loaded([Entity(ident, type_, properties)], [Edge(ident, type_, ident, properties)])
    expected = {name: in_cypher(value) for name, value in properties.items()}
    assert held == {ident: expected | {"id": ident}}
    assert relations == [Edge(ident, type_, ident, expected)]


def test_a_property_that_is_called_like_one_of_kbd_is_not_lost():
    _, held, _ = loaded([Entity("a", "T", {"id": 7, "created": "once"}, "2026", "")], [])
    assert held["a"] == {"id": "a", "created": "2026", "p.id": 7, "p.created": "once"}
