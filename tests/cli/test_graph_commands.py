"""`kbd graph` from outside: the skill's command line, exit codes, paths held to their root, contracts, knowledge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.world import World
from tests.core.test_graph_plans import FIVE, SKILL

LOG, SCHEMA = "memory/ontology/graph.jsonl", "memory/ontology/schema.yaml"


@pytest.fixture
def graph(world, monkeypatch):
    (world.root / "work").mkdir()
    monkeypatch.chdir(world.root / "work")
    return Graph(world)


class Graph:
    """The command run in an empty working directory."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, *args: str, code: int = 0):
        result = self.world.run("graph", *args)
        assert result.exit_code == code, result.output
        return result

    def json(self, *args: str, code: int = 0):
        return json.loads(self(*args, code=code).stdout)

    def person(self, ident: str, name: str = "A") -> None:
        self("create", "--type", "Person", "--props", json.dumps({"name": name}), "--id", ident)


def test_init_makes_what_is_missing_and_keeps_what_is_there(graph):
    graph("init", "--dry-run")
    assert not Path("memory").exists()
    graph("init")
    Path(SCHEMA).write_text("types: open\n")
    graph("init")
    assert (Path(LOG).read_bytes(), Path(SCHEMA).read_text()) == (b"", "types: open\n")


def test_the_command_line_of_the_skill_works_with_its_output(graph):
    graph("init")
    made = graph.json("create", "--type", "Person", "--props", '{"name":"Alice"}', "--id", "p_001")
    assert list(made) == ["id", "type", "properties", "created", "updated"]
    project = graph.json("create", "-t", "Project", "-p", '{"name":"Web"}')
    assert project["id"].startswith("proj_")
    relation = graph.json("relate", "--from", project["id"], "--rel", "has_owner", "--to", "p_001")
    assert [relation[key] for key in ("op", "from", "rel", "to", "properties")] == [
        "relate",
        project["id"],
        "has_owner",
        "p_001",
        {},
    ]
    assert graph.json("get", "--id", "p_001") == made
    assert graph.json("list", "--type", "Person") == [made]
    assert graph.json("query", "--type", "Person", "--where", '{"name":"Alice"}') == [made]
    assert graph.json("related", "--id", project["id"], "--rel", "has_owner") == [
        {"relation": "has_owner", "entity": made}
    ]
    assert graph.json("related", "--id", "p_001", "--dir", "both")[0]["direction"] == "incoming"
    assert graph.json("update", "--id", "p_001", "--props", '{"phone":"1"}')["properties"] == {
        "name": "Alice",
        "phone": "1",
    }
    assert graph("delete", "--id", "p_001", "--cascade").stdout == "Deleted: p_001\n"
    assert graph("validate").stdout == "Graph is valid.\n"
    assert [json.loads(line)["op"] for line in Path(LOG).read_text().splitlines()] == [
        *("create", "create", "relate", "update", "unrelate", "delete")
    ]


def test_the_options_for_files_stand_after_the_command(graph):
    Path("s.yaml").write_text("types: open\n")
    graph("create", "--type", "X", "--id", "x", "--graph", "a/g.jsonl", "--schema", "s.yaml")
    assert graph.json("list", "-g", "a/g.jsonl", "-s", "s.yaml")[0]["id"] == "x"


def test_a_question_about_what_nobody_knows_is_answered_with_what_is_known(graph):
    graph("init")
    graph.person("p")
    assert "did you mean 'Person'?" in graph("list", "--type", "Persom").stderr
    assert graph("list", "--type", "Task").stderr == ""
    assert "Entity not found: q" in graph("related", "--id", "q").stderr


def test_json_answers_carry_a_version(graph):
    graph("init")
    graph.person("p")
    for command in (
        ["get", "--id", "p"],
        ["list"],
        ["query"],
        ["related", "--id", "p"],
        ["history", "--id", "p"],
        ["validate"],
        ["coverage"],
        ["init"],
        ["path", "--from", "p", "--to", "p"],
        ["get", "--id", "p", "--at", "2026-06-11"],
    ):
        assert graph.json(*command, "--json")["version"] == 1
    assert graph.json("get", "--id", "q", "--json", code=1)["entity"] is None


