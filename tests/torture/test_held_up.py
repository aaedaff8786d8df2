"""kbd's calls on knowledge files are held up for milliseconds, on both sides: who writes in that time loses nothing."""

from __future__ import annotations

import random
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.process import FAST, Kbd
from tests.e2e.world import World
from tests.torture.record import note
from tests.torture.scenario import folder
from tests.torture.tracing import require_strace
from tests.torture.writers import Person

ROUNDS, ACTS = 5, 60
CALLS = ("renameat2", "?renameat", "?rename", "unlinkat", "openat", "pread64")
REFUSALS = (0, 1, 2, 4, 6)
LOOKED_SECONDS = 2.5
"""After so long the daemon has looked at what was written into files that it had replaced."""


class HeldUp:
    """A daemon and commands beside it, each with other calls held up."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng, self.kbd = world, rng, Kbd(world)
        self.log = open(world.root / "held_up.log", "ab")  # noqa: SIM115 - closed by `end`
        self.daemon = self._start("run")
        self.commands: list[tuple[str, subprocess.Popen[bytes]]] = []

    def _start(self, *args: str) -> subprocess.Popen[bytes]:
        knowledge = self.world.knowledge
        words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "signal=none", "-e", f"trace={','.join(CALLS)}"]
        for path in (knowledge, *knowledge.glob("*.md"), knowledge / ".knowledge-graph.yaml"):
            words += ["-P", str(path)]
        for call in [c for c in CALLS if self.rng.random() < 0.6] or [CALLS[0]]:
            side, when = self.rng.choice(("enter", "exit")), self.rng.choice(("", ":when=1+2", ":when=2+3"))
            words += ["-e", f"inject={call}:delay_{side}={self.rng.choice((5000, 15_000, 40_000))}{when}"]
        command = [*words, *self.kbd.command(*args)]
        return subprocess.Popen(
            command, env=self.kbd.environment, stdout=self.log, stderr=self.log, cwd=self.world.root
        )

    def command(self) -> None:
        """Start a command that writes."""
        title, other = self.rng.sample([t for t, lesson in self.world.oracle.lessons.items() if lesson.present], 2)
        file = str(self.rng.choice(sorted(self.world.knowledge.glob("??*.md"))))
        args = self.rng.choice((
            ("set", title, "--ref", str(self.rng.randrange(50))), ("undo",), ("classify", "--write"), ("pin", title),
            ("relate", title, "informs", other), ("adopt", file, "--yes"),
        ))  # fmt: skip
        self.commands.append((" ".join(args), self._start(*args)))

    def end(self, person: Person) -> bool:
        """Let commands end, and end or kill the daemon; return whether it was killed."""
        person.rest()
        for args, command in self.commands:
            assert command.wait(timeout=60) in REFUSALS, f"{args} exited {command.returncode}\n{self.said()}"
        time.sleep(LOOKED_SECONDS)
        killed = self.rng.random() < 0.5
        for _ in range(6 if killed else 0):
            person.renamed(self.rng.choice(list(person.words)))
            time.sleep(self.rng.choice((0, 0.01, 0.03)))
        self.daemon.kill() if killed else self.daemon.terminate()
        assert self.daemon.wait(timeout=15) == (-9 if killed else 0), self.said()
        self.log.close()
        return killed

    def said(self) -> str:
        return (self.world.root / "held_up.log").read_text(errors="replace")[-3000:]


def wrong(world: World, person: Person) -> list[str]:
    faults = [f for f in world.markdown_faults() if not f.startswith("relation") and ".kbd-conflict" not in f]
    return person.missing() + faults


def campaign(root: Path, seed: int) -> tuple[int, int]:
    """Return how many edits a person made, and how often kbd was killed."""
    rng = random.Random(seed)
    world = World(root / "world", seed, datetime.now(UTC).date(), FAST)
    world.work(30)
    world.settle()
    person, kills = Person(world.knowledge, rng), 0
    Kbd(world)("run", "--once")
    for _ in range(ROUNDS):
        held_up = HeldUp(world, rng)
        for i in range(ACTS):
            person.act()
            if i % 5 == 0:
                world.work(1)
                world.settle()
            if i % 12 == 6:
                held_up.command()
            assert held_up.daemon.poll() is None, held_up.said()
            time.sleep(rng.choice((0, 0.01, 0.03, 0.1)))
        kills += held_up.end(person)
        Kbd(world)("run", "--once")
        assert not (faults := wrong(world, person)), f"{person.rounds}\n" + "\n".join(faults)
    return sum(person.rounds.values()), kills


@pytest.mark.torture
def test_who_writes_while_calls_of_kbd_are_held_up_loses_nothing() -> None:
    require_strace()
    with folder() as root:
        edits, kills = campaign(root, 71)
    note("held_up", edits=edits, kills=kills, lost_bytes=0)
