"""kbd beside a person's tools on the same files: no line of the person is lost, and the counters are the ledger's."""

from __future__ import annotations

import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine
from kbd.errors import KbdError
from tests.e2e.killing import run
from tests.e2e.process import FAST
from tests.e2e.world import World
from tests.torture.record import note
from tests.torture.scenario import folder
from tests.torture.writers import Person


def _passes(world: World) -> None:
    """Be a daemon that never sleeps, until told to stop."""
    engine = Engine(load_config(world.root / "config.yaml"), world.state, {}, str(world.root / "home"), world.now)
    try:
        while not (world.root / "stop").exists():
            try:
                engine.run_pass(Clock(world.now, time.time(), UTC), immediate=False)
            except KbdError as exc:
                print(f"{type(exc).__name__}: {exc}", file=sys.stderr)
            time.sleep(0.005)
    finally:
        engine.close()


@contextmanager
def kbd_beside(world: World) -> Iterator[Callable[[], str]]:
    """Run passes in a child while the body runs; yields what tells whether it died, and of what."""
    log = world.root / "passes.log"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            sys.stderr = os.fdopen(out, "w", buffering=1)
            _passes(world)
            code = 0
        except BaseException:  # noqa: BLE001 - the child must never return into the test
            traceback.print_exc()
        os._exit(code)
    ended: list[int] = []

    def death() -> str:
        if not ended and os.waitpid(child, os.WNOHANG)[0]:
            ended.append(child)
        return log.read_text()[-3000:] if ended else ""

    try:
        yield death
    finally:
        (world.root / "stop").touch()
        if not ended:
            status = os.waitpid(child, 0)[1]
            assert status == 0, log.read_text()[-3000:]
        (world.root / "stop").unlink()


def wrong(world: World, person: Person) -> list[str]:
    """Return the person's lines that are gone, and what counter, file and oracle do not agree on."""
    own = ("left over", *(word for words in person.added.values() for word in words))  # unknown to the oracle
    return person.missing() + [fault for fault in world.faults() if not fault.startswith(own)]


def campaign(root: Path, seed: int, rounds: int) -> Person:
    # Entries that `kbd add` brings make the base larger than the oracle knows: what is a listing must not hang on that.
    settings = FAST + "match: {listing_fraction: 0}\n"
    world = World(root / "world", seed, datetime.now(UTC).date(), settings)
    world.work(30)
    world.settle()
    run(world)
    world.note_seen()
    person = Person(world.knowledge, random.Random(seed))
    while sum(person.rounds.values()) < rounds:
        with kbd_beside(world) as death:
            for i in range(min(rounds, 250)):
                person.act()
                if i % 5 == 0:
                    world.work(1)
                    world.settle()
                assert not death(), death()
                time.sleep(person.rng.choice((0, 0, 0.005, 0.02)))
            person.rest()
            time.sleep(0.2)
        run(world)
        world.note_seen()
        assert not (faults := wrong(world, person)), f"{person.rounds}\n" + "\n".join(faults)
    copies = len(list(world.knowledge.glob("*.kbd-conflict.md")))
    print(f"seed {seed}: {person.rounds}, {copies} conflict copies")
    return person


def test_person_with_many_tools_loses_no_line_to_kbd() -> None:
    with folder() as root:
        assert sum(campaign(root, 41, 300).rounds.values()) >= 300


@pytest.mark.torture
def test_person_with_many_tools_loses_no_line_to_kbd_in_ten_thousand_rounds() -> None:
    with folder() as root:
        rounds = campaign(root, 42, 10_000).rounds
    note("writers", rounds=sum(rounds.values()), lost_bytes=0, wrong_counts=0)
