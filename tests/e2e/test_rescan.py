"""Reading everything again from zero changes no number and no byte."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.killing import run
from tests.e2e.process import FAST, Kbd
from tests.e2e.world import LATER, World


def knowledge(world: World) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in world.knowledge.iterdir()}


def seasoned(root: Path, seed: int, settings: str = "") -> World:
    """Return a world of several days, with a number that a person changed and an entry that came later."""
    world = World(root, seed, datetime.now(UTC).date(), settings)
    for i in range(4):
        world.work(30)
        world.settle()
        run(world)
        world.note_seen()
        if i == 1:
            world.add_lesson(LATER[0])
            world.bump(next(x for x in world.oracle.lessons.values() if x.base_ref), 4)
            run(world)
        world.next_day()
    run(world, passes=2)
    assert not world.faults()
    return world


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("args", [(), ("--source", "claude-code"), ("--source", "logs")])
def test_rescan_changes_no_number_and_no_byte(args: tuple[str, ...], seed: int, tmp_path: Path) -> None:
    world = seasoned(tmp_path / "world", seed)
    before = knowledge(world), world.counted()
    for _ in range(2):
        Kbd(world).ok("rescan", *args)
        assert (knowledge(world), world.counted()) == before
    assert not world.faults()


def test_rescan_of_an_unknown_source_is_a_usage_error(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 3, datetime.now(UTC).date())
    done = Kbd(world)("rescan", "--source", "nobody")
    assert done.returncode == 2
    assert "logs" in done.stderr


def test_rescan_after_transcripts_went_keeps_what_they_gave(tmp_path: Path) -> None:
    world = seasoned(tmp_path / "world", 4)
    before = knowledge(world), world.counted()
    for path in list(world.root.glob("claude/projects/*/*.jsonl"))[::2]:
        path.unlink()
    Kbd(world).ok("rescan")
    assert (knowledge(world), world.counted()) == before


def test_rescan_beside_a_running_daemon_changes_nothing(tmp_path: Path) -> None:
    world = seasoned(tmp_path / "world", 5, FAST)
    kbd, before = Kbd(world), world.counted()
    with kbd.daemon() as daemon:
        daemon.until(lambda: "started" in daemon.said())
        kbd.ok("rescan")
        world.work(20)
        world.settle()
        daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))
        assert world.counted().keys() == before.keys()
