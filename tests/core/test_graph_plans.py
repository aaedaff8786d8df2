"""Plans, contracts and questions."""

from __future__ import annotations

import textwrap
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.bridge import Bridged
from kbd.core.constraints import RuleFault
from kbd.core.contracts import read_contract
from kbd.core.graph import prepare
from kbd.core.graph_query import Query, condition_of, hops_of
from kbd.core.graph_state import Overlay
from kbd.core.plans import PlanFault, operations_of, read_plan
from kbd.core.schema_default import DEFAULT_SCHEMA
from tests.core.graph_world import ARTICLE, create, delete, graph, relate, schema, unrelate, update
from tests.core.test_graph_changes import BRIDGE, KNOWLEDGE

FIVE = """
- 'CREATE Event { title: "Team Sync", attendees: [p_001, p_002] }'
- RELATE Event -> has_project -> proj_001
- 'CREATE Task { title: "Prepare agenda", assignee: p_001 }'
- RELATE Task -> for_event -> event_001
- 'CREATE Task { title: "Send summary", assignee: p_001, blockers: [task_001] }'
"""
FIVE_AS_OPERATIONS = """
plan: Schedule team meeting and create follow-up tasks
steps:
  - {op: create, type: Event, as: sync, properties: {title: Team Sync, attendees: [p_001, p_002]}}
  - {op: relate, from: $sync, rel: has_project, to: proj_001}
  - {op: create, type: Task, properties: {title: Prepare agenda, assignee: p_001}}
  - {op: relate, from: $3, rel: for_event, to: $1}
  - {op: create, type: Task, id: summary, properties: {title: Send summary, assignee: p_001, blockers: [$3]}}
"""
WORLD = (
    create("p_001", "Person", name="A"),
    create("p_002", "Person", name="B"),
    create("proj_001", "Project", name="W", status="active"),
)


def planned(text, rules, view):
    plan = read_plan(textwrap.dedent(text).encode(), "plan.yaml")
    assert plan.problems == ()
    numbers = count(1)
    return operations_of(
        plan, view, rules, lambda type_: f"{type_[:4].lower()}{next(numbers)}", "now", lambda ident: []
    )


@pytest.mark.parametrize("text", [FIVE, FIVE_AS_OPERATIONS])
def test_the_plan_of_the_article_applies_against_the_schema_that_init_ships(text):
    rules = schema(DEFAULT_SCHEMA)
    view = graph(rules, *WORLD)
    prepared = prepare(view, rules, planned(text, rules, view))
    assert prepared.problems == []
    assert [one.kind for one in prepared.operations] == ["create", "relate", "create", "relate", "create"]
    first, last = prepared.operations[2], prepared.operations[4]
    assert (last.properties["blockers"], last.properties["status"]) == ([first.id], "open")


@pytest.mark.parametrize("text", [FIVE, FIVE_AS_OPERATIONS])
def test_the_plan_of_the_article_is_refused_with_all_reasons_against_its_own_schema(text):
    rules = schema(ARTICLE)
    view = graph(rules, *WORLD)
    found = [(p.where.split(":")[0], p.code) for p in prepare(view, rules, planned(text, rules, view)).problems]
    assert found == [
        ("step 1", "type_unknown"),
        ("step 2", "relation_unknown"),
        ("step 3", "property_missing"),
        ("step 4", "relation_unknown"),
        ("step 5", "property_missing"),
    ]


def test_a_plan_fails_at_the_step_that_names_nobody():
    rules = schema(DEFAULT_SCHEMA)
    view = graph(rules, *WORLD[1:])
    found = {(p.where.split(":")[0], p.code) for p in prepare(view, rules, planned(FIVE, rules, view)).problems}
    assert found == {(f"step {number}", "ref_dangling") for number in (1, 3, 5)}


def test_a_reference_to_a_later_step_leads_nowhere():
    with pytest.raises(PlanFault, match="names no earlier step"):
        planned(
            "- {op: relate, from: $2, rel: r, to: x}\n- {op: create, type: T}", schema(ARTICLE), graph(schema(ARTICLE))
        )


def test_an_id_that_exists_is_no_reference():
    rules = schema(DEFAULT_SCHEMA)
    view = graph(rules, *WORLD, create("task_001", "Task", title="old", status="open"))
    last = planned(FIVE, rules, view)[-1]
    assert last.properties["blockers"] == ["task_001"]


def test_a_text_that_looks_like_a_reference_stays_in_a_text_property():
    rules = schema("types: {T: {properties: {title: string, next: ref(T)}}}")
    steps = planned(
        "- {op: create, type: T}\n- {op: create, type: T, properties: {title: $1, next: $1}}", rules, graph(rules)
    )
    assert steps[1].properties == {"title": "$1", "next": steps[0].id}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "{}",
        "[]",
        "- a b",
        "- {op: fly}",
        "- {op: create}",
        "- {op: relate, from: a}",
        "- {op: delete, idd: x}",
        "[",
        "- {op: create, type: T, properties: [1]}",
        "- CREATE T {",
        "- {op: update}",
        "steps: 3",
        "- [[[]]]",
        "- CREATE",
        f"- CREATE T{' ' * 200_000}x",
        f"- RELATE {'->' * 480} x y",
        f"- RELATE {'->' * 100_000} x y",
        f"- UPDATE t {'{' * 200_000}",
    ],
)
def test_what_is_no_plan_is_told(text):
    plan = read_plan(text.encode(), "plan.yaml")
    assert plan.problems
    assert plan.steps == ()


