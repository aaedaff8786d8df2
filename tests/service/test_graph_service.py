"""Changes on disk: refused without a byte changed, whole or absent under SIGKILL; appended lines are judged."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbd.core.operations import MAX_NESTING, record_of
from kbd.core.schema_reading import read_schema
from kbd.errors import LedgerDamaged, Refused
from kbd.service.graph import checking, past
from kbd.service.graph.changing import GraphRefused, Request, change
from kbd.service.graph.checking import Pieces
from kbd.service.graph.reading import Place, no_knowledge, opened
from kbd.service.graph.size import Size, measure
from kbd.store import eventlog
from tests.core.graph_world import ARTICLE, create, delete, relate, schema, update
from tests.e2e.killing import Counter, Death

NOW = datetime(2026, 2, 1, tzinfo=UTC)
RULES = schema(ARTICLE)


def task(ident, **properties):
    return create(ident, "Task", **{"title": "x", "status": "open"} | properties)


@pytest.fixture
def place(tmp_path):
    return Place(str(tmp_path / "graph.jsonl"), str(tmp_path / "schema.yaml"), tmp_path / "state")


def run(place, *operations, rules=RULES, dry_run=False):
    return change(place, rules, Request(lambda _: operations, "p", dry_run=dry_run))


def ids(place, rules=RULES):
    with opened(place, rules) as graph:
        return sorted(entity.id for entity in graph.own.entities())


def direct(place, *records):
    with open(place.log, "a") as file:
        file.writelines((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)


def test_a_change_is_read_back(place):
    run(place, task("t"), task("u"), relate("t", "blocks", "u"))
    run(place, update("t", status="done"))
    with opened(place, RULES) as graph:
        assert graph.own.entity("t").properties["status"] == "done"
        assert [edge[:3] for edge in graph.own.edges()] == [("t", "blocks", "u")]


def test_a_refused_change_changes_no_byte(place):
    with pytest.raises(GraphRefused):
        run(place, create("c", "Cat"))
    assert not Path(place.log).exists()
    run(place, task("t"))
    direct(place, "# a comment", '{"op": "torn')
    Path(place.log).write_bytes(Path(place.log).read_bytes()[:-1])
    before = Path(place.log).read_bytes(), os.stat(place.log).st_mtime_ns
    for wrong in (task("t"), create("c", "Cat"), relate("t", "blocks", "t"), delete("u")):
        with pytest.raises(GraphRefused) as refusal:
            run(place, task("ok"), wrong)
        assert refusal.value.problems
        assert refusal.value.exit_code == 6
    assert (Path(place.log).read_bytes(), os.stat(place.log).st_mtime_ns) == before


@pytest.mark.parametrize("depth", range(MAX_NESTING - 4, MAX_NESTING + 3))
def test_what_is_taken_is_read_again_however_deep_it_is(place, depth):
    value = functools.reduce(lambda inner, _: [inner], range(depth), 0)
    rules = schema("types: {T: {}}")
    try:
        run(place, create("deep", "T", x=value), rules=rules)
        taken = ["deep"]
    except GraphRefused:
        taken = []
    shutil.rmtree(place.state_dir)
    assert ids(place, rules) == taken
    assert checking.check_graph(place, rules, NOW).problems == []


def test_a_dry_run_writes_nothing(place):
    assert len(run(place, task("t"), dry_run=True).operations) == 1
    assert not Path(place.log).exists()


@pytest.mark.parametrize(
    "tail", ["", '{"op": "create", "ent', '{"op":"delete","id":"x","plan":"q","step":1,"steps":2}\n']
)
def test_what_a_crash_left_is_cut_by_the_next_change(place, tail):
    run(place, task("t"))
    with open(place.log, "a") as file:
        file.write(tail)
    run(place, task("u"))
    assert ids(place) == ["t", "u"]
    assert all(json.loads(line)["op"] == "create" for line in Path(place.log).read_text().splitlines())


def test_a_last_line_without_end_counts_and_is_ended(place):
    run(place, task("t"))
    with open(place.log, "a") as file:
        file.write(json.dumps(record_of(task("u"))))
    assert ids(place) == ["t", "u"]
    with pytest.raises(GraphRefused):
        run(place, task("u"))
    run(place, relate("t", "blocks", "u"))
    assert [json.loads(line)["op"] for line in Path(place.log).read_text().splitlines()] == [
        "create",
        "create",
        "relate",
    ]
    assert checking.check_graph(place, RULES, NOW).problems == []


def test_a_log_of_which_no_line_is_an_operation_is_damaged(place):
    Path(place.log).write_bytes(b"\x7fELF\x01\x02\n\x00\x00\n")
    with pytest.raises(LedgerDamaged) as damage:
        ids(place)
    assert damage.value.exit_code == 5
    with pytest.raises(LedgerDamaged):
        run(place, task("t"))
    assert Path(place.log).read_bytes() == b"\x7fELF\x01\x02\n\x00\x00\n"


def killed(place, operations, death):
    """Make a change in a child that dies; return whether it lived to its end."""
    child = os.fork()
    if child == 0:
        Counter(death).install()
        try:
            run(place, *operations)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


@pytest.mark.parametrize("how", ["before", "after", "torn"])
def test_a_plan_is_whole_or_absent_under_sigkill_at_each_call(tmp_path, how):
    plan = [task("a"), task("b"), relate("a", "blocks", "b"), update("b", title="y")]
    lived, call = False, 0
    seen = set()
    # A call that fails by itself, such as mkdir of what is there, kills nobody: the first few do not end the campaign.
    while not lived or call < 6:
        call += 1
        place = Place(str(tmp_path / f"{call}" / "graph.jsonl"), "", tmp_path / f"{call}" / "state")
        run(place, task("t"))
        lived = killed(place, plan, Death(call, how))
        found = ids(place)
        assert found in (["t"], ["a", "b", "t"])
        seen.add(len(found))
        run(place, task("u"))
        assert ids(place) == sorted([*found, "u"])
        findings = checking.check_graph(place, RULES, NOW)
        assert (findings.problems, findings.entities) == ([], len(found) + 1)
    assert seen == {1, 3}


PIECES = Pieces()


def judge(place, rules=RULES, schema_id="1", pieces=PIECES):
    return checking.judge_appended(place, rules, schema_id, no_knowledge, pieces)


def judged(place):
    return [(problem.where, problem.code) for problem in judge(place).problems]


def test_what_agents_append_is_judged_with_line_and_author(place):
    run(place, task("t"))
    assert judged(place) == []
    stamp = {"timestamp": "2026-01-31T10:00:00+00:00", "agent": "mailer"}
    direct(place, {"op": "create", "entity": {"id": "u", "type": "Task", "properties": {"title": "x"}}, **stamp})
    direct(place, "{broken", {"op": "relate", "from": "t", "rel": "blocks", "to": "t", **stamp})
    direct(place, {"op": "delete", "id": "zz", **stamp})
    problems = judge(place).problems
    assert [(problem.where, problem.code) for problem in problems] == [
        ("graph.jsonl:3", "bad_json"),
        ("graph.jsonl:5", "unknown_id"),
        ("graph.jsonl:2: Task u", "property_missing"),
        ("graph.jsonl:4: t", "cycle"),
    ]
    assert all("mailer" in p.what for p in problems if p.code != "bad_json")
    # What is wrong is said until it is mended, without being read again.
    assert judge(place).problems == problems


def test_what_a_later_line_mends_is_no_problem(place):
    direct(place, record_of(create("u", "Task", title="x")))
    assert [code for _, code in judged(place)] == ["property_missing"]
    direct(place, record_of(update("u", status="open")))
    assert judged(place) == []


def test_a_deletion_that_leaves_relations_behind_is_a_problem_of_its_line(place):
    run(place, task("t"), task("u"), relate("t", "blocks", "u"))
    assert judged(place) == []
    direct(place, record_of(delete("u")))
    assert judged(place) == [("graph.jsonl:4: t blocks u", "end_dangling")]


def test_a_log_that_has_shrunk_is_judged_from_its_start(place):
    run(place, task("t"), task("u"))
    assert judged(place) == []
    Path(place.log).write_text(json.dumps(record_of(create("c", "Cat"))) + "\n")
    assert [code for _, code in judged(place)] == ["type_unknown"]


def test_another_schema_is_judged_by_from_the_start(place):
    run(place, task("t"))
    assert judge(place).problems == []
    assert [one.code for one in judge(place, schema("types: {Cat: {}}"), "2").problems] == ["type_unknown"]


def test_a_long_log_is_covered_piece_by_piece_and_what_is_new_at_once(place, monkeypatch):
    monkeypatch.setattr(checking, "_BLOCK_BYTES", 1000)
    direct(place, record_of(create("bad", "Task", title="x")), *(record_of(task(f"t{n}")) for n in range(100)))
    direct(place, record_of(create("worse", "Task", title="x")))
    steps, found = 0, set()
    while True:
        step = judge(place, pieces=Pieces(2000, 2000))
        found = {problem.where for problem in step.problems}
        steps += 1
        if steps == 2:
            direct(place, record_of(create("new", "Cat")))
        elif steps == 3:
            assert found == {"graph.jsonl:1: Task bad", "graph.jsonl:103: Cat new"}
        if step.is_whole and steps > 2:
            break
    assert 5 < steps < 20
    assert found == {"graph.jsonl:1: Task bad", "graph.jsonl:102: Task worse", "graph.jsonl:103: Cat new"}
    assert judge(place, pieces=Pieces(2000, 2000)).is_whole


def test_a_whole_log_is_checked_line_by_line_and_as_it_stands(place):
    rules = schema(ARTICLE + "constraints: [{type: Task, rule: 'status transitions: open -> done'}]")
    direct(
        place,
        record_of(task("t")),
        record_of(task("t")),
        record_of(update("t", status="blocked")),
        record_of(update("x", status="done")),
        record_of(task("u")) | {"timestamp": "soon"},
        record_of(task("v")) | {"timestamp": "2099-01-01T00:00:00Z"},
        {"op": "create", "entity": {"id": "w", "type": "Task", "properties": {"title": "x", "status": "open"}}},
        "# why",
    )
    findings = checking.check_graph(place, rules, NOW)
    assert [(p.where.partition(": ")[0], p.code) for p in findings.problems] == [
        ("graph.jsonl:2", "duplicate_id"),
        ("graph.jsonl:3", "constraint"),
        ("graph.jsonl:4", "unknown_id"),
        ("graph.jsonl:5", "bad_timestamp"),
        ("graph.jsonl:6", "future_timestamp"),
    ]
    assert [note.code for note in findings.notes] == ["missing_timestamp", "comment_line"]


def at(operation, time):
    return operation._replace(at=time)


def test_the_graph_as_of_a_time_and_its_history_survive_compacting(place):
    times = [f"2026-01-0{day}T00:00:00+00:00" for day in range(1, 8)]
    run(place, at(task("t"), times[0]))
    run(place, at(task("u"), times[1]))
    run(place, at(update("t", status="done"), times[2]), at(relate("t", "blocks", "u"), times[2]))
    states = {time: past_content(place, time) for time in times}
    history = [one.operation for one in past.history(place, "t")]
    assert len(history) == 3
    for number, time in enumerate(times[3:5]):
        before, after = past.compact(place, RULES, time, dry_run=False)
        assert (before, after) == (4, 4) if not number else (5, 5)
        assert {moment: past_content(place, moment) for moment in times[:4]} == {m: states[m] for m in times[:4]}
        assert [one.operation for one in past.history(place, "t")][:3] == history
        assert checking.check_graph(place, RULES, NOW).problems == []
        run(place, at(task(f"n{number}"), times[5]))
    assert len(past.history(place, "n0")) == 1
    assert ids(place) == ["n0", "n1", "t", "u"]


def past_content(place, time):
    view = past.as_of(place, RULES, datetime.fromisoformat(time))
    return {e.id: dict(e.properties) for e in view.entities()}, {edge[:3] for edge in view.edges()}


def test_compacting_writes_one_form_and_refuses_to_lose_a_line(place):
    rules = read_schema(b"types: {Task: {aliases: [job]}}\nrelations: {r: {inverse: back}}", "s").schema
    direct(place, record_of(create("a", "job")), record_of(create("b", "Task")), record_of(relate("a", "back", "b")))
    before = Path(place.log).read_bytes()
    past.compact(place, rules, "2026-01-01T00:00:00+00:00", dry_run=True)
    assert Path(place.log).read_bytes() == before
    past.compact(place, rules, "2026-01-01T00:00:00+00:00", dry_run=False)
    records = [json.loads(line) for line in Path(place.log).read_text().splitlines()]
    assert [record["op"] for record in records] == ["compact", "create", "create", "relate"]
    assert (records[1]["entity"]["type"], records[3]["from"], records[3]["rel"]) == ("Task", "b", "r")
    assert Path(past.archive_of(place.log)).read_bytes() == before
    direct(place, "{broken")
    with pytest.raises(Refused):
        past.compact(place, rules, "2026-01-02T00:00:00+00:00", dry_run=False)


def test_an_entity_that_has_outgrown_a_line_is_not_compacted_away(place, monkeypatch):
    rules = schema("types: {T: {}}")
    run(place, create("t", "T", a="x" * 400), rules=rules)
    run(place, update("t", b="y" * 400), rules=rules)
    before = Path(place.log).read_bytes()
    monkeypatch.setattr(eventlog, "MAX_LINE_BYTES", 800)
    with pytest.raises(Refused, match="t has grown longer than a line may be"):
        past.compact(place, rules, "2026-01-01T00:00:00+00:00", dry_run=False)
    assert Path(place.log).read_bytes() == before


def test_a_graph_is_measured_by_what_a_database_would_be_for(place):
    assert measure(place, RULES, 10) == Size(0, 0, "", 0, 0)
    run(place, *map(task, "abcdef"))
    run(place, *(relate(one, "blocks", two) for one, two in ("ab", "bc", "cd", "de", "bf")))
    # b has three relations; within three of them lie a, c, f, d and e.
    assert measure(place, RULES, 10) == Size(6, 5, "b", 5, 0)
    assert measure(place, RULES, 3).reach == 3
    with open(place.log, "a") as log:
        for name in ("me", "you", "me"):
            log.write(json.dumps(record_of(update("a", title=name)._replace(by=name))) + "\n")
    assert measure(place, RULES, 10).writers == 2
