"""Changes: one form, all reasons, nothing that is not needed; views agree with each other and with the replay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.bridge import Bridged, Knowledge
from kbd.core.graph import cascade, prepare
from kbd.core.graph_state import Empty, GraphState, Overlay, value_key
from kbd.core.graph_validation import validate
from kbd.core.model import Relation, State
from kbd.core.operations import Edge, Entity, Operation
from tests.core.graph_world import ARTICLE, asked, codes, create, delete, graph, relate, schema, unrelate, update

DRIFT = """
types:
  Project:
    aliases: [项目, project]
    properties:
      name: string
      status: {enum: [active, done], aliases: {进行中: active, in progress: active}, default: active}
      owner: ref(Person)
      team: ref(Person)[]
  Person: {required: [name], aliases: [人]}
relations:
  has_task: {aliases: [任务], inverse: task_of}
  part_of: {inverse: whole_of}
  whole_of: {inverse: part_of}
  knows: {symmetric: true}
"""
P = (create("a", "Person", name="A"), create("b", "Person", name="B"))


def test_what_is_written_has_one_form():
    made = asked(schema(DRIFT), P, create("x", "项目", name="W", status="进行中"), relate("a", "任务", "x")).operations
    assert (made[0].type, made[0].properties["status"], made[1].rel) == ("Project", "active", "has_task")


def test_a_default_fills_what_has_no_value():
    assert asked(schema(DRIFT), (), create("x", "Project", status="")).operations[0].properties == {"status": "active"}


def test_an_undeclared_inverse_is_written_forwards():
    made = asked(schema(DRIFT), P, relate("a", "task_of", "b")).operations
    assert [(one.id, one.rel, one.target) for one in made] == [("b", "has_task", "a")]


@pytest.mark.parametrize(
    ("held", "again"),
    [
        (relate("a", "has_task", "b"), relate("b", "task_of", "a")),
        (relate("a", "part_of", "b"), relate("b", "whole_of", "a")),
        (relate("a", "knows", "b"), relate("b", "knows", "a")),
        (relate("a", "任务", "b"), relate("a", "has_task", "b")),
        (P[0], update("a", name="A")),
    ],
)
def test_what_is_so_already_writes_nothing(held, again):
    prepared = asked(schema(DRIFT), (*P, held), again)
    assert (prepared.operations, prepared.problems) == ([], [])


def test_the_properties_of_a_relation_are_changed_where_it_is_written():
    made = asked(schema(DRIFT), (*P, relate("a", "knows", "b")), relate("b", "knows", "a", since=2020)).operations
    assert [(one.id, one.target, one.properties) for one in made] == [("a", "b", {"since": 2020})]


def test_a_default_of_a_relation_fills_a_new_one_and_keeps_an_old_one():
    rules = schema("types: {T: {}}\nrelations: {r: {properties: {w: {type: integer, default: 1}, v: integer}}}")
    held = (create("a", "T"), relate("a", "r", "a", w=5))
    assert asked(rules, held[:1], relate("a", "r", "a")).operations[0].properties == {"w": 1}
    assert asked(rules, held, relate("a", "r", "a")).operations == []
    assert asked(rules, held, relate("a", "r", "a", v=2)).operations[0].properties == {"w": 5, "v": 2}


def test_ending_a_relation_ends_every_way_it_is_written():
    before = (*P, relate("a", "part_of", "b"), relate("b", "whole_of", "a"))
    made = asked(schema(DRIFT), before, unrelate("b", "whole_of", "a")).operations
    assert {(one.id, one.rel, one.target) for one in made} == {("a", "part_of", "b"), ("b", "whole_of", "a")}


def test_all_reasons_are_told_with_their_steps():
    found = asked(schema(ARTICLE), (), create("t", "Task"), relate("t", "blocks", "u"), create("c", "Cat")).problems
    assert [(problem.where.split(":")[0], problem.code) for problem in found] == [
        ("step 1", "property_missing"),
        ("step 1", "property_missing"),
        ("step 2", "end_dangling"),
        ("step 3", "type_unknown"),
    ]


def test_a_secret_is_never_echoed():
    token = "ghp_0123456789abcdefghijABCDEFGHIJ"
    rules = schema(ARTICLE)
    wrong = [
        create(token, "Task", title="x", status="open"),
        create("t", "Task", title=token, status=token),
        create("c", "Credential", service="s", secret_ref="r", password="hunter2"),
        create("d", "Credential", service="s", secret_ref="r", **{token: 1}),
        relate("t", "blocks", token),
        create("u", token),
        create("v", "Task", title={"a": {token: {"b": token}}}, status="open"),
    ]
    for operation in wrong:
        problems = asked(rules, (), operation).problems
        assert problems
        assert not any(word in str(problem) for problem in problems for word in (token, "hunter2"))


def test_text_that_no_line_can_hold_is_refused():
    assert codes(schema(ARTICLE), (), create("t", "Task", title="\ud800", status="open")) == ["value_invalid"]
    assert codes(schema("types: {T: {}}"), (), create("t", "T", x=[float("nan")])) == ["value_invalid"]


def test_properties_that_are_nested_too_deep_are_refused():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert codes(schema("types: {T: {}}"), (), create("t", "T", x=deep)) == ["value_invalid"]


def test_a_cascade_leaves_nothing_that_leads_to_the_deleted():
    rules = schema(DRIFT)
    before = (
        *P,
        create("x", "Project", owner="a", team=["a", "b"]),
        relate("a", "knows", "b"),
        relate("x", "has_task", "a"),
    )
    held = graph(rules, *before)
    prepared = prepare(held, rules, cascade(held, rules, "a", "now"))
    assert prepared.problems == []
    assert prepared.view.entity("x").properties == {"owner": None, "team": ["b"]}
    assert list(prepared.view.edges()) == []
    assert validate(prepared.view, rules).problems == []


def test_a_cascade_stops_at_what_is_required():
    rules = schema("types: {A: {}, B: {required: [a], properties: {a: ref(A)}}}")
    held = graph(rules, create("a", "A"), create("b", "B", a="a"))
    assert [p.code for p in prepare(held, rules, cascade(held, rules, "a", "now")).problems] == ["property_missing"]


class Counted(Overlay):
    """Counts the relations that were looked at."""

    looked = 0

    def edges_from(self, ident, names=None):
        found = list(super().edges_from(ident, names))
        self.looked += len(found)
        return found

    def edges_to(self, ident, names=None):
        found = list(super().edges_to(ident, names))
        self.looked += len(found)
        return found


def test_the_cascade_of_a_hub_costs_what_it_ends():
    rules = schema("types: {T: {}}\nrelations: {r: {cardinality: one_to_many, inverse: r_of}}")
    spokes = [f"t{number}" for number in range(500)]
    held = Counted(Empty(), rules.indexed)
    for operation in (create("hub", "T"), *(create(one, "T") for one in spokes)):
        held.apply(operation)
    for one in spokes:
        held.apply(relate("hub", "r", one))
    steps = cascade(held, rules, "hub", "now")
    prepared = prepare(held, rules, steps)
    assert (len(steps), prepared.operations, prepared.problems) == (501, steps, [])
    assert held.looked < 10 * len(spokes)


class Chain(Empty):
    """n0 → n1 → … as long as `length`, made while it is looked at; counts what is asked."""

    def __init__(self, length, *, closed=False):
        self.length, self.closed, self.asked = length, closed, 0

    def entity(self, ident):
        number = int(ident[1:]) if ident.startswith("n") else -1
        return Entity(ident, "T", {}) if 0 <= number <= self.length else None

    def edges_from(self, ident, names=None):
        self.asked += 1
        number = int(ident[1:]) if ident.startswith("n") else self.length
        last = [Edge(ident, "r", "n0")] if self.closed and ident == f"n{self.length}" else []
        return [Edge(ident, "r", f"n{number + 1}")] if number < self.length else last

    def edges_to(self, ident, names=None):
        self.asked += 1
        number = int(ident[1:]) if ident.startswith("n") else 0
        return [Edge(f"n{number - 1}", "r", ident)] if number else []

    def entities(self, types=None):
        return (self.entity(f"n{number}") for number in range(self.length + 1))

    def edges(self):
        return (edge for number in range(self.length + 1) for edge in self.edges_from(f"n{number}"))


CHAINED = schema("types: {T: {}}\nrelations: {r: {acyclic: true}}")


def test_a_relation_at_either_end_of_a_chain_of_100_000_costs_little():
    held = Chain(100_000)
    assert prepare(held, CHAINED, [create("x", "T"), relate("n100000", "r", "x")]).problems == []
    assert prepare(held, CHAINED, [create("y", "T"), relate("y", "r", "n0")]).problems == []
    assert held.asked < 50


def test_a_cycle_over_100_000_entities_is_found_without_recursion():
    (problem,) = prepare(Chain(100_000), CHAINED, [relate("n100000", "r", "n0")]).problems
    assert problem.what.endswith("→ n100000")
    found = validate(Chain(10_000, closed=True), CHAINED).problems
    assert [problem.code for problem in found] == ["cycle"]
    assert validate(Chain(2_000), CHAINED).problems == []


def test_warnings_do_not_refuse():
    rules = schema("types: {T: {}}\nconstraints: [{type: T, rule: due exists, enforcement: warn, message: plan it}]")
    prepared = asked(rules, (), create("t", "T"))
    assert (prepared.problems, [w.what for w in prepared.warnings]) == ([], ["plan it: due exists"])
    assert [note.code for note in validate(prepared.view, rules).notes] == ["constraint"]


IDS = st.sampled_from("abcde")
STEPS = st.one_of(
    st.builds(create, IDS, st.sampled_from(["Person", "Project", "项目"]), name=st.sampled_from(["x", "y"])),
    st.builds(update, IDS, name=st.sampled_from(["x", "y", None])),
    st.builds(delete, IDS),
    st.builds(relate, IDS, st.sampled_from(["knows", "has_task", "task_of"]), IDS, w=st.sampled_from([1, 2])),
    st.builds(unrelate, IDS, st.sampled_from(["knows", "has_task", "task_of"]), IDS),
)
UNIQUE = DRIFT.replace("properties:\n      name: string", "unique: [name]\n    properties:\n      name: string")


def content(view):
    edges = {edge[:3]: dict(edge.properties) for edge in view.edges()}
    return {entity.id: entity for entity in view.entities()}, edges


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_a_view_built_step_by_step_is_the_replay(steps):
    state, built = GraphState(), Overlay(Empty(), ["name"])
    assert [state.apply(step) for step in steps] == [built.apply(step) for step in steps]
    assert content(built) == content(Overlay.of(state, ["name"]))
    over = Overlay(Overlay.of(state, ["name"]), ["name"])
    for name in ("x", "y"):
        wanted = {e.id for e in state.entities.values() if e.properties.get("name") == name}
        assert set(built.holders("name", value_key(name))) == set(over.holders("name", value_key(name))) == wanted
    for ident in "abcde":
        for view in (built, over):
            assert {e[:3] for e in view.edges_from(ident)} == {t for t in state.edges if t[0] == ident}
            assert {e[:3] for e in view.edges_to(ident, ["knows"])} == {
                t for t in state.edges if t[2] == ident and t[1] == "knows"
            }


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_what_is_taken_step_by_step_leaves_a_graph_without_problems(steps):
    rules = schema(UNIQUE)
    held = Overlay(Empty(), rules.indexed)
    for step in steps:
        prepared = prepare(held, rules, [step])
        for operation in prepared.operations if not prepared.problems else ():
            assert held.apply(operation) == ""
    found = validate(held, rules)
    assert (found.problems, found.notes) == ([], [])


@settings(deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_a_refused_change_leaves_the_view_as_it_was(steps):
    rules = schema(UNIQUE)
    held = graph(rules, *P)
    before = content(held)
    prepare(held, rules, steps)
    assert content(held) == before


class Row:
    def __init__(self, handle, title, type_):
        self.handle, self.title, self.norm, self.type = handle, title, title.lower(), type_
        self.state, self.file, self.section = State.ACTIVE, "kb/a.md", ""


LESSON = Row("k-aaaaaa", "Lock fd leaked", "pitfall")
KNOWLEDGE = Knowledge(
    [LESSON],
    [Relation("Lock fd leaked", "applies_to", "src/a.py", None, None), Relation("x", "informs", "y", None, None)],
)
BRIDGE = """
types: {Task: {}, Project: {}}
relations:
  has_task: {from_types: [Project], to_types: [Task]}
  touches: {from_types: [Task], to_types: [File]}
  motivated_by: {from_types: [Task], to_types: [Pitfall]}