@settings(deadline=None)
@given(st.text(max_size=80))
def test_no_text_crashes_the_reader_of_plans(text):
    plan = read_plan(text.encode("utf-8", "replace"), "plan.yaml")
    assert bool(plan.steps) != bool(plan.problems)


SKILL = b"""---
name: tasks
ontology:
  reads: [Task, Project, Person]
  writes: [Task, Action]
  preconditions:
    - "Task.assignee must exist"
  postconditions:
    - "Created Task has status=open"
---
# Tasks
"""


def contracted(rules, before, *steps, skill=SKILL):
    contract = read_contract(skill, "SKILL.md", rules).contract
    return [problem.code for problem in prepare(graph(rules, *before), rules, steps, contract).problems]


TASK = {"title": "x", "status": "open"}
CONTRACT_CASES = [
    (create("t", "Task", assignee="p_001", **TASK), []),
    (create("t", "Task", **TASK), ["contract_condition"]),
    (create("t", "Task", assignee="p_009", **TASK), ["contract_condition"]),
    (create("t", "Task", assignee="p_001", title="x", status="done"), ["contract_condition"]),
    (create("p", "Person", name="x"), ["contract_write"]),
    (update("p_001", name="x"), ["contract_write"]),
    (delete("p_001"), ["contract_write"]),
    (relate("proj_001", "has_owner", "p_001"), ["contract_write"]),
]


@pytest.mark.parametrize(("step", "refused"), CONTRACT_CASES, ids=range(len(CONTRACT_CASES)))
def test_a_contract_is_held_to(step, refused):
    rules = schema(ARTICLE.replace("types:", "types:\n  Action: {}", 1))
    assert contracted(rules, WORLD, step) == refused


def test_a_condition_on_what_was_created_is_not_asked_of_what_was_updated():
    rules = schema(ARTICLE.replace("types:", "types:\n  Action: {}", 1))
    held = create("t", "Task", assignee="p_001", **TASK)
    assert contracted(rules, (*WORLD, held), update("t", status="done")) == []
    assert (
        contracted(rules, (*WORLD, held, relate("t", "has_owner", "p_001")), unrelate("t", "has_owner", "p_001")) == []
    )


@pytest.mark.parametrize(
    ("front", "code"),
    [
        (b"# no front matter", "contract_unreadable"),
        (b"---\nname: x\n---\n", "contract_unreadable"),
        (b"---\na: [\n---\n", "contract_unreadable"),
        (b"---\nontology: {reads: [Tsk]}\n---\n", "contract_type"),
        (b"---\nontology: {raeds: [Task]}\n---\n", "schema_key"),
        (b"---\nontology: {preconditions: ['x ==']}\n---\n", "contract_rule"),
        (b"---\nontology: {preconditions: ['Created Task has a=b']}\n---\n", "contract_rule"),
        (b"---\nontology: {postconditions: ['Cat.x exists']}\n---\n", "contract_rule"),
        (b"---\nontology: [1]\n---\n", "schema_value"),
    ],
)
def test_a_contract_with_faults_is_told(front, code):
    reading = read_contract(front, "SKILL.md", schema(ARTICLE))
    assert reading.contract is None
    assert [problem.code for problem in reading.problems] == [code]


def test_conditions_may_be_written_as_mappings():
    reading = read_contract(b"---\nontology:\n  preconditions:\n    - Task: title exists\n---\n", "S", schema(ARTICLE))
    assert [one.text for one in reading.contract.preconditions] == ["Task: title exists"]


TASKS = (
    create("t1", "Task", title="Cache", status="open", due="2026-01-10", points=3),
    create("t2", "Task", title="cache again", status="done", points=5),
    create("t3", "任务", title="x", status="进行中"),
)
WHERE = [
    ({}, ["t1", "t2", "t3"]),
    ({"status": "open"}, ["t1"]),
    ({"status": "in_progress"}, ["t3"]),
    ({"points": {">": 3}}, ["t2"]),
    ({"points": {"$gte": 3, "$lt": 5}}, ["t1"]),
    ({"due": {"exists": True}}, ["t1"]),
    ({"due": {"exists": False}}, ["t2", "t3"]),
    ({"title": {"contains": "cache"}}, ["t1", "t2"]),
    ({"or": [{"status": "open"}, {"points": 5}]}, ["t1", "t2"]),
    ({"not": {"status": "open"}}, ["t2", "t3"]),
    ({"status": {"in": ["open", "done"]}, "points": 5}, ["t2"]),
    ({"status": {"ne": "done"}}, ["t1", "t3"]),
    ({"points": {"x": 1}}, []),
]


