"""The log of a typed graph: a plan is whole or absent wherever its writer is killed, and two writers lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kbd.core.operations import Operation
from kbd.service.graph.changing import Request, change
from kbd.service.graph.reading import Place, opened
from tests.core.graph_world import create, relate, schema, update
from tests.torture.record import note
from tests.torture.tracing import Call, Traced, calls_of, require_strace

RULES = schema("types: {Task: {required: [title]}}\nrelations: {blocks: {acyclic: true}}")
PLAN = (
    create("a", "Task", title="x"),
    create("b", "Task", title="x"),
    relate("a", "blocks", "b"),
    update("b", title="y"),
)
WRITER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from kbd.core.operations import Operation
    from kbd.core.schema import Schema
    from kbd.service.graph.changing import Request, change
    from kbd.service.graph.reading import Place
    log, state, name, count = sys.argv[1:]
    rules = Schema(open_types=True, open_relations=True)
    for number in range(int(count)):
        made = [Operation("create", f"{name}{number}", "T", {}, at="2026-01-31T09:30:00+00:00")]
        change(Place(log, "", Path(state)), rules, Request(lambda _: made, name))
""")


def place_in(folder: Path) -> Place:
    return Place(str(folder / "graph.jsonl"), "", folder / "state")


def run(place: Place, *operations: Operation) -> int:
    change(place, RULES, Request(lambda _: operations, "p"))
    return 0


def ids(place: Place) -> list[str]:
    with opened(place, RULES) as graph:
        return sorted(entity.id for entity in graph.own.entities())


def calls(folder: Path) -> list[Call]:
    """Return the calls of a change that can change the disk."""
    place = laid_out(folder)
    child = Traced(lambda _rest: run(place, *PLAN), folder)
    end = child.end()
    assert end.code == 0, end.said
    assert ids(place) == ["a", "b", "t"]
    return [call for call in calls_of(child.trace) if not call.opens_to_read and "pipe:" not in call.text]


def laid_out(folder: Path) -> Place:
    folder.mkdir()
    place = place_in(folder)
    run(place, create("t", "Task", title="x"))
    return place


def strike(folder: Path, call: Call) -> tuple[bool, bool]:
    """Kill a change at a call; return whether it was reached, and whether the plan is there."""
    place = laid_out(folder)
    end = Traced(lambda _rest: run(place, *PLAN), folder, f"inject={call.name}:signal=SIGKILL:when={call.number}").end()
    assert end.killed or end.code == 0, f"{call}: {end.said[-3000:]}"
    found = ids(place)
    assert found in (["t"], ["a", "b", "t"]), f"killed at {call}"
    run(place, create("u", "Task", title="x"))
    assert ids(place) == sorted([*found, "u"]), f"killed at {call}"
    return end.killed, len(found) > 1


def campaign(root: Path, most: int) -> tuple[int, set[bool]]:
    require_strace()
    found = calls(root / "whole")
    chosen = found[:: max(len(found) // most, 1)]
    ends = [strike(root / str(number), call) for number, call in enumerate(chosen)]
    print(f"{len(found)} calls, {len(ends)} struck")
    return sum(killed for killed, _ in ends), {whole for _, whole in ends}


def test_a_plan_is_whole_or_absent_when_killed_at_a_sample_of_its_calls(tmp_path):
    visited, _ = campaign(tmp_path, 8)
    assert visited > 0


@pytest.mark.torture
def test_a_plan_is_whole_or_absent_when_killed_at_every_call(tmp_path):
    visited, seen = campaign(tmp_path, 1000)
    assert seen == {True, False}
    note("graph_plan", points=visited, half_plans=0)


def write_from_two_processes(folder: Path, count: int) -> None:
    # Each with a state directory of its own: the lock is on the log.
    place = place_in(folder)
    commands = [[sys.executable, "-c", WRITER, place.log, str(folder / name), name, str(count)] for name in "ab"]
    processes = [subprocess.Popen(command, cwd=os.getcwd()) for command in commands]
    assert [process.wait() for process in processes] == [0, 0]
    assert ids(place) == sorted(f"{name}{number}" for name in "ab" for number in range(count))


def test_two_processes_lose_nothing(tmp_path):
    write_from_two_processes(tmp_path, 40)


@pytest.mark.torture
def test_two_processes_with_10_000_operations_each_lose_nothing(tmp_path):
    write_from_two_processes(tmp_path, 10_000)
    note("graph_log", writers=2, operations=20_000, lost=0)