"""


def bridged(rules, *operations):
    return Bridged(graph(rules, *operations), lambda: KNOWLEDGE)


def test_a_task_can_be_motivated_by_a_pitfall_and_not_by_a_file():
    rules = schema(BRIDGE)
    view = bridged(rules, create("t", "Task"))
    assert prepare(view, rules, [relate("t", "motivated_by", "k-aaaaaa")]).problems == []
    assert [p.code for p in prepare(view, rules, [relate("t", "motivated_by", "file:a")]).problems] == ["end_type"]
    assert [p.code for p in prepare(view, rules, [relate("t", "motivated_by", "k-bbbbbb")]).problems] == [
        "end_dangling"
    ]


@pytest.mark.parametrize("step", [update("k-aaaaaa", title="x"), delete("file:src/a.py")])
def test_knowledge_is_read_only(step):
    rules = schema(BRIDGE)
    assert [p.code for p in prepare(bridged(rules), rules, [step]).problems] == ["read_only"]


def test_a_relation_of_the_knowledge_is_not_ended_in_the_graph():
    rules = schema(BRIDGE + "  applies_to: {}")
    held = ("k-aaaaaa", "applies_to", "file:src/a.py")
    prepared = prepare(bridged(rules), rules, [unrelate(*held)])
    assert ([p.code for p in prepared.problems], prepared.operations) == (["read_only"], [])
    assert (
        prepare(bridged(rules, relate("a", "applies_to", "b")), rules, [unrelate("a", "applies_to", "b")]).problems
        == []
    )


def test_entries_are_not_created_in_the_graph():
    rules = schema(BRIDGE)
    (problem,) = prepare(bridged(rules), rules, [create("x", "Decision")]).problems
    assert "knowledge files hold these" in problem.hint


def test_operations_are_tuples_that_cost_little():
    assert isinstance(create("a", "T"), tuple)
    assert Operation("delete", "a") == Operation("delete", "a", properties={})
