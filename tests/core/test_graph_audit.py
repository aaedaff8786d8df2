"""Every row of the audit of the public `ontology` skill: what it declares is refused here, and what is right is taken.

Each case: a schema, the graph before, a change that is refused with these codes, and one that is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kbd.core.coverage import coverage
from kbd.core.graph_state import Empty, Overlay
from kbd.core.graph_validation import validate
from kbd.core.operations import Operation
from tests.core.graph_world import ARTICLE, asked, codes, create, delete, graph, relate, schema, unrelate, update

PERSON = "Person: {properties: {name: string}}"


@dataclass(frozen=True)
class Case:
    name: str
    rules: str
    wrong: tuple[Operation, ...]
    refused: tuple[str, ...]
    right: tuple[Operation, ...]
    before: tuple[Operation, ...] = ()
    idle: tuple[str, ...] = field(default=())


def task(ident: str = "t1", **properties: object) -> Operation:
    return create(ident, "Task", **{"title": "Write", "status": "open", **properties})


def typed(spec: str) -> str:
    return f"types: {{T: {{properties: {{x: {spec}}}}}, Person: {{}}, Task: {{}}}}"


def value(name: str, spec: str, wrong: object, right: object, code: str = "value_invalid", before: tuple = ()) -> Case:
    return Case(name, typed(spec), (create("a", "T", x=wrong),), (code,), (create("a", "T", x=right),), before)


PEOPLE = (create("p1", "Person"), create("p2", "Person"), create("k1", "Task", title="Write", status="open"))
TASKS = tuple(task(f"t{number}") for number in range(4))
CASES = [
    Case("required", ARTICLE, (create("t", "Task", title="x"),), ("property_missing",), (task(),)),
    Case("required-null", ARTICLE, (task(title=None),), ("property_missing",), (task(),)),
    Case("required-blank", ARTICLE, (task(title="  "),), ("property_missing",), (task(title="0"),)),
    Case(
        "required-false-is-a-value",
        "types: {T: {required: [x]}}",
        (create("a", "T", x=[]),),
        ("property_missing",),
        (create("a", "T", x=False),),
    ),
    Case(
        "required-taken-away",
        ARTICLE,
        (update("t1", title=None),),
        ("property_missing",),
        (update("t1", title="b"),),
        (task(),),
    ),
    Case("enum", ARTICLE, (task(status="opne"),), ("value_invalid",), (task(status="done"),)),
    Case(
        "enum-empty-word",
        "types: {T: {x_enum: [a, b]}}",
        (create("a", "T", x=""),),
        ("value_invalid",),
        (create("a", "T", x="b"),),
    ),
    Case(
        "enum-false",
        "types: {T: {x_enum: [1, 2]}}",
        (create("a", "T", x=True),),
        ("value_invalid",),
        (create("a", "T", x=1),),
    ),
    Case(
        "enum-of-an-enum",
        "types: {T: {a_enum_enum: [x]}}",
        (create("a", "T", a_enum="y"),),
        ("value_invalid",),
        (create("a", "T", a_enum="x"),),
    ),
    value("enum-in-properties", "'enum(a, b)'", "c", "b"),
    value("enum-key", "{enum: [a, b]}", "c", "b"),
    value("enum-of-a-list", "'enum(a, b)[]'", ["a", "c"], ["a", "b"]),
    Case(
        "forbidden",
        ARTICLE,
        (create("c", "Credential", service="s", secret_ref="r", password="p"),),
        ("property_forbidden",),
        (create("c", "Credential", service="s", secret_ref="r"),),
    ),
    Case(
        "forbidden-in-another-spelling",
        ARTICLE,
        (create("c", "Credential", service="s", secret_ref="r", **{"Pass-Word": "p"}),),
        ("property_forbidden",),
        (create("c", "Credential", service="s", secret_ref="r", passage="p"),),
    ),
    Case(
        "forbidden-nested",
        ARTICLE,
        (create("c", "Credential", service="s", secret_ref="r", login=[{"token": "p"}]),),
        ("property_forbidden",),
        (create("c", "Credential", service="s", secret_ref="r", login=[{"user": "p"}]),),
    ),
    Case(
        "forbidden-in-a-rule",
        "types: {C: {}}\nconstraints: [{type: C, rule: 'forbidden_properties: [password]'}]",
        (create("c", "C", password="p"),),
        ("property_forbidden",),
        (create("c", "C", user="p"),),
    ),
    Case(
        "secret-shaped",
        "types: {N: {}}",
        (create("n", "N", text="key ghp_0123456789abcdefghijABCDEFGHIJ"),),
        ("secret_value",),
        (create("n", "N", text="see the key in the vault"),),
    ),
    Case(
        "private-key",
        "types: {N: {}}",
        (create("n", "N", a={"b": "-----BEGIN RSA PRIVATE KEY-----\nMII"}),),
        ("secret_value",),
        (create("n", "N", a={"b": "-----BEGIN PUBLIC KEY-----"}),),
    ),
    value("string", "string", 5, "5"),
    value("number", "number", "lots", 1.5),
    value("number-is-no-boolean", "number", True, 1),
    value("integer", "integer", 1.5, 7),
    value("boolean", "boolean", "yes", False),
    value("object", "object", [], {"a": 1}),
    value("list", "list", "a", ["a"]),
    value("list-items", "'string[]'", ["a", 1], ["a"]),
    value("date", "date", "2026-02-30", "2026-02-28"),
    value("date-has-no-time", "date", "2026-02-28T10:00", "2026-02-28"),
    value("datetime", "datetime", "tomorrow", "2026-02-28T10:00:00Z"),
    value("url", "url", "example", "https://example.org/a?b"),
    value("email", "email", "a@b", "a@example.org"),
    value("format", "{type: string, format: date-time}", "soon", "2026-02-28T10:00:00+01:00"),
    value("pattern", "{type: string, pattern: '^[A-Z]+-[0-9]+$'}", "a-1", "AB-12"),
    value("min", "{type: number, min: 0}", -1, 0),
    value("max", "{type: number, max: 10}", 10.5, 10),
    value("min-length", "{type: string, min: 2}", "a", "ab"),
    value("max-items", "{type: list, max: 1}", [1, 2], [1]),
    value("min-date", "{type: date, min: '2026-01-01'}", "2025-12-31", "2026-01-01"),
    value("ref", "ref(Person)", "p9", "p1", "ref_dangling", PEOPLE),
    value("ref-type", "ref(Person)", "k1", "p1", "ref_type", PEOPLE),
    value("ref-list", "'ref(Task)[]?'", ["k1", "k2"], ["k1"], "ref_dangling", PEOPLE),
    value("ref-list-type", "'ref(Person)[]'", ["p1", "k1"], ["p1", "p2"], "ref_type", PEOPLE),
    value("ref-any", "ref(Entity)", "p9", "k1", "ref_dangling", PEOPLE),
    Case(
        "undeclared-property",
        f"types: {{{PERSON}}}",
        (create("p", "Person", nmae="A"),),
        ("property_unknown",),
        (create("p", "Person", name="A"),),
    ),
    Case(
        "open-type",
        "types: {P: {properties: {name: string}, open: true}}",
        (create("p", "P", name=1, x=2),),
        ("value_invalid",),
        (create("p", "P", name="n", x=2),),
    ),
    Case("unknown-type", ARTICLE, (create("b", "Banana"),), ("type_unknown",), (task(),)),
    Case("types-open", "types: open", (create("a b ", "Banana"),), ("id_invalid",), (create("a", "Banana", x=1),)),
    Case(
        "unknown-relation",
        ARTICLE,
        (relate("t1", "likes", "t2"),),
        ("relation_unknown",),
        (relate("t1", "blocks", "t2"),),
        TASKS,
    ),
    Case(
        "relations-open",
        "types: {T: {}}\nrelations: open",
        (relate("a", "likes", "x"),),
        ("end_dangling",),
        (relate("a", "likes", "a"),),
        (create("a", "T"),),
    ),
    Case(
        "from-type",
        ARTICLE,
        (relate("p1", "has_owner", "p2"),),
        ("end_type",),
        (relate("k1", "has_owner", "p2"),),
        PEOPLE,
    ),
    Case(
        "to-type",
        ARTICLE,
        (relate("k1", "has_owner", "k1"),),
        ("end_type",),
        (relate("k1", "has_owner", "p1"),),
        PEOPLE,
    ),
    Case(
        "dangling-relation",
        ARTICLE,
        (relate("t1", "blocks", "t9"),),
        ("end_dangling",),
        (relate("t1", "blocks", "t2"),),
        TASKS,
    ),
    Case(
        "delete-leaves-no-edge",
        ARTICLE,
        (delete("t2"),),
        ("still_related",),
        (unrelate("t1", "blocks", "t2"), delete("t2")),
        (*TASKS, relate("t1", "blocks", "t2")),
    ),
    Case(
        "delete-of-a-referenced",
        typed("ref(Person)"),
        (delete("p1"),),
        ("still_related",),
        (delete("p2"),),
        (*PEOPLE, create("a", "T", x="p1")),
    ),
    Case(
        "many-to-one",
        ARTICLE,
        (relate("k1", "has_owner", "p2"),),
        ("cardinality",),
        (relate("k1", "has_owner", "p1"),),
        (*PEOPLE, relate("k1", "has_owner", "p1")),
    ),
    Case(
        "one-to-many",
        "types: {T: {}}\nrelations: {r: {cardinality: one_to_many}}",
        (relate("b", "r", "c"),),
        ("cardinality",),
        (relate("a", "r", "b"),),
        (*(create(i, "T") for i in "abc"), relate("a", "r", "c")),
    ),
    Case(
        "one-to-one",
        "types: {T: {}}\nrelations: {r: {cardinality: one_to_one}}",
        (relate("a", "r", "c"),),
        ("cardinality",),
        (relate("b", "r", "c"),),
        (*(create(i, "T") for i in "abc"), relate("a", "r", "b")),
    ),
    Case(
        "maximum",
        "types: {T: {}}\nrelations: {r: {max: 1}}",
        (relate("a", "r", "c"),),
        ("cardinality",),
        (relate("b", "r", "c"),),
        (*(create(i, "T") for i in "abc"), relate("a", "r", "b")),
    ),
    Case(
        "minimum",
        "types: {T: {}, P: {}}\nrelations: {r: {from_types: [T], to_types: [P], required: true}}",
        (create("t", "T"),),
        ("relation_missing",),
        (create("t", "T"), relate("t", "r", "p")),
        (create("p", "P"),),
    ),
    Case(
        "minimum-taken-away",
        "types: {T: {}, P: {}}\nrelations: {r: {from_types: [T], to_types: [P], min: 1}}",
        (unrelate("t", "r", "p"),),
        ("relation_missing",),
        (unrelate("t", "r", "p"), relate("t", "r", "q")),
        (create("p", "P"), create("q", "P"), create("t", "T"), relate("t", "r", "p")),
    ),
    Case(
        "acyclic",
        ARTICLE,
        (relate("t1", "blocks", "t0"),),
        ("cycle",),
        (relate("t1", "blocks", "t2"),),
        (*TASKS, relate("t0", "blocks", "t1")),
    ),
    Case("self-loop", ARTICLE, (relate("t1", "blocks", "t1"),), ("cycle",), (relate("t1", "blocks", "t2"),), TASKS),
    Case(
        "cycle-over-two-relations",
        "types: {T: {}}\nrelations: {r: {acyclic_with: [s]}, s: {}}",
        (relate("c", "s", "a"),),
        ("cycle",),
        (relate("a", "s", "c"),),
        (*(create(i, "T") for i in "abc"), relate("a", "r", "b"), relate("b", "s", "c")),
    ),
    Case(
        "cycle-over-an-inverse",
        "types: {T: {}}\nrelations: {r: {acyclic: true, inverse: back}}",
        (relate("a", "back", "b"),),
        ("cycle",),
        (relate("b", "back", "a"),),
        (create("a", "T"), create("b", "T"), relate("a", "r", "b")),
    ),
    Case(
        "acyclic-in-a-rule",
        "types: {T: {}}\nrelations: {r: {}}\nconstraints: [{relation: r, rule: acyclic}]",
        (relate("a", "r", "a"),),
        ("cycle",),
        (relate("a", "r", "b"),),
        (create("a", "T"), create("b", "T")),
    ),
    Case(
        "relation-properties",
        "types: {T: {}}\nrelations: {r: {properties: {status: 'enum(yes, no)'}}}",
        (relate("a", "r", "a", status="may", x=1),),
        ("value_invalid", "property_unknown"),
        (relate("a", "r", "a", status="no"),),
        (create("a", "T"),),
    ),
    Case(
        "relation-property-required",
        "types: {T: {}}\nrelations: {r: {properties: {w: {type: integer, required: true}}}}",
        (relate("a", "r", "a"),),
        ("property_missing",),
        (relate("a", "r", "a", w=1),),
        (create("a", "T"),),
    ),
    Case(
        "type-level-validate",
        "types: {E: {validate: 'end >= start if end exists'}}",
        (create("e", "E", start="2026-01-02", end="2026-01-01"),),
        ("constraint",),
        (create("e", "E", start="2026-01-02"), create("f", "E", start="2026-01-02", end="2026-01-02T01:00")),
    ),
    Case(
        "global-event-rule",
        "types: {Event: {}}\nconstraints:\n  - Event: end >= start",
        (create("e", "Event", start="2026-01-02T10:00", end="2026-01-02T09:00:00+00:00"),),
        ("constraint",),
        (create("e", "Event", start="2026-01-02T10:00+02:00", end="2026-01-02T09:00"),),
    ),
    Case(
        "rule-is-read-not-guessed",
        "types: {Event: {}}\nconstraints: ['Event: title != \"no weekend restarts\"']",
        (create("e", "Event", title="no weekend restarts"),),
        ("constraint",),
        (create("e", "Event", title="x", start="b", end="a"),),
    ),
    Case(
        "incomparable",
        "types: {Event: {}}\nconstraints: ['Event: end >= start']",
        (create("e", "Event", start=1, end="2"),),
        ("constraint",),
        (create("e", "Event", start=1, end=2),),
    ),
    Case(
        "must-exist",
        "types: {Task: {}, Person: {}}\nconstraints: [Task.assignee must exist]",
        (create("t", "Task", assignee="p9"),),
        ("constraint",),
        (create("t", "Task", assignee="p1"),),
        PEOPLE[:2],
    ),
    Case(
        "transitions",
        ARTICLE
        + "constraints: [{type: Task, rule: 'status transitions: open -> in_progress -> (done|blocked) -> done'}]",
        (update("t1", status="done"),),
        ("constraint",),
        (update("t1", status="in_progress"), update("t1", status="blocked")),
        (task(),),
    ),
    Case(
        "orphan-task",
        "types: {Task: {}, P: {}}\nrelations: {part_of: {}}\n"
        "constraints: ['Task: has_relation(part_of, P) OR has_property(owner)']",
        (create("t", "Task"),),
        ("constraint",),
        (create("t", "Task"), relate("t", "part_of", "p"), create("u", "Task", owner="x")),
        (create("p", "P"),),
    ),
    Case("duplicate-id", ARTICLE, (task(),), ("id_taken",), (task("t2"),), (task(),)),
    Case(
        "duplicate-id-of-another-type",
        ARTICLE,
        (create("t1", "Person"),),
        ("id_taken",),
        (create("t2", "Person"),),
        (task(),),
    ),
    Case(
        "update-of-the-unknown",
        ARTICLE,
        (update("t9", title="x"),),
        ("id_unknown",),
        (update("t1", title="x"),),
        (task(),),
    ),
    Case("delete-of-the-unknown", ARTICLE, (delete("t9"),), ("id_unknown",), (delete("t1"),), (task(),)),
    Case(
        "unrelate-of-the-unknown",
        ARTICLE,
        (unrelate("t1", "blocks", "t3"),),
        ("edge_unknown",),
        (unrelate("t1", "blocks", "t2"),),
        (*TASKS, relate("t1", "blocks", "t2")),
    ),
    Case(
        "unique",
        "types: {P: {properties: {mail: {type: email, unique: true}}}}",
        (create("b", "P", mail="a@b.org"),),
        ("not_unique",),
        (create("b", "P", mail="b@b.org"),),
        (create("a", "P", mail="a@b.org"),),
    ),
    Case(
        "unique-together",
        "types: {P: {unique: [[a, b]]}}",
        (create("y", "P", a=1.0, b=2),),
        ("not_unique",),
        (create("y", "P", a=1, b=3),),
        (create("x", "P", a=1, b=2),),
    ),
    Case("missing-schema", "{}", (create("a", "Task"),), ("type_unknown",), ()),
]
IDS = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_is_declared_is_refused(case: Case) -> None:
    rules = schema(case.rules)
    assert codes(rules, case.before, *case.wrong) == list(case.refused)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_is_right_is_taken(case: Case) -> None:
    rules = schema(case.rules)
    assert codes(rules, case.before, *case.right) == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_whole_graph_is_judged_as_its_last_change_was(case: Case) -> None:
    rules = schema(case.rules)
    assert validate(graph(rules, *case.before), rules).problems == []
    after = asked(rules, case.before, *case.right)
    assert validate(after.view, rules).problems == []
    only_of_changes = {"id_taken", "id_unknown", "edge_unknown", "still_related"}
    if not only_of_changes & set(case.refused) and "transition" not in case.name:
        wrong = {problem.code for problem in validate(graph(rules, *case.before, *case.wrong), rules).problems}
        assert set(case.refused) <= wrong


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_violated_constraint_has_its_row_in_the_coverage(case: Case) -> None:
    rules = schema(case.rules)
    rows = coverage(rules, validate(graph(rules, *case.before, *case.wrong), rules).tally)
    only_of_changes = {"id_taken", "id_unknown", "edge_unknown", "still_related", "secret_value", "id_invalid"}
    unknown_names = {"type_unknown", "relation_unknown"}
    if not (only_of_changes | unknown_names) & set(case.refused) and "transition" not in case.name:
        assert [row for row in rows if row.violated and row.checked]


def test_a_constraint_without_facts_is_marked_as_idle() -> None:
    rules = schema(ARTICLE)
    rows = {row.where: row for row in coverage(rules, validate(Overlay(Empty(), ()), rules).tally)}
    assert rows["relations.blocks.acyclic"].is_idle
    assert all(row.is_idle for row in rows.values() if row.checked is not None)