@pytest.mark.parametrize(("where", "found"), WHERE, ids=map(str, WHERE))
def test_a_query_finds_what_its_conditions_say(where, found):
    rules = schema(DEFAULT_SCHEMA)
    asked = Query(graph(rules, *TASKS), rules)
    assert [entity.id for entity in asked.entities("task", condition_of(where))] == found


@pytest.mark.parametrize("where", [{"or": 3 * [1]}, {"and": []}, {"a": {"in": 3}}])
def test_conditions_that_are_none_are_refused(where):
    with pytest.raises(RuleFault):
        condition_of(where)


def test_one_walk_crosses_graph_and_knowledge():
    rules = schema(BRIDGE)
    held = (create("p", "Project"), create("t", "Task", status="open"), create("u", "Task", status="done"))
    edges = (relate("p", "has_task", "t"), relate("p", "has_task", "u"), relate("t", "touches", "file:src/a.py"))
    asked = Query(Bridged(graph(rules, *held, *edges), lambda: KNOWLEDGE), rules)
    walk = "has_task[status = open]/touches/~applies_to[type = Pitfall]"
    assert [entity.id for entity in asked.walk("p", hops_of(walk, ()))] == ["k-aaaaaa"]
    assert asked.walk("p", hops_of(walk.replace("open", "done"), ())) == []


@pytest.mark.parametrize("walk", ["", "a/", "a//b", "a[", "a[x =]", "/a", "a b", " " * 100_000, "a" + " " * 1990 + "x"])
def test_what_is_no_walk_is_refused(walk):
    with pytest.raises(RuleFault):
        hops_of(walk, ())


def test_related_is_seen_from_both_ends_and_under_either_name():
    rules = schema(DEFAULT_SCHEMA)
    asked = Query(graph(rules, *WORLD, relate("proj_001", "has_owner", "p_001")), rules)
    assert [entity.id for _, _, entity in asked.related("proj_001", "has_owner", "outgoing")] == ["p_001"]
    assert [entity.id for _, _, entity in asked.related("p_001", "owns", "outgoing")] == ["proj_001"]
    assert [way for _, way, _ in asked.related("p_001", None, "both")] == ["incoming"]


def test_a_path_looks_at_each_relation_of_a_dense_graph_twice_at_most():
    rules = schema("types: {T: {}}\nrelations: open")
    names = [f"n{number}" for number in range(60)]
    pairs = [(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
    held = graph(rules, *(create(one, "T") for one in (*names, "far")), *(relate(one, "r", two) for one, two in pairs))
    looked = 0

    class Counted(Overlay):
        def edges_from(self, ident, names=None):
            nonlocal looked
            found = list(super().edges_from(ident, names))
            looked += len(found)
            return found

    assert Query(Counted(held, rules.indexed), rules).path("n0", "far", (), 50) == []
    assert looked == len(pairs)


def test_a_path_of_many_steps_is_found():
    rules = schema("types: {T: {}}\nrelations: open")
    names = [f"n{number}" for number in range(101)]
    steps = [relate(one, "r", two) for one, two in zip(names, names[1:], strict=False)]
    asked = Query(graph(rules, *(create(one, "T") for one in names), *steps), rules)
    assert len(asked.path("n100", "n0", (), 100)) == 100
    assert asked.path("n100", "n0", (), 99) == []


def test_a_property_that_is_a_ref_is_a_step_where_it_is_named():
    rules = schema("""
    types:
      Person: {open: true}
      Task: {properties: {title: string, assignee: ref(Person), blockers: "ref(Task)[]"}}
      Note: {open: true}
    relations: {about: {}}
    """)
    held = (
        *(create(one, "Person") for one in ("p", "q")),
        create("t", "Task", assignee="p"),
        create("u", "Task", assignee="p", blockers=["t"]),
        create("n", "Note", assignee="p"),  # no ref in a note
        relate("n", "about", "u"),
    )
    asked = Query(graph(rules, *held), rules)
    assert [entity.id for _, _, entity in asked.related("p", "assignee", "incoming")] == ["t", "u"]
    assert [entity.id for entity in asked.walk("n", hops_of("about/blockers/assignee/~assignee", ()))] == ["t", "u"]
    assert [edge[:3] for edge in asked.path("n", "t", ["about", "blockers"], 5)] == [
        ("n", "about", "u"),
        ("u", "blockers", "t"),
    ]
    # Without names only relations are looked at, as the skill does.
    assert list(asked.related("p", None, "both")) == []
    assert asked.path("p", "t", (), 5) == []


def test_a_shortest_path_runs_over_relations_in_either_direction():
    rules = schema("types: {T: {}}\nrelations: open")
    held = [*(create(one, "T") for one in "abcd"), relate("a", "r", "b"), relate("c", "s", "b"), relate("c", "r", "d")]
    asked = Query(graph(rules, *held), rules)
    assert [edge[:3] for edge in asked.path("a", "d", (), 5)] == [("a", "r", "b"), ("c", "s", "b"), ("c", "r", "d")]
    assert asked.path("a", "d", (), 2) == []
    assert asked.path("a", "d", ["r"], 5) == []
