"""What the tests of replacing, of nameless inodes and of temporaries share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbd.store import displaced, removing, replacing, sweeping
from kbd.store.displaced import Displaced
from tests.store.desk import OLD, Watch


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "kb" / "lessons.md"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch, watch: Watch) -> Iterator[Displaced]:
    """The inodes that lose their names."""
    made = Displaced(watch, watch.wait)
    for module in (removing, replacing, sweeping):
        monkeypatch.setattr(module, "DISPLACED", made)
    yield made
    monkeypatch.setattr(displaced, "LINGER_SECONDS", 0.0)
    made.finish()


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch, nameless: Displaced) -> list[object]:
    """Actions that others do right before each exchange of names, in order."""
    actions: list[object] = []
    exchange = replacing.exchange

    def racing(one: str, other: str, *, dir_fd: int) -> bool:
        action = actions.pop(0) if actions else None
        if callable(action):
            action()
        return exchange(one, other, dir_fd=dir_fd)

    monkeypatch.setattr(replacing, "exchange", racing)
    return actions
