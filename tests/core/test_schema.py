"""A schema says all its faults at once, with places and near names, and nothing in it is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.schema_default import DEFAULT_SCHEMA
from kbd.core.schema_merge import merged, united
from kbd.core.schema_properties import ShapeFault, parse_shape
from kbd.core.schema_reading import read_schema
from kbd.core.yamltext import compose
from kbd.core.yamlvalues import value_of
from kbd.errors import Refused
from tests.core.graph_world import ARTICLE, schema


def faults(text: str) -> list[str]:
    return [problem.what for problem in read_schema(text.encode(), "schema.yaml").problems]


FAULTS = [
    ("types: {Task: {requird: [a]}}", "types.Task: kbd enforces no key 'requird'"),
    ("typs: {}", "schema: kbd enforces no key 'typs'"),
    ("types: {T: {properties: {a: {type: string, maxLength: 3}}}}", "kbd enforces no key 'maxLength'"),
    ("relations: {r: {transitive: true}}", "kbd enforces no key 'transitive'"),
    ("constraints: [{type: T, rule: x exists, severity: 1}]", "kbd enforces no key 'severity'"),
    ("types: {T: {_enum: [a]}}", "kbd enforces no key '_enum'"),
    ("types: {T: {properties: {a: strin}}}", "unknown type of values 'strin'"),
    ("types: {T: {properties: {a: ref()}}}", "ref(…) names nothing"),
    ("types: {T: {properties: {a: {type: string, format: phone}}}}", "no format 'phone' for string"),
    ("types: {T: {properties: {a: {type: string, pattern: '['}}}}", "is no expression"),
    ("types: {T: {properties: {a: {type: integer, min: 3, max: 1}}}}", "min 3 is over max 1"),
    ("types: {T: {properties: {a: {type: boolean, min: 3}}}}", "is no limit for boolean"),
    ("types: {T: {properties: {a: {type: date, min: soon}}}}", "is no date"),
    ("types: {T: {properties: {a: {type: integer, default: x}}}}", "its default is wrong"),
    ("types: {T: {properties: {a: {enum: [x], aliases: {y: z}}}}}", "which the enum does not have"),
    ("types: {T: {properties: {a: {type: string, items: string}}}}", "only a list has items"),
    ("types: {T: {required: [a], properties: {a: 'string?'}}}", "required and optional"),
    ("types: {T: {required: [a], forbidden_properties: [a]}}", "declared and forbidden"),
    ("types: {T: {a_enum: open}}", "is no list of values"),
    ("types: {T: [a]}", "is no mapping"),
    ("types: {T: {}, T: {}}", "stands there twice"),
    ("types: {T: {open: maybe}}", "is neither true nor false"),
    ("types: {A: {aliases: [B]}, B: {}}", "'B' is a name of A as well"),
    ("types: {Person: {}, T: {properties: {a: ref(Persn)}}}", "unknown type 'Persn'"),
    ("types: {Task: {}}\nrelations: {r: {from_types: [Tasks]}}", "unknown type 'Tasks'"),
    ("relations: {r: {cardinality: many-to-one}}", "unknown cardinality 'many-to-one'"),
    ("relations: {r: {acyclic_with: [s]}}", "unknown relation 's'"),
    ("relations: {r: {inverse: s}, s: {inverse: t}}", "'s' is not its inverse"),
    ("relations: {r: {symmetric: true, acyclic: true}}", "a cycle by itself"),
    ("relations: {r: {symmetric: true, cardinality: many_to_one}}", "cannot be many_to_one"),
    ("relations: {r: {required: true}}", "a minimum needs `from_types`"),
    ("types: {T: {}}\nconstraints: ['T: a >= ']", "ends where a value should stand"),
    ("types: {T: {}}\nconstraints: ['U: a exists']", "unknown type 'U'"),
    ("types: {T: {}}\nconstraints: ['a exists']", "names no type"),
    ("types: {T: {properties: {a: string}}}\nconstraints: ['T: b exists']", "unknown property 'b'"),
    ("types: {T: {}}\nconstraints: ['T: has_relation(r)']", "unknown relation 'r'"),
    ("types: {T: {}}\nconstraints: ['T: __import__(\"os\")']", "comparison"),
    ("types: {T: {}}\nconstraints: [{type: T, rule: a exists, enforcement: log}]", "unknown 'log'"),
    ("types: {T: {}}\nconstraints: [{type: T}]", "says nothing"),
    ("types: {T: {a_enum: [x]}}\nconstraints: [{type: T, rule: 'a transitions: x -> y'}]", "'y' is no value of a"),
    ("relations: {r: {}}\nconstraints: [{relation: r, rule: reflexive}]", "can only say `acyclic`"),
    ("relations: {r: {properties: {w: {type: integer, unique: true}}}}", "no 'unique' of a property of a relation"),
    ("types: {T: {properties: {a: {type: list, items: {type: string, default: x}}}}}", "no 'default' of an item"),
    ("version: 2", "is not 1"),
    ("- a", "no schema"),
    ("# A heading\n\nSome prose, no schema at all.", "no schema"),
    ("a: [", "not YAML"),
]


@pytest.mark.parametrize(("text", "fault"), FAULTS, ids=[text[:60] for text, _ in FAULTS])
def test_what_is_not_enforced_or_contradicts_itself_is_a_fault(text, fault):
    assert any(fault in what for what in faults(text))


def test_all_faults_come_at_once_with_their_lines_and_near_names():
    text = "types:\n  Task:\n    requird: [a]\n    properties: {x: strng}\nrelations:\n  r: {cardinality: one_to_mny}\n"
    found = [(problem.where, problem.hint) for problem in read_schema(text.encode(), "schema.yaml").problems]
    hints = ["did you mean 'required'?", "did you mean 'string'?", "did you mean 'one_to_many'?"]
    assert found == list(zip(["schema.yaml:3", "schema.yaml:4", "schema.yaml:6"], hints, strict=True))


@pytest.mark.parametrize("text", ["", "# nothing\n", "types:\nrelations:\n", "types: {Task: null}", "types: open"])
def test_an_empty_schema_and_null_sections_are_no_faults(text):
    assert faults(text) == []


def test_the_schema_that_init_ships_has_no_faults():
    assert schema(DEFAULT_SCHEMA).type_rule("项目").name == "Project"


def test_a_type_that_only_a_relation_names_is_declared_by_that():
    rules = schema(ARTICLE)
    assert rules.type_rule("Person") is not None
    assert not rules.type_rule("Person").closed


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data):
    reading = read_schema(data, "schema.yaml")
    assert (reading.schema is None) == bool(reading.problems)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "types",
                        "relations",
                        "constraints",
                        "T",
                        "required",
                        "properties",
                        "rule",
                        "x",
                        "min",
                        "enum",
                        "aliases",
                        "default",
                        "inverse",
                        "unique",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_no_tree_crashes_the_reader(tree):
    reading = read_schema(repr(tree).replace("None", "null").encode("utf-8", "replace"), "schema.yaml")
    assert (reading.schema is None) == bool(reading.problems)


@pytest.mark.parametrize("text", ["string[]?", "ref(A|B)[]", "list(enum(a, b))", "ref(A, B)?", "any"])
def test_types_of_values_are_read(text):
    assert parse_shape(text).kind in ("list", "ref", "any")


@pytest.mark.parametrize("text", ["", "str", "ref()", "enum(,)", "list(list(" * 20, "string[" + "]" * 9])
def test_what_is_no_type_of_values_is_a_fault(text):
    with pytest.raises(ShapeFault):
        parse_shape(text)


MERGES = [
    ("", {"types": {"T": {"required": ["a"]}}}),
    ("# only a comment\n", {"types": {"T": {}}}),
    ("types:\n  A: {required: [x]} # why\n", {"types": {"B": {"required": ["y"]}}, "relations": {"r": {}}}),
    ("types:\n  A:\n    required: [x]\n", {"types": {"A": {"required": ["x", "y"], "a_enum": ["on", "off"]}}}),
    (
        "types:\n  A:\n    required:\n      - x\n\nrelations:\n",
        {"types": {"A": {"required": ["y"]}}, "relations": {"r": {"acyclic": True}}},
    ),
    ("{types: {A: {}}}", {"types": {"A": {"open": True}}}),
    ("types:\n  A: {open: true}", {"types": {"A": {"open": False}}}),
    ("types: {}\n", {"types": {"项目": {"required": ["名"]}}}),
]


@pytest.mark.parametrize(("text", "fragment"), MERGES, ids=range(len(MERGES)))
def test_a_merged_schema_says_both_and_keeps_its_lines(text, fragment):
    data = merged(text.encode(), fragment, "s")
    before = value_of(compose(text.encode(), "s").root)
    assert value_of(compose(data, "s").root) == united(before if isinstance(before, dict) else {}, fragment)
    assert all(line.split("{")[0].split("[")[0] in data.decode() for line in text.splitlines())
    assert merged(data, fragment, "s") == data


def test_a_merge_that_would_not_say_both_is_refused():
    with pytest.raises(Refused):
        merged(b"types: &a {T: {}}\nrelations: *a\n", {"relations": {"r": {"acyclic": True}}}, "s")
