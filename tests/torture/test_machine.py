"""Any order of what agents, people, disks and clocks do to kbd ends in the oracle's numbers."""

from __future__ import annotations

import random
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.e2e.killing import Death, random_death, run
from tests.e2e.world import LATER, World
from tests.torture.record import note
from tests.torture.scenario import FADING, MEMORY, lines_of

tried = {"rules": 0, "kills": 0}


class Life(RuleBasedStateMachine):
    """A world in which things happen; now and then kbd finishes a pass and must be right."""

    @initialize(seed=st.integers(0, 1 << 20), fading=st.booleans())
    def begin(self, seed: int, fading: bool) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="kbd-life-", dir=MEMORY if MEMORY.is_dir() else None))
        self.world = World(self.root / "world", seed, datetime.now(UTC).date(), FADING if fading else "")
        self.rng = random.Random(seed)
        self.later = list(LATER)
        self.people = lines_of(self.world)
        self.world.work(10)
        self.finish()

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    @rule(actions=st.integers(1, 8))
    def agents_work(self, actions: int) -> None:
        """Append, tear, resume, compact, rotate, copy: part of it reaches the disk."""
        self.world.work(actions)
        self.settled = False  # what kbd has not read yet must not be deleted: nobody could count it

    @rule()
    def log_is_rotated(self) -> None:
        self.world.logs.rotate(self.rng.choice(self.world.logs.logs))

    @rule()
    def log_is_copied(self) -> None:
        self.world.logs.copy(self.rng.choice(self.world.logs.logs))

    @rule()
    def log_is_truncated_and_grows_again(self) -> None:
        """What was read counts; what is written from the start counts, too."""
        log = self.world.logs.logs[0]
        if self.settled and log.path not in self.world.spool.waiting and log.path.exists():
            with open(log.path, "wb"):
                pass
            log.lines, log.seen = 0, False
            for _ in range(self.rng.randrange(1, 12)):
                self.world.logs.write(log)
            self.settled = False

    @rule()
    def transcript_is_written_anew(self) -> None:
        """The same lines under a new inode, as an agent does that saves a session whole."""
        path = self._seen_transcript()
        if path is not None:
            fresh = path.with_name(path.name + ".new")
            fresh.write_bytes(path.read_bytes())
            fresh.rename(path)

    @rule()
    def transcript_is_deleted(self) -> None:
        """Agents delete old sessions; what they gave stays counted."""
        path = self._seen_transcript()
        if path is not None:
            path.unlink()
            self.world.claude.sessions = [s for s in self.world.claude.sessions if s.path != path]

    def _seen_transcript(self) -> Path | None:
        waiting = self.world.spool.waiting
        paths = [s.path for s in self.world.claude.sessions if s.seen and s.path.exists() and s.path not in waiting]
        return self.rng.choice(sorted(set(paths))) if paths and self.settled else None

    @precondition(lambda self: self.settled)
    @rule(by=st.integers(1, 9))
    def person_corrects_a_number(self, by: int) -> None:
        shown = self.world.shown()
        here = [x for x in self.world.oracle.lessons.values() if x.base_ref and shown[x.title].file == x.file]
        if here:
            self.world.bump(self.rng.choice(here), by)
            self.finish()

    @precondition(lambda self: bool(self.later))
    @rule()
    def person_adds_an_entry(self) -> None:
        self.world.add_lesson(self.later.pop())
        self.people = self.people | lines_of(self.world)
        self.settled = False

    @rule(calls=st.integers(1, 900), how=st.sampled_from(["before", "after", "torn"]))
    def kbd_is_killed(self, calls: int, how: str) -> None:
        tried["kills"] += run(self.world, Death(calls, how))[0]
        self.settled = False

    @rule()
    def kbd_is_killed_at_an_instant(self) -> None:
        tried["kills"] += run(self.world, random_death(self.rng, 600, 0.4))[0]
        self.settled = False

    @rule()
    def kbd_finishes(self) -> None:
        self.finish()

    @rule(days=st.sampled_from([1, 1, 2, 5]))
    def days_pass(self, days: int) -> None:
        self.finish()
        self.world.next_day(days)
        self.world.work(4)  # in silence kbd sees nothing and says so
        self.settled = False

    @rule()
    def clock_is_set_back_for_a_pass(self) -> None:
        """A pass under a clock of yesterday; the true day comes back."""
        self.finish()
        today = self.world.today
        self.world.today = today.fromordinal(today.toordinal() - 1)
        run(self.world)
        self.world.today = today

    settled = False

    def finish(self) -> None:
        self.world.settle()
        run(self.world)
        self.world.note_seen()
        self.settled = True
        assert not (faults := self.world.faults()), "\n".join(faults)

    @invariant()
    def no_line_of_a_person_is_lost(self) -> None:
        tried["rules"] += 1
        if hasattr(self, "world"):
            assert not (lost := self.people - lines_of(self.world)), lost


def live(examples: int, steps: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Life,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],  # a world is too slow to be shrunk
            derandomize=examples < 10,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_order_of_events_ends_in_right_numbers() -> None:
    live(2, 12)


@pytest.mark.torture
def test_any_order_of_many_events_ends_in_right_numbers() -> None:
    live(100, 25)
    note("machine", rules=tried["rules"], kills=tried["kills"], lost_bytes=0, wrong_counts=0)
