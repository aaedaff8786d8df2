"""The power goes at any moment of a pass: whatever was not synced is lost, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbd.daemon import run_once
from tests.e2e.killing import run, setting
from tests.torture.disk import RECORDED, Disk, Image
from tests.torture.record import note
from tests.torture.scenario import Scenario, folder
from tests.torture.tracing import Traced, require_strace


def disks(scenario: Scenario) -> Iterator[tuple[str, Image]]:
    """Record a pass and yield each different disk that a power loss during it may leave."""
    world = scenario.world
    disk = Disk.of(world.state, world.knowledge)
    options = (f"trace={RECORDED}", "-xx -s 50000000")
    child = Traced(lambda _rest: run_once(setting(world)), world.root, *options)
    assert child.end().code == 0
    seen = set()
    for what, image in disk.replay(child.trace):
        one = frozenset(image.items())
        if one not in seen:
            seen.add(one)
            yield what, image
    written = {str(p): p.read_bytes() for p in world.knowledge.rglob("*") if p.is_file()}
    model = {p: bytes(inode.now) for p, inode in disk.names.items() if p.startswith(str(world.knowledge))}
    assert model == written, "the model strays from the real disk"


def lay_out(scenario: Scenario, image: Image) -> None:
    scenario.lay_out()
    for root in (scenario.world.state, scenario.world.knowledge):
        for path in [p for p in root.rglob("*") if p.is_file()]:
            path.unlink()
    for name, data in image.items():
        Path(name).write_bytes(data)
        Path(name).chmod(0o600)


def campaign(root: Path, seed: int, most: int) -> int:
    """Return after how many different power losses a pass was right."""
    require_strace()
    scenario = Scenario(root, seed)
    found = list(disks(scenario))
    chosen = found[:: max(len(found) // most, 1)]
    for what, image in chosen:
        lay_out(scenario, image)
        torn = scenario.lost()
        run(scenario.world)
        faults = torn + scenario.faults()
        assert not faults, f"the power went after {what}\n" + "\n".join(faults)
    print(f"seed {seed}: {len(chosen)} of {len(found)} disks")
    return len(chosen)


def test_power_lost_at_a_sample_of_moments_loses_nothing_that_was_told() -> None:
    with folder() as root:
        assert campaign(root, 33, 8) > 0


@pytest.mark.torture
def test_power_lost_at_every_moment_loses_nothing_that_was_told() -> None:
    with folder() as root:
        count = campaign(root, 33, 10_000)
    note("power_loss", disks=count, lost_bytes=0, wrong_counts=0)
