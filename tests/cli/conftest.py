from __future__ import annotations

import pytest

from tests.cli.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    for ledger in world.opened:
        ledger.close()
