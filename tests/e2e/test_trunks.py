"""Sub-agents of sub-agents and forks of them: whatever is read first, their trunk is credited, and each saying once."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest

from kbd.store.ledger import purging
from tests.attack.lab import NOON, Lab

CASES = Path(__file__).parent.parent / "cases"
CONFIG = 'bases:\n  - {name: lessons, files: ["kb/*.md"]}\nsources:\n  - {agent: codex, root: codex}\n'
TRUNK, FORK = "01900000-0000-7000-8000-000000000011", "01900000-0000-7000-8000-000000000014"
LATER = NOON + timedelta(days=19)
WANTED = {(TRUNK, "2026-06-10"), (FORK, "2026-06-12")}


def rollouts() -> list[Path]:
    """Return a trunk, a sub-agent of it, a sub-agent of that, and a fork of the first sub-agent."""
    names = ("sub-agent-of-a-sub-agent", "fork-of-a-sub-agent")
    found = {path.name: path for name in names for path in (CASES / name).rglob("rollout-*.jsonl")}
    return [found[name] for name in sorted(found)]


def lab_of(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path, CONFIG)
    notes = CASES / "sub-agent-of-a-sub-agent" / "1" / "files" / "kb" / "lessons.md"
    lab.note(notes.read_text(encoding="utf-8"))
    (tmp_path / "codex").mkdir()
    return lab


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_in_each_order_of_reading_the_trunk_is_credited_and_each_saying_counts_once(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    lab, files = lab_of(tmp_path), rollouts()
    for index in order:
        shutil.copy(files[index], tmp_path / "codex")
        lab.run(LATER)
    for _ in range(2):
        assert lab.credits() == WANTED
        counts = {row.title: (row.ref, row.citations, row.sessions) for row in lab.entries() if row.ref}
        assert counts == {
            "Backoff must be capped": (2, 4, 2),
            "Build cache": (1, 1, 1),
            "Release: build, verify, tag, publish": (1, 1, 1),
        }
        assert lab.engine is not None
        lab.engine.rewind(None)
        lab.run(LATER)  # from zero


def test_purged_trunk_does_not_come_back_by_a_sub_agent_of_its_sub_agents(tmp_path: Path) -> None:
    lab, files = lab_of(tmp_path), rollouts()
    for path in files[:3]:
        shutil.copy(path, tmp_path / "codex")
    lab.run(LATER)
    assert lab.engine is not None
    with lab.engine.frame.ledger.transaction() as db:
        assert purging.purge_sessions(db, [TRUNK], [], LATER.date()) == 3
    lab.restart()
    leaf = tmp_path / "codex" / files[2].name
    leaf.write_text(leaf.read_text() + json.dumps(json.loads(leaf.read_text().splitlines()[-1])) + "\n")
    lab.run(LATER)
    assert lab.engine is not None
    lab.engine.rewind(None)
    lab.run(LATER)
    assert lab.credits() == set()
