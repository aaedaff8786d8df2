"""Forks, compacted copies and sub-agents without message ids, read in any order and in any pieces: the same counts.

Sessions say the same few sentences again and again, before and after they parted. What a session says first of its own
is said by no other, so that there is no doubt where its copied beginning ends.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.forms.disk import Step, Track, append, interleaved
from tests.forms.history import FIRST, TITLES
from tests.forms.test_forms import Reading, reading, suite
from tests.forms.writers import WRITERS

CITED = TITLES[:3]
SENTENCES = (*(f"Per {title} I go on." for title in CITED), f"{CITED[0]}, then {CITED[1]}.", "Done.", "I look around.")
Said = tuple[datetime, str]


@dataclass
class Thread:
    """A session or sub-agent as one transcript; `copied` is what it begins with, `own` what it says itself."""

    number: int
    parent: Thread | None
    is_sub: bool
    copied: list[Said]
    own: list[Said] = field(default_factory=list)
    has_compacted_child: bool = False

    @property
    def id(self) -> str:
        return f"01900000-0000-7000-8000-{self.number:012d}"

    @property
    def trunk(self) -> Thread:
        return self.parent.trunk if self.is_sub and self.parent else self

    def lines(self) -> list[bytes]:
        at = (self.copied + self.own)[0][0]
        metas: list[dict[str, object]] = [{"id": self.id, "cwd": "/w"}]
        if self.parent and self.is_sub:
            spawned = {"subagent": {"thread_spawn": {"parent_thread_id": self.parent.id}}}
            metas[0] |= {"session_id": self.parent.id, "source": spawned}
        elif self.parent:
            metas[0]["forked_from_id"] = self.parent.id
        if self.parent and self.copied:
            metas.append({"id": self.parent.id})
        said = [(when, {"role": "assistant", "content": [{"type": "output_text", "text": text}], "type": "message"})
                for when, text in self.copied + self.own]  # fmt: skip
        found = [_line(at, "session_meta", meta) for meta in metas]
        return found + [_line(when, "response_item", item) for when, item in said]


def _line(at: datetime, kind: str, payload: object) -> bytes:
    stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"timestamp": stamp, "type": kind, "payload": payload}).encode() + b"\n"


class World:
    """Threads that go on at the same time; a new one may begin with what another said so far."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, FIRST
        self.threads: list[Thread] = []
        self.threads.append(self._begun(None, is_sub=False))
        for _ in range(rng.randrange(3, 30)):
            self.now += timedelta(seconds=61, days=rng.randrange(8) == 0)
            if len(self.threads) < 6 and rng.randrange(5) == 0:
                parent = rng.choice([*(t for t in self.threads if not t.is_sub and not t.has_compacted_child), None])
                self.threads.append(self._begun(parent, is_sub=parent is not None and rng.randrange(3) == 0))
            else:
                rng.choice(self.threads).own.append((self.now, rng.choice(SENTENCES)))

    def _begun(self, parent: Thread | None, *, is_sub: bool) -> Thread:
        number = self.rng.randrange(1, 9) * 100 + len(self.threads)  # in no order
        copied = parent.copied + parent.own if parent else []
        copied = copied[: self.rng.randrange(len(copied) + 1)]
        is_restamped, is_compacted = self.rng.randrange(2), self.rng.randrange(3) == 0
        # Before their parent is read, children of which one left out parts look as if the same words were one record.
        if parent and is_compacted and not any(t.parent is parent for t in self.threads):
            parent.has_compacted_child = True
            # A first copy is told from equal words before it by no more than its time: it stays.
            copied = [one for i, one in enumerate(copied) if self.rng.randrange(3) or i == 0 and not is_restamped]
        if is_restamped:
            copied = [(self.now, text) for _, text in copied]
        return Thread(number, parent, is_sub, copied, [(self.now + timedelta(seconds=1), f"Thread {number} begins.")])

    def counts(self) -> dict[str, tuple[int, str | None, int]]:
        """Return ref, last and citations by title."""
        found: dict[str, tuple[int, str | None, int]] = {}
        for title in TITLES:
            cites = [(t.trunk.number, at.date()) for t in self.threads for at, text in t.own if title in text]
            found[title] = (len(set(cites)), max((str(day) for _, day in cites), default=None), len(cites))
        return found

    def tracks(self) -> list[Track]:
        return [self._pieces(f"sessions/2026/03/01/rollout-2026-03-01T02-00-00-{t.id}.jsonl", t) for t in self.threads]

    def _pieces(self, path: str, thread: Thread) -> list[Step]:
        lines, steps = thread.lines(), []
        while lines:
            size = self.rng.randrange(1, len(lines) + 1)
            steps.append(append(path, b"".join(lines[:size])))
            lines = lines[size:]
        return steps


def counted(one: Reading) -> dict[str, tuple[int, str | None, int]]:
    rows = one.engine.frame.ledger.db.execute("SELECT title, ref, last, citations FROM entries")
    return {row[0]: (row[1], row[2], row[3]) for row in rows.fetchall()}


def evidence(one: Reading) -> list[tuple[object, ...]]:
    rows = one.engine.frame.ledger.db.execute(
        "SELECT m.entry, g.session, g.at, m.snippet FROM mentions m JOIN blocks b ON b.id=m.block "
        "JOIN messages g ON g.id=b.message ORDER BY 1, 2, 3, 4"
    )
    return [tuple(row) for row in rows.fetchall()]


@suite(15)
@given(rng=st.randoms(use_true_random=False))
def test_forks_read_in_any_order_and_pieces_give_the_same_counts(rng: random.Random) -> None:
    check(rng)


@pytest.mark.torture
@suite(600)
@given(rng=st.randoms(use_true_random=False))
def test_forks_read_in_any_order_and_pieces_give_the_same_counts_for_long(rng: random.Random) -> None:
    check(rng)


def check(rng: random.Random) -> None:
    world = World(rng)
    steps = interleaved(world.tracks(), rng)
    passes = {rng.randrange(len(steps) + 1) for _ in range(rng.randrange(5))}
    for thread in world.threads:
        note(f"{thread.number} of {thread.parent.number if thread.parent else None} {thread.is_sub}\n"
             + "\n".join(f"  {at:%d %T} {text}" for at, text in [*thread.copied, *thread.own]))  # fmt: skip
    with reading(WRITERS["codex"]()) as one:
        for i, step in enumerate(steps):
            if i in passes:
                one.read()
            step(one.disk)
        one.read()
        assert counted(one) == world.counts()
        told = evidence(one)
        one.engine.rewind(None)
        one.read()
        assert (counted(one), evidence(one)) == (world.counts(), told), "after a rescan"
        for thread in rng.sample(world.threads, rng.randrange(1, len(world.threads) + 1)):
            next(one.disk.root.glob(f"**/*{thread.id}.jsonl")).unlink()
        one.engine.rewind(None)
        one.read()
        assert (counted(one), evidence(one)) == (world.counts(), told), "after a rescan of what was left"