REFUSED = [
    (["create", "--type", "Banana"], "no type 'Banana'"),
    (["create", "--type", "Taks", "--props", "{}"], "did you mean 'Task'?"),
    (["create", "--type", "Person", "--id", "p", "--props", '{"name":"B"}'], "the id is taken"),
    (["create", "--type", "Event", "--props", '{"title":"x","start":"2026-01-02","end":"2026-01-01"}'], "end >= start"),
    (
        ["create", "--type", "Credential", "--props", '{"service":"s","secret_ref":"r","password":"hunter2"}'],
        "is forbidden",
    ),
    (["update", "--id", "q", "--props", "{}"], "does not exist"),
    (["delete", "--id", "q"], "does not exist"),
    (["relate", "--from", "p", "--rel", "likes", "--to", "p"], "no relation 'likes'"),
    (["unrelate", "--from", "p", "--rel", "member_of", "--to", "p"], "does not hold"),
    (["get", "--id", "p", "--graph", "../../etc/passwd"], "outside of its root"),
    (["get", "--id", "p", "--schema", "/etc/passwd"], "outside of its root"),
    (["get", "--id", "p", "--graph", "~/x"], "outside of its root"),
    (["get", "--id", "p", "--graph", "link/g.jsonl"], "outside of its root"),
    (["apply", "../plan.yaml"], "outside of its root"),
    (["check", "/etc/passwd"], "outside of its root"),
    (["schema-merge", "--file", "../x"], "outside of its root"),
    (["create", "--type", "Person", "--as", "../SKILL.md"], "outside of its root"),
]


@pytest.mark.parametrize(("command", "what"), REFUSED, ids=[" ".join(command) for command, _ in REFUSED])
def test_a_refusal_is_exit_6_and_changes_no_byte(graph, command, what):
    graph("init")
    graph.person("p")
    Path("link").symlink_to("/tmp")
    before = {path: path.read_bytes() for path in Path("memory").rglob("*") if path.is_file()}
    result = graph(*command, code=6)
    assert what in result.stderr
    assert "hunter2" not in result.output
    assert {path: path.read_bytes() for path in Path("memory").rglob("*") if path.is_file()} == before


WRONG = [
    ["create", "--type", "Person", "--props", "{secret"],
    ["create", "--type", "Person", "--props", "[1]"],
    ["query", "--where", "a ="],
    ["query", "--where", '{"a": ' + "[" * 980 + "]" * 980 + "}"],
    ["related", "--id", "p", "--rel", "a//b"],
    ["list", "--at", "yesterday"],
    ["apply", "none.yaml"],
    ["check", "none.md"],
    ["schema-merge"],
    ["schema-merge", "--data", '{"types": ' + "[" * 900 + "]" * 900 + "}"],
    ["path", "--from", "p", "--to", "q"],
    ["get", "--id", "p", "--base", "nobody"],
    ["get", "--id", "p", "--base", "lessons"],
]


@pytest.mark.parametrize("command", WRONG, ids=[" ".join(command)[:40] for command in WRONG])
def test_wrong_usage_is_exit_2_and_repeats_no_properties(graph, command):
    graph("init")
    assert "{secret" not in graph(*command, code=2).output


def test_a_schema_with_faults_is_exit_2_with_all_of_them(graph):
    graph("init")
    Path(SCHEMA).write_text("types: {T: {requird: [a]}}\nrelation: {}\n")
    for command in (["validate"], ["coverage"], ["create", "--type", "T"], ["list"]):
        output = graph(*command, code=2).stderr
        assert "did you mean 'required'?" in output
        assert "did you mean 'relations'?" in output


def test_without_a_schema_nothing_is_valid(graph):
    graph("create", "--type", "Person", code=6)
    assert "schema_missing" in graph("validate", code=1).stdout


