"""Killed at each call that can change the disk, kbd leaves what the oracle says after a restart."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from kbd.daemon import run_once
from tests.e2e.killing import run, setting
from tests.torture.record import note
from tests.torture.scenario import Scenario, folder
from tests.torture.tracing import Call, Traced, calls_of, require_strace


def points(scenario: Scenario) -> list[Call]:
    """Record one whole pass and return its calls that change something.

    Of pages that SQLite writes into one file in a row, the first, the middle and the last stand for all.
    """
    child = Traced(lambda _rest: run_once(setting(scenario.world)), scenario.world.root)
    end = child.end()
    assert end.code == 0, end.said
    assert not (faults := scenario.faults()), "\n".join(faults)
    calls = [call for call in calls_of(child.trace) if not call.opens_to_read and "pipe:" not in call.text]
    chosen = []
    for _, group in groupby(calls, lambda call: (call.name, call.text.partition(",")[0])):
        row = list(group)
        chosen += [row[i] for i in sorted({0, len(row) // 2, len(row) - 1})]
    return chosen


def strike(scenario: Scenario, call: Call) -> bool:
    """Kill a pass at a call and look at what the next one makes of it; return whether the call was reached."""
    scenario.lay_out()
    inject = f"inject={call.name}:signal=SIGKILL:when={call.number}"
    end = Traced(lambda _rest: run_once(setting(scenario.world)), scenario.world.root, inject).end()
    assert end.killed or end.code == 0, f"{call}: {end.said[-3000:]}"
    torn = scenario.lost()
    run(scenario.world)
    faults = torn + scenario.faults()
    assert not faults, f"killed at {call}\n" + "\n".join(faults)
    return end.killed


def campaign(root: Path, seed: int, most: int) -> tuple[int, int]:
    """Return how many calls were visited, and how many were chosen and not reached."""
    require_strace()
    scenario = Scenario(root, seed)
    calls = points(scenario)
    chosen = calls[:: max(len(calls) // most, 1)]
    visited = sum(strike(scenario, call) for call in chosen)
    print(f"seed {seed}: {len(calls)} calls, {visited} of {len(chosen)} visited")
    return visited, len(chosen) - visited


def test_killed_at_a_sample_of_its_calls_kbd_loses_and_doubles_nothing() -> None:
    with folder() as root:
        visited, unvisited = campaign(root, 31, 12)
    assert visited > 0
    assert unvisited == 0


@pytest.mark.torture
def test_killed_at_every_call_kbd_loses_and_doubles_nothing() -> None:
    visited = unvisited = 0
    for seed in (31, 32):
        with folder() as root:
            done, left = campaign(root, seed, 500)
        visited, unvisited = visited + done, unvisited + left
    note("crash", points=visited, unvisited=unvisited, lost_bytes=0, wrong_counts=0)
    assert unvisited == 0
