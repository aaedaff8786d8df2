"""The system refuses a call: each file is the old or the new one, nothing is left behind, and kbd goes on by itself."""

from __future__ import annotations

import errno
import itertools
import os
import random
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine
from kbd.errors import KbdError
from kbd.store import files, replacing
from kbd.store.locks import InstanceLock
from tests.e2e.killing import run
from tests.e2e.world import World
from tests.torture.record import note
from tests.torture.scenario import Scenario, folder
from tests.torture.tracing import Call, Traced, calls_of, require_strace

ERRORS = {
    "openat": ("EIO", "EACCES", "EMFILE", "ENOSPC", "EROFS"),
    "write": ("EIO", "ENOSPC"),
    "pwrite64": ("EIO", "ENOSPC", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO", "ENOSPC"),
    "rename": ("EIO", "EACCES", "EROFS", "ENOSPC"),
    "renameat2": ("EIO", "EACCES", "EROFS", "ENOSPC", "EINVAL"),
    "renameat": ("EIO",),
    "linkat": ("EIO", "EMLINK"),
    "unlink": ("EIO", "EACCES", "EROFS"),
    "unlinkat": ("EIO", "EACCES", "EROFS"),
    "mkdir": ("EACCES", "ENOSPC"),
    "fchmod": ("EIO", "EPERM", "EROFS"),
}
REFUSED_AT_START = 9


def two_passes(world: World, rest: Callable[[], None]) -> int:
    """Be a daemon for two passes: what the first one could not do, the second makes good without a restart."""
    try:
        config = load_config(world.root / "config.yaml")
        with InstanceLock(world.state):
            engine = Engine(config, world.state, {}, str(world.root / "home"), world.now)
            try:
                _pass(engine, world)
                rest()
                return 0 if _pass(engine, world) else 1
            finally:
                engine.close()
    except KbdError as exc:
        print(type(exc).__name__, exc)
        return REFUSED_AT_START


def _pass(engine: Engine, world: World) -> bool:
    try:
        report = engine.run_pass(Clock(world.now, time.time(), UTC), immediate=True)
    except KbdError as exc:
        print(type(exc).__name__, exc)
        return False
    for problem in report.problems:
        print(problem)
    return not report.problems


def record(scenario: Scenario) -> list[Call]:
    child = Traced(lambda rest: two_passes(scenario.world, rest), scenario.world.root)
    assert child.to_rest()
    calls = calls_of(child.trace)
    end = child.end()
    assert end.code == 0, end.said
    return [call for call in calls if call.name in ERRORS and str(scenario.world.root) in call.text]


def strike(scenario: Scenario, call: Call, error: str) -> list[str]:
    """Let one call of the first pass fail; return what was wrong afterwards."""
    scenario.lay_out()
    inject = f"inject={call.name}:error={error}:when={call.number}"
    child = Traced(lambda rest: two_passes(scenario.world, rest), scenario.world.root, inject)
    lives = child.to_rest()
    wrong = scenario.lost()
    left = [p.name for p in scenario.world.knowledge.iterdir() if p.name.startswith(".kbd-") and p.suffix == ".tmp"]
    if left and not call.name.startswith("unlink"):
        wrong.append(f"left over after the fault: {left}")
    end = child.end()
    if lives and end.code == 0:
        wrong += scenario.faults()
    else:
        if end.code != REFUSED_AT_START:
            wrong.append(f"exit {end.code}")
        run(scenario.world)
        wrong += scenario.faults()
    return [f"{error} at {call}:", *wrong, end.said[-1500:]] if wrong else []


def campaign(root: Path, seed: int, most: int) -> int:
    """Return how many faults were injected and met rightly."""
    require_strace()
    scenario = Scenario(root, seed)
    faults = [(call, error) for call in record(scenario) for error in ERRORS[call.name]]
    rng = random.Random(seed)
    by_call: dict[tuple[str, str], list[tuple[Call, str]]] = {}
    for call, error in rng.sample(faults, len(faults)):
        by_call.setdefault((call.name, error), []).append((call, error))
    share = max(most // len(by_call), 1)
    chosen = [fault for row in by_call.values() for fault in row[:share]]
    chosen = rng.sample(chosen, most) if most < len(by_call) else chosen
    wrong = [strike(scenario, call, error) for call, error in chosen]
    wrong = [words for words in wrong if words]
    assert not wrong, f"{len(wrong)} of {len(chosen)}\n" + "\n\n".join("\n".join(words) for words in wrong)
    print(f"seed {seed}: {len(chosen)} of {len(faults)} faults")
    return len(chosen)


def test_a_sample_of_refused_calls_leaves_old_or_new_and_is_made_good() -> None:
    with folder() as root:
        assert campaign(root, 35, 14) > 0


@pytest.mark.torture
def test_refused_calls_leave_old_or_new_and_are_made_good() -> None:
    with folder() as root:
        count = campaign(root, 35, 300)
    note("io_errors", faults=count, lost_bytes=0, wrong_counts=0)


def test_move_whose_last_sync_failed_is_finished_by_the_same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count(1)

    def sync(dir_fd: int) -> None:
        if next(count) == 4:  # after the cut, with which a block came back from the archive
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(dir_fd)

    with folder() as root:
        scenario = Scenario(root, 35)
        for module in (files, replacing):
            monkeypatch.setattr(module, "sync_directory", sync)
        assert two_passes(scenario.world, lambda: None) == 0
        assert not (faults := scenario.faults()), "\n".join(faults)


def test_writes_taken_in_small_pieces_by_the_system_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder() as root:
        scenario = Scenario(root, 37)
        pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, bytes(data)[:13], offset))
        run(scenario.world)
        assert not (faults := scenario.faults()), "\n".join(faults)
