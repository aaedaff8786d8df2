"""Fuzzes one decoder, guided by coverage: `python -m tests.fuzz.guided AGENT CPU_SECONDS FOLDER`; a process of its own.

libFuzzer never returns: the process ends by itself when its CPU time is spent, or with a fault, whose input it
leaves in FOLDER. What it did is printed as one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kbd"]):
    from tests.fuzz.corpus import Seed, seeds
    from tests.fuzz.mutation import mutated
    from tests.fuzz.target import Target

INPUT_BYTES = 128 << 10
BYTEWISE = 0.2
"""The share of inputs that libFuzzer's own mutations make."""
HANG_SECONDS = 30
MEMORY_MIB = 1024


class Campaign:
    """Counts what was tried until the time is spent."""

    def __init__(self, agent: str, cpu_seconds: float) -> None:
        self.agent, self.cpu_seconds = agent, cpu_seconds
        self.target, self.known = Target(agent), seeds(agent)
        self.inputs = self.citing = 0
        self.begun = time.process_time()

    def one_input(self, packed: bytes) -> None:
        self.inputs += 1
        self.citing += self.target.run(Seed.unpacked(packed)) > 0
        spent = time.process_time() - self.begun
        if spent > self.cpu_seconds:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            told = {"cpu_s": round(spent), "inputs": self.inputs, "citing": self.citing, "peak_mib": peak}
            print(json.dumps(told), flush=True)
            os._exit(0)  # libFuzzer would go on for ever

    def mutation(self, packed: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < BYTEWISE:
            return bytes(atheris.Mutate(packed, max_size))
        return mutated(Seed.unpacked(packed), self.known, rng).packed[:max_size]


def main(agent: str, cpu_seconds: str, folder: str) -> None:
    """Fuzz until the time is spent or something breaks."""
    campaign = Campaign(agent, float(cpu_seconds))
    corpus = Path(folder) / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(campaign.known):
        (corpus / f"seed-{i}").write_bytes(seed.packed)
    limits = [f"-max_len={INPUT_BYTES}", f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}"]
    options = [*limits, f"-artifact_prefix={folder}/", "-verbosity=0", "-print_final_stats=0"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], campaign.one_input, custom_mutator=campaign.mutation)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