def test_a_foreign_log_is_reported_and_never_crashes(graph):
    graph("init")
    Path(LOG).write_text('# why\n{broken\n{"op":"relate","relation":{"from":"a","rel":"r","to":"b"}}\n{"op":"fly"}\n')
    found = graph.json("validate", "--json", code=1)
    assert {"bad_json", "unknown_operation", "end_dangling", "relation_unknown"} <= {
        p["code"] for p in found["problems"]
    }
    assert {note["code"] for note in found["notes"]} == {"comment_line", "nested_relation", "missing_timestamp"}
    assert "1 unreadable line (" in graph("list").stderr
    graph.person("p")


def test_a_log_that_is_none_is_exit_5(graph):
    graph("init")
    Path(LOG).write_bytes(b"\x00\xff\n" * 5)
    graph("list", code=5)
    graph("create", "--type", "Person", "--props", '{"name":"x"}', code=5)


def test_coverage_marks_what_checked_nothing(graph):
    graph("init")
    graph.person("p")
    rows = {row["where"]: row for row in graph.json("coverage", "--json")["constraints"]}
    assert (rows["types.Person.required.name"]["checked"], rows["types.Person.required.name"]["idle"]) == (1, False)
    assert rows["relations.blocks.acyclic"]["idle"]
    assert "NOTHING" in graph("coverage").stdout


def test_a_plan_is_applied_all_or_none(graph):
    graph("init")
    Path("plan.yaml").write_text(FIVE)
    assert graph("apply", "plan.yaml", code=6).stderr.count("step ") >= 4
    assert Path(LOG).read_bytes() == b""
    graph.person("p_001")
    graph.person("p_002")
    graph("create", "--type", "Project", "--id", "proj_001", "--props", '{"name":"W"}')
    graph("apply", "plan.yaml", "--dry-run")
    assert len(Path(LOG).read_text().splitlines()) == 3
    assert [one["op"] for one in graph.json("apply", "plan.yaml", "--json")["operations"]] == [
        *("create", "relate", "create", "relate", "create")
    ]
    assert [task["properties"]["status"] for task in graph.json("list", "--type", "Task")] == ["open", "open"]
    assert graph("validate").exit_code == 0
    assert len(graph.json("history", "--id", "p_001")) == 1


def test_a_skill_is_held_to_its_contract(graph):
    graph("init")
    Path("SKILL.md").write_bytes(SKILL)
    graph.person("p_001")
    task = json.dumps({"title": "x", "assignee": "p_001"})
    graph("create", "--type", "Task", "--id", "t", "--props", task, "--as", "SKILL.md")
    assert json.loads(Path(LOG).read_text().splitlines()[-1])["by"] == "tasks"
    for command in (
        ["create", "--type", "Person", "--props", '{"name":"x"}'],
        ["create", "--type", "Task", "--props", '{"title":"x"}'],
        ["create", "--type", "Task", "--props", task.replace("p_001", "p_009")],
        ["create", "--type", "Task", "--props", '{"title":"x","status":"done","assignee":"p_001"}'],
        ["update", "--id", "p_001", "--props", '{"name":"x"}'],
        ["list", "--type", "Note"],
    ):
        graph(*command, "--as", "SKILL.md", code=6)
    graph("create", "--type", "Note", "--props", '{"content":"x"}')
    assert {entity["type"] for entity in graph.json("list", "--as", "SKILL.md")} == {"Person", "Task"}
    assert graph("check", "SKILL.md").stdout.startswith("reads: ")
    Path("SKILL.md").write_bytes(SKILL.replace(b"Task, Action", b"Tusk"))
    assert "did you mean 'Task'?" in graph("check", "SKILL.md", code=1).stdout
    graph("list", "--as", "SKILL.md", code=2)


