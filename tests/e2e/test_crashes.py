"""The main proof: whatever instant kbd is killed at, a restart leaves what the oracle says, and nothing else."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.killing import random_death, run
from tests.e2e.world import LATER, World

FADING = (
    "decay: {grace_days: 0, dormant_days: 2, archive_days: 4, dwell_days: 1, change_fraction: 1.0, change_min: 50}\n"
)


class Campaign:
    """Kills kbd again and again in one world; now and then lets it finish, and looks."""

    def __init__(self, root: Path, seed: int, settings: str = "") -> None:
        self.world = World(root, seed, datetime.now(UTC).date(), settings)
        self.rng = random.Random(f"kills {seed}")
        self.kills = self.rounds = 0
        self.calls, self.seconds = 400, 0.3

    def strike(self) -> None:
        """Let agents work, then kill a pass (perhaps one after a pass that had nothing left to do)."""
        self.world.work(self.rng.randrange(0, 6))
        killed, _ = run(self.world, random_death(self.rng, self.calls, self.seconds), passes=self.rng.choice((1, 1, 2)))
        self.kills += killed
        self.rounds += 1
        assert self.rounds < 2000, "too few rounds end by a kill"

    def finish(self) -> None:
        """Let everything arrive and a pass end; it must have made good whatever the kills left."""
        self.world.settle()
        began = time.monotonic()
        _, self.calls = run(self.world)
        self.seconds = time.monotonic() - began
        self.world.note_seen()
        assert not (faults := self.world.faults()), f"after {self.kills} kills\n" + "\n".join(faults)

    def strike_and_finish(self, kills: int) -> None:
        wanted = self.kills + kills
        while self.kills < wanted:
            self.strike()
        self.finish()


@pytest.mark.parametrize("seed", range(4))
def test_kills_change_nothing_in_the_outcome(seed: int, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "world", seed)
    world, prose = campaign.world, campaign.world.prose()
    for i in range(4):
        campaign.strike_and_finish(9)
        assert world.prose() == prose, "kbd changed more than its own lines"
        if i == 1:
            world.bump(campaign.rng.choice([x for x in world.oracle.lessons.values() if x.base_ref]), 5)
        if i == 2:
            world.add_lesson(LATER[seed % 2])
            prose = world.prose()
    print(f"seed {seed}: {campaign.kills} kills in {campaign.rounds} rounds")


@pytest.mark.parametrize("seed", range(10, 12))
def test_kills_while_entries_fade_and_return_lose_no_entry(seed: int, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "world", seed, FADING)
    states: set[str] = set()
    for _ in range(9):
        campaign.strike_and_finish(4)
        states |= {one.state for one in campaign.world.shown().values()}
        campaign.world.next_day()
    assert states == {"active", "dormant", "archived"}
    print(f"seed {seed}: {campaign.kills} kills in {campaign.rounds} rounds")
