"""A damaged ledger: each command answers or refuses as documented, and the next pass ends in right numbers.

A round lays out a state directory whose process ended or was killed, damages the ledger, calls some commands and runs
two passes, all in a forked child with a deadline.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
import traceback
from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbd.cli.main import main
from kbd.config import load_config
from kbd.engine import Clock, Engine
from tests.e2e.killing import run
from tests.torture.damages import DAMAGES
from tests.torture.record import note
from tests.torture.scenario import Scenario, folder

COMMANDS = (
    ["status"], ["list", "--json"], ["doctor"], ["suppressed"], ["context"], ["context", "--explain"], ["lint"],
    ["search", "lock"], ["forecast"], ["report"], ["sources"], ["undo", "--list"], ["decay", "--dry-run"],
    ["hook", "session-start"], ["purge", "--session", "x", "--dry-run"], ["classify"], ["show", "--json", "KD01"],
    ["pin", "--dry-run", "KD01"], ["detach", "--dry-run"], ["export", "--format", "json"],
)  # fmt: skip
ANSWERS = (["status", "--json"], ["list", "--all"], ["log"], ["show", "KD01"])
SECONDS = 60
SLOW_SECONDS = 20.0
DOCUMENTED = {0, 1, 2, 3, 5}
# What another program changes by the rules of SQLite passes for the truth, as far as it can be read.
BELIEVED = {"odd values", "lost rows"}


class Ground:
    """A world in which all was counted and written, and its state as a process left it that ended or was killed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.scenario = root, Scenario(root, seed)
        self.world = world = self.scenario.world
        self._be_killed()
        assert (world.state / "ledger.db-wal").stat().st_size
        self._keep("killed")
        run(world)
        self._keep("ended")

    def _keep(self, name: str) -> None:
        for part in ("state", "kb"):
            shutil.copytree(self.world.root / part, self.root / name / part)

    def _be_killed(self) -> None:
        world = self.world
        if (child := os.fork()) == 0:
            engine = Engine(load_config(world.root / "config.yaml"), world.state, {}, str(world.root), world.now)
            engine.run_pass(Clock(world.now, time.time(), UTC), immediate=True)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)

    def round(self, seed: int) -> tuple[str, str, list[str]]:
        """Damage the ledger once; return the kind of damage, what became of it, and what was wrong."""
        draw, names = random.Random(seed), list(DAMAGES)
        kind = names[seed % len(names)]
        self.scenario.aside = self.root / draw.choice(("ended", "killed"))
        self.scenario.lay_out()
        what = DAMAGES[kind](self.world.state / "ledger.db", draw)
        said = self.root / "said.json"
        said.write_text('{"wrong": ["the child said nothing"], "codes": [], "reasons": []}')
        if (child := os.fork()) == 0:
            _be_a_user(self, draw, said)
        _, status = os.waitpid(child, 0)
        told = json.loads(said.read_text())
        wrong = [*told["wrong"], *([f"the child ended by {status}"] if status else [])]
        if told["codes"] and told["codes"][-1] == 5 or (kind == "instead" and told["codes"][-1:] == [1]):
            return kind, "refused", wrong and [f"seed {seed}, {kind}: {what}", *wrong]
        if kind not in BELIEVED:
            wrong += [] if told["codes"][-1:] == [0] else [f"the last pass: {told['last']}"]
            wrong += self.scenario.faults()
        wrong += self.scenario.lost()
        became = "restored" if "ledger_restored" in told["reasons"] else "as it was"
        return kind, became, wrong and [f"seed {seed}, {kind}: {what}", *wrong]


def _be_a_user(ground: Ground, draw: random.Random, said: Path) -> None:
    """Call commands and run passes; never return."""
    signal.alarm(SECONDS)
    told: dict[str, list[object]] = {"wrong": [], "codes": [], "reasons": [], "last": []}
    try:
        for words in draw.sample(COMMANDS, 4):
            _called(ground, words, told)
        for _ in range(2):
            done = _called(ground, ["run", "--once"], told)
            told["codes"].append(done.exit_code)
        told["last"] = [done.output[-400:]]
        status = [_called(ground, words, told) for words in ANSWERS][0]
        told["reasons"] = [r["code"] for r in json.loads(status.stdout or '{"reasons": []}')["reasons"]]
    except BaseException:  # noqa: BLE001 - the child must never return into the test
        told["wrong"].append(traceback.format_exc()[-1500:])
    said.write_text(json.dumps(told))
    os._exit(0)


def _called(ground: Ground, words: list[str], told: dict[str, list[object]]) -> Result:
    world = ground.world
    options = ["--config", str(world.root / "config.yaml"), "--state-dir", str(world.state), "--now", str(world.today)]
    began = time.process_time()
    done = CliRunner(env={"HOME": str(world.root / "home")}).invoke(main, [*options, *words], prog_name="kbd")
    is_slow = time.process_time() - began > SLOW_SECONDS
    if done.exit_code not in DOCUMENTED or "fault of kbd" in done.output or "Traceback" in done.output or is_slow:
        told["wrong"].append(f"{' '.join(words)}: exit {done.exit_code}: {done.output[-300:]}")
    return done


def campaign(rounds: range) -> Counter[str]:
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    with folder() as root:
        ground = Ground(root, 35)
        for seed in rounds:
            kind, became, faults = ground.round(seed)
            tally[became] += 1
            print(f"{seed} {kind}: {became}")
            wrong += faults
    assert not wrong, f"{len(wrong)} lines\n" + "\n".join(wrong[:100])
    return tally


def test_a_sample_of_damages_is_met_with_right_numbers_or_refused() -> None:
    tally = campaign(range(len(DAMAGES)))
    assert tally["restored"] > tally["as it was"]


@pytest.mark.torture
def test_no_damage_of_a_ledger_is_a_fault_of_kbd_or_counts_wrong() -> None:
    tally = campaign(range(100, 2400))
    note("ledger", rounds=tally.total(), restored=tally["restored"], refused=tally["refused"], wrong_counts=0)
