"""One history, written in every format and every form of it, read in pieces and in any order: the same counts."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from kbd.config import load_config
from kbd.engine import Clock, Engine
from tests.forms.disk import Disk, interleaved
from tests.forms.history import BASE, TODAY, histories
from tests.forms.writers import WRITERS, Writer

EXAMPLES = int(os.environ.get("KBD_FORMS_EXAMPLES", "0"))
NAMED = ("text", "chat-jsonl", "otel-genai")
"""Formats of folders that a person names; the others are agents with a place of their own."""
MEMORY = Path("/dev/shm")


Number = tuple[int, str | None]
Numbers = dict[str, Number]


class Reading:
    """A base, a folder of one agent, and kbd in this process; passes are two minutes apart."""

    def __init__(self, root: Path, writer: Writer) -> None:
        (root / "kb").mkdir()
        (root / "kb" / "kb.md").write_text(BASE, encoding="utf-8")
        (root / "agent").mkdir()
        (root / "config.yaml").write_text(
            'bases:\n  - {name: kb, files: ["kb/*.md"], relations: kb/.knowledge-graph.yaml}\nsources:\n'
            + (
                f"  - {{name: s, path: agent, format: {writer.agent}}}\n"
                if writer.agent in NAMED
                else f"  - {{name: s, agent: {writer.agent}, root: agent}}\n"
            ),  # fmt: skip
            encoding="utf-8",
        )
        self.state = root / "state"
        self.state.mkdir(mode=0o700)
        self.disk = Disk(root / "agent")
        self.engine = Engine(load_config(root / "config.yaml"), self.state, {}, str(root), TODAY)
        self.real = TODAY.timestamp()

    def read(self) -> None:
        self.real += 120
        self.engine.run_pass(Clock(TODAY, self.real, UTC), immediate=True)

    def numbers(self) -> Numbers:
        rows: list[sqlite3.Row] = self.engine.frame.ledger.db.execute("SELECT title, ref, last FROM entries").fetchall()
        return {row[0]: (row[1], row[2]) for row in rows}

    def close(self) -> None:
        self.engine.close()
        self.disk.close()


@contextmanager
def reading(writer: Writer) -> Iterator[Reading]:
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kbd-forms-", dir=place) as root:
        one = Reading(Path(root), writer)
        try:
            yield one
        finally:
            one.close()


def check(name: str, data: st.DataObject) -> None:
    writer = WRITERS[name]()
    history = data.draw(histories(writer.kinds, deep=writer.deep), "history")
    forms = data.draw(st.sets(st.sampled_from(sorted(writer.forms))), "forms")
    rng = random.Random(data.draw(st.integers(0, 2**32), "seed"))
    steps = interleaved(writer.tracks(history, forms, rng), rng)
    passes = {rng.randrange(len(steps) + 1) for _ in range(rng.randrange(3))}
    wanted = history.numbers(writer.times)
    with reading(writer) as one:
        for i, step in enumerate(steps):
            if i in passes:
                one.read()
            step(one.disk)
        one.read()
        one.read()
        note(f"passes before steps {sorted(passes)} of {len(steps)}")
        assert differing(one.numbers(), wanted) == {}
        one.engine.rewind(None)
        one.read()
        assert differing(one.numbers(), wanted) == {}, "after a rescan"


def differing(numbers: Numbers, wanted: Numbers) -> dict[str, tuple[Number, Number]]:
    """Return by title what was counted and what is right, where they differ."""
    assert numbers.keys() == wanted.keys()
    return {title: (numbers[title], right) for title, right in wanted.items() if numbers[title] != right}


def suite(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=EXAMPLES or examples, deadline=None, suppress_health_check=checks)


@pytest.mark.parametrize("name", WRITERS)
@suite(6)
@given(data=st.data())
def test_every_form_of_a_history_gives_the_same_counts(name: str, data: st.DataObject) -> None:
    check(name, data)


@pytest.mark.torture
@pytest.mark.parametrize("name", WRITERS)
@suite(80)
@given(data=st.data())
def test_every_form_of_a_history_gives_the_same_counts_for_long(name: str, data: st.DataObject) -> None:
    check(name, data)