def test_entries_are_entities_that_a_task_can_be_motivated_by(graph):
    graph("init")
    books = graph.world.ledger()
    books.entry("Lock fd leaked on exception path")
    relations = graph.world.root / "kb" / ".knowledge-graph.yaml"
    relations.write_text(
        '- {s: "Lock fd leaked on exception path", p: applies_to, o: src/a.py, c: 2026-05-19, u: 2026-05-19}\n'
    )
    (entry,) = graph.json("list", "--type", "Pitfall")
    assert (entry["origin"], entry["properties"]["title"]) == ("knowledge", "Lock fd leaked on exception path")
    graph("create", "--type", "Project", "--id", "w", "--props", '{"name":"W"}')
    graph("create", "--type", "Task", "--id", "t", "--props", '{"title":"x"}')
    graph("relate", "--from", "w", "--rel", "has_task", "--to", "t")
    graph("relate", "--from", "t", "--rel", "motivated_by", "--to", entry["id"])
    graph("relate", "--from", "t", "--rel", "touches", "--to", "file:src/a.py")
    walk = "has_task[status = open]/touches/~applies_to[type = Pitfall]"
    assert [one["entity"]["id"] for one in graph.json("related", "--id", "w", "--rel", walk)] == [entry["id"]]
    graph("update", "--id", entry["id"], "--props", '{"title":"y"}', code=6)
    assert graph("validate").exit_code == 0
    exported = json.loads(graph.world.run("export", "--format", "json").stdout)
    assert {one["id"] for one in exported["entities"]} == {"w", "t", entry["id"], "file:src/a.py"}
    assert "applies_to" in {one["rel"] for one in exported["relations"]}
    for format_ in ("cypher", "graphml", "turtle"):
        assert graph.world.run("export", "--format", format_).exit_code == 0


def test_the_schema_is_extended_and_not_rewritten(graph):
    graph("init")
    before = Path(SCHEMA).read_text().splitlines()
    fragment = '{"types":{"Bug":{"required":["title"]},"Task":{"properties":{"points":"integer"}}}}'
    graph("schema-append", "--data", fragment, "--dry-run")
    assert Path(SCHEMA).read_text().splitlines() == before
    assert graph.json("schema-append", "--data", fragment)["types"]["Bug"] == {"required": ["title"]}
    after = Path(SCHEMA).read_text().splitlines()
    rest = iter(after)
    assert all(line in rest for line in before)
    assert len(after) == len(before) + 3
    graph("schema-merge", "--data", '{"types":{"Bug":{"x":1}}}', code=2)
    Path("more.yaml").write_text("types: {Bug: {required: [severity]}}\n")
    graph("schema-merge", "--file", "more.yaml")
    graph("create", "--type", "Bug", "--props", '{"title":"x"}', code=6)


def test_the_past_is_shown_and_survives_compacting(graph):
    graph("init")
    graph.person("p", "Old")
    graph.world.now = "2026-06-13"
    graph("update", "--id", "p", "--props", '{"name":"New"}')
    graph.world.now = "2026-06-14"
    assert graph.json("get", "--id", "p", "--at", "2026-06-12")["properties"] == {"name": "Old"}
    graph("compact")
    assert graph.json("get", "--id", "p", "--at", "2026-06-12")["properties"] == {"name": "Old"}
    assert graph.json("get", "--id", "p", "--at", "2026-06-14")["properties"] == {"name": "New"}
    assert [one["op"] for one in graph.json("history", "--id", "p")] == ["create", "update"]
    assert graph("validate").exit_code == 0


def test_what_is_so_already_is_told_and_writes_nothing(graph):
    graph("init")
    for ident in ("p", "q"):
        graph.person(ident)
    relate = ["relate", "--from", "p", "--rel", "related_to", "--to", "q"]
    graph(*relate)
    before = Path(LOG).read_bytes()
    assert "is so already" in graph("relate", "--from", "q", "--rel", "related_to", "--to", "p").stderr
    assert Path(LOG).read_bytes() == before


def test_control_characters_of_the_graph_do_not_reach_the_terminal(graph):
    graph("init")
    graph.person("p", "a\x1b[31m\x9b2J\u202eb")
    for command in (["get", "--id", "p"], ["list"], ["history", "--id", "p"], ["get", "--id", "p", "--json"]):
        assert not any(char in graph(*command).stdout for char in "\x1b\x9b\u202e")
