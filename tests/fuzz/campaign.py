"""Fuzzes decoders for a while and keeps the record: `python -m tests.fuzz.campaign --seconds 60 [AGENT…]`.

`make fuzz` gives each decoder one CPU minute, in as many processes as there are cores. The record has a row for each
decoder and length of run; a row is written when its run found nothing, so what stands there has held.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from kbd.sources.registry import formats

RECORD = Path(__file__).parents[2] / "bench" / "record" / "fuzz.json"
FINDS = Path(tempfile.gettempdir()) / "kbd-fuzz-finds"


def fuzz(agent: str, cpu_seconds: float) -> dict[str, int | str] | None:
    """Run one campaign; return what it did, None if it found something (then it says what, and where the input is)."""
    folder = FINDS / agent
    with tempfile.TemporaryDirectory(prefix=f"kbd-fuzz-{agent}-") as scratch:
        command = [sys.executable, "-m", "tests.fuzz.guided", agent, str(cpu_seconds), scratch]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode == 0:
            told: dict[str, int | str] = json.loads(done.stdout.strip().splitlines()[-1])
            return {**told, "finds": 0, "on": time.strftime("%Y-%m-%d", time.gmtime())}
        folder.mkdir(parents=True, exist_ok=True)
        for left in Path(scratch).glob("*-*"):
            left.replace(folder / left.name)
        (folder / "said").write_text(done.stdout + done.stderr, encoding="utf-8")
    return None


def keep(agent: str, row: dict[str, int | str], cpu_seconds: int) -> None:
    """Put a row into the record, under the length of its run."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    known.setdefault(f"{cpu_seconds} CPU seconds each", {})[agent] = row
    RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Fuzz what is named, else all; exit 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT")
    parser.add_argument("--seconds", type=int, default=60, help="CPU seconds for each decoder")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--record", action="store_true", help="keep the result in bench/record/fuzz.json")
    asked = parser.parse_args()
    agents = asked.agents or list(formats())
    found = 0
    with ThreadPoolExecutor(asked.processes) as pool:
        running = {pool.submit(fuzz, agent, asked.seconds): agent for agent in agents}
        for done in as_completed(running):
            agent, row = running[done], done.result()
            found += row is None
            print(f"{agent:<12} {row or f'FOUND SOMETHING: {FINDS / agent}'}", flush=True)
            if row and asked.record:
                keep(agent, row, asked.seconds)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
