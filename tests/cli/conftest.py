from __future__ import annotations

import pytest

from tests.cli.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)
