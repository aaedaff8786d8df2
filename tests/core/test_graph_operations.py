"""Lines of logs as public graphs have them: read if they have one meaning, reported in any case, never the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.operations import FAULTS, KINDS, Operation, canonical_operation, read_record, record_of
from tests.core.graph_world import AT, create, relate

FOREIGN = [
    (
        {"op": "relate", "relation": {"from": "a", "rel": "r", "to": "b"}},
        [("relate", "a")],
        ["nested_relation", "missing_timestamp"],
    ),
    (
        {"op": "create", "relation": {"from": "a", "type": "r", "to": "b"}},
        [("relate", "a")],
        ["nested_relation", "missing_timestamp"],
    ),
    ({"op": "relate", "from_id": "a", "relation_type": "r", "to_id": "b", "timestamp": AT}, [("relate", "a")], []),
    (
        {
            "op": "create",
            "entity": {"id": "e", "type": "Relation", "properties": {"from": "a", "rel": "r", "to": "b"}},
            "timestamp": AT,
        },
        [("relate", "a")],
        ["relation_as_entity"],
    ),
    (
        {"op": "create", "entity": {"id": "e", "type": "Relation", "properties": {"name": "x"}}, "timestamp": AT},
        [("create", "e")],
        [],
    ),
    ({"op": "create", "entity": {"id": "e", "type": "T", "properties": {}}}, [("create", "e")], ["missing_timestamp"]),
    ({"op": "create", "entity": {"id": "e", "type": "T", "properties": {}, "created": AT}}, [("create", "e")], []),
    (
        {"op": "create", "entity": {"id": 7, "type": "T", "name": "x"}, "timestamp": AT},
        [("create", "7")],
        ["loose_properties", "id_not_text"],
    ),
    ({"op": "create", "entity": {"id": "e"}, "timestamp": AT}, [("create", "e")], []),
    (
        {"op": "create", "entity": {"id": "e", "type": "T", "properties": [{"key": "a", "value": 1}]}, "timestamp": AT},
        [("create", "e")],
        ["loose_properties"],
    ),
    (
        {
            "op": "create",
            "entity": {"id": "e", "type": "T", "relations": [{"relation_type": "r", "to_id": "b"}, 3]},
            "timestamp": AT,
        },
        [("create", "e"), ("relate", "e")],
        ["nested_relation", "bad_operation"],
    ),
    ({"id": "e", "type": "T", "properties": {}}, [("create", "e")], ["implied_operation", "missing_timestamp"]),
    ({"from": "a", "rel": "r", "to": "b", "timestamp": AT}, [("relate", "a")], ["implied_operation"]),
    ({"op": "update", "id": "e", "properties": [1], "timestamp": AT}, [("update", "e")], ["loose_properties"]),
    ({"op": "create", "timestamp": AT}, [], ["bad_operation"]),
    ({"op": "delete", "timestamp": AT}, [], ["bad_operation"]),
    ({"op": "merge", "id": "e"}, [], ["unknown_operation"]),
    ({"op": ["create"]}, [], ["unknown_operation"]),
    ({}, [], ["unknown_operation"]),
    ([], [], ["not_an_object"]),
    (None, [], ["not_an_object"]),
    ({"op": "compact", "timestamp": AT}, [], []),
]


@pytest.mark.parametrize(("record", "operations", "faults"), FOREIGN, ids=range(len(FOREIGN)))
def test_a_foreign_line_is_read_and_reported(record, operations, faults):
    reading = read_record(record)
    assert [(one.kind, one.id) for one in reading.operations] == operations
    assert [fault.code for fault in reading.faults] == faults


def test_who_wrote_a_line_is_kept():
    (operation,) = read_record({"op": "delete", "id": "e", "agent": "mailer", "timestamp": AT}).operations
    assert operation.by == "mailer"


TEXTS = st.text(min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
PROPERTIES = st.dictionaries(TEXTS, VALUES, max_size=3)
KINDS_OF = {
    "create": {"type": TEXTS.filter(lambda text: text != "Relation"), "properties": PROPERTIES, "created": TEXTS},
    "update": {"properties": PROPERTIES},
    "delete": {},
    "relate": {"properties": PROPERTIES, "rel": TEXTS, "target": TEXTS},
    "unrelate": {"rel": TEXTS, "target": TEXTS},
}
EMPTY = {
    "type": st.just(""),
    "properties": st.just({}),
    "rel": st.just(""),
    "target": st.just(""),
    "created": st.just(""),
}
OPERATIONS = st.one_of(
    st.builds(Operation, kind=st.just(kind), id=TEXTS, at=TEXTS, by=st.just(""), **(EMPTY | fields))
    for kind, fields in KINDS_OF.items()
)


@settings(deadline=None)
@given(OPERATIONS, st.sampled_from(["", "me"]))
def test_an_operation_comes_back_from_its_record(operation, by):
    operation = operation._replace(by=by)
    assert read_record(record_of(operation)).operations == (operation,)
    assert (canonical_operation(record_of(operation)) is None) == bool(by)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "op",
                    "entity",
                    "id",
                    "type",
                    "properties",
                    "from",
                    "rel",
                    "to",
                    "relation",
                    "relations",
                    "timestamp",
                    "key",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
)


@settings(deadline=None)
@given(JSON, st.sampled_from([*KINDS, None]))
def test_no_record_crashes_the_reader(record, kind):
    if isinstance(record, dict) and kind:
        record["op"] = kind
    reading = read_record(record)
    assert all(one.kind in KINDS and one.id for one in reading.operations)
    assert all(fault.code in FAULTS for fault in reading.faults)


def test_defaults_are_not_shared():
    assert create("a", "T").properties == {}
    assert relate("a", "r", "b").properties == {}
