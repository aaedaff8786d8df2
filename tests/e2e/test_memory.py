"""Memory stays bounded whatever an agent writes: lines of hundreds of megabytes, records of 8 MiB of astral characters.

The figures are the peak of a whole `kbd run --once`. It is started by a small process, since a child's peak is never
less than what its parent had when it was made.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.transcripts import BIG_RECORD, CITED_TITLES, LONG_LINE, lay_base, make_monster

LIMIT_MB = 150
ROOT = Path(__file__).resolve().parents[2]
MEASURE = """
import json, sys
from bench.process import run
run_once, listing = (run("-m", "kbd", *sys.argv[1:], *command) for command in (("run", "--once"), ("list", "--json")))
print(json.dumps([run_once.rss / 1e6, json.loads(listing.out)["entries"]]))
"""


def peak_of(folder: Path, line: int, astral: int) -> float:
    """Return the peak in MB of a run over such a transcript; its counters are right."""
    shares = make_monster(folder, line, astral)
    config, state = lay_base(folder, CITED_TITLES), folder / "state"
    options = ["--config", str(config), "--state-dir", str(state), "--now", "2026-06-11T12:00:00Z"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *options], capture_output=True, text=True, cwd=ROOT, check=True, timeout=900
    )
    peak, entries = json.loads(done.stdout)
    assert {e["title"]: e["ref"] for e in entries if e["ref"]} == shares.as_json()["references"]
    return float(peak)


def test_line_of_64_mb_and_records_of_8_mib_stay_under_the_limit(tmp_path: Path) -> None:
    assert peak_of(tmp_path, 64_000_000, 3) < LIMIT_MB


@pytest.mark.torture
def test_transcript_of_1_gb_with_a_line_of_200_mb_stays_under_the_limit(tmp_path: Path) -> None:
    assert peak_of(tmp_path, LONG_LINE, (1_000_000_000 - LONG_LINE) // BIG_RECORD) < LIMIT_MB
