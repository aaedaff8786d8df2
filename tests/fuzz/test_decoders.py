"""No bytes make a decoder raise, hang, grow or contradict itself; `make fuzz` does the same for minutes each."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kbd.sources.registry import formats
from tests.fuzz.corpus import Seed, seeds
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Broken, Target

MUTATIONS = 150
FINDS = Path(__file__).parent / "finds"
"""Inputs that `make fuzz` left behind, by decoder, each named by its fault."""


@pytest.mark.parametrize("agent", formats())
def test_no_damage_breaks_a_decoder(agent: str) -> None:
    target, known, rng = Target(agent), seeds(agent), random.Random(7)
    for i in range(MUTATIONS):
        seed = mutated(known[i % len(known)], known, rng)
        try:
            target.run(seed)
        except Exception as error:  # whatever it is, the input that makes it must be known
            error.add_note(f"input {i}: {seed!r}"[:20_000])
            raise


@pytest.mark.parametrize("agent", formats())
def test_the_seeds_themselves_cite(agent: str) -> None:
    target = Target(agent)
    assert sum(target.run(seed) for seed in seeds(agent)) > 0


def test_a_packed_seed_comes_back() -> None:
    seed = Seed("a/b.jsonl", b'{"a": 1}\0\n\xff')
    assert Seed.unpacked(seed.packed) == seed


def test_a_decoder_that_forgets_is_told() -> None:
    target = Target("claude-code")
    records = [seed for seed in seeds("claude-code") if b'"tool_use"' in seed.data]
    good = target.format

    class Forgetful:
        def __getattr__(self, name: str) -> object:
            return getattr(good, name)

        def decoder(self, relpath: str, state: bytes | None, **rest: object) -> object:
            return good.decoder("-x/another.jsonl" if state else relpath, None)

    target.format = Forgetful()  # type: ignore[assignment]
    with pytest.raises(Broken, match="changes what is read"):
        for seed in records:
            target.run(seed)


@pytest.mark.parametrize("path", sorted(FINDS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_decoder_does_no_more(path: Path) -> None:
    Target(path.parent.name).run(Seed.unpacked(path.read_bytes()))
