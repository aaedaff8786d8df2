"""How fast whole transcripts become counters: `kbd run --once` as a process, from start to exit, on files made for it.

`python -m bench.ingest --mb 1000 --record` writes `bench/record/ingest.json`. Each run starts without a ledger, and its
counters are checked before its time is believed. Beside it run the naive ways on the same bytes (`naive_ingest.py`),
the same command when nothing has changed, `kbd status`, and one transcript of monstrous lines for the memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.process import Run, run, spread
from bench.status_time import status_times

_RECORD = Path(__file__).resolve().parent / "record" / "ingest.json"
_NOW = "2026-06-11T12:00:00Z"

class World:
    """A folder of transcripts, and one base of so many entries that is read from nothing in each run."""

    def __init__(self, folder: Path, entries: int) -> None:
        self.folder, self.entries = folder, entries
        self.base, self.state = folder / f"base-{entries}", folder / f"state-{entries}"
        self.notes = (self.base / "lessons.md").read_bytes()
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))

    def kbd(self, *args: str) -> Run:
        """Run a command of kbd."""
        return run("-m", "kbd", "--config", self.base / "config.yaml", "--state-dir", self.state, "--now", _NOW, *args)

    def ingest(self) -> Run:
        """Read all transcripts into a new ledger; raises SystemExit if a counter is wrong."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(mode=0o700)
        (self.base / "lessons.md").write_bytes(self.notes)
        (self.base / ".kbd-writer").unlink(missing_ok=True)  # of the ledger that is no more: it would be the writer
        done = self.kbd("run", "--once")
        counted = {e["title"]: e["ref"] for e in json.loads(self.kbd("list", "--json").out)["entries"] if e["ref"]}
        if counted != self.expected["references"]:
            wrong = {t for t, _ in counted.items() ^ self.expected["references"].items()}
            raise SystemExit(f"{self.entries} entries: {len(wrong)} counters are wrong, such as {sorted(wrong)[0]!r}")
        return done


def measured(folder: Path, entries: int, runs: int) -> dict[str, Any]:
    """Return the figures for a base of so many entries."""
    world = World(folder, entries)
    size = world.expected["bytes"] / 1e6
    done = [world.ingest() for _ in range(runs)]
    idle = [world.kbd("run", "--once") for _ in range(3)]
    naive = json.loads(run("-m", "bench.naive_ingest", folder, str(entries)).out)
    cpu = statistics.median(one.cpu for one in done)
    return {
        "entries": entries, "mb": round(size), "records": world.expected["records"], "runs": runs,
        "wall_s": spread([one.wall for one in done]), "cpu_s": spread([one.cpu for one in done]),
        "mb_per_s": spread([size / one.wall for one in done], 1),
        "mb_per_cpu_s": spread([size / one.cpu for one in done], 1),
        "peak_rss_mb": spread([one.rss / 1e6 for one in done], 1),
        "again_when_nothing_changed_s": spread([one.wall for one in idle]),
        "status": status_times(world.base / "config.yaml", world.state),
        "others": [one | {"times_slower": float(f"{size / cpu / one['mb_per_cpu_s']:.3g}")} for one in naive],
    }


def memory(folder: Path) -> dict[str, Any]:
    """Return the peak memory on a transcript with a line of 200 MB and records of 8 MiB outside the basic plane."""
    done = World(folder, 179).ingest()
    size = (json.loads((folder / "expected.json").read_text("utf-8")))["bytes"] / 1e6
    return {"mb": round(size), "wall_s": round(done.wall, 2), "peak_rss_mb": round(done.rss / 1e6, 1)}


def environment() -> dict[str, Any]:
    """Return what the figures depend on."""
    model = next((line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
                 platform.processor())
    return {
        "python": platform.python_version(), "system": platform.system(), "machine": platform.machine(), "cpu": model,
        "cpus": os.cpu_count(), "load_before": [round(load, 1) for load in os.getloadavg()],
        **{name: version(name) for name in ("msgspec", "pyahocorasick")},
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def main() -> int:
    """Make the transcripts, run everything, print the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--entries", type=int, nargs="*", default=[179])
    parser.add_argument("--monster", type=int, metavar="MB", help="measure the memory on one such file as well")
    parser.add_argument("--folder", type=Path, help="work here and leave it; default: a temporary folder")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    told: dict[str, Any] = {"environment": environment(), "day": datetime.now(UTC).date().isoformat()}
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        _make(folder / "plain", "--mb", str(given.mb), "--entries", *map(str, given.entries))
        told["results"] = [measured(folder / "plain", entries, given.runs) for entries in given.entries]
        if given.monster:
            _make(folder / "monster", "--mb", str(given.monster), "--monster")
            told["monster"] = memory(folder / "monster")
    text = json.dumps(told, indent=1) + "\n"
    print(text, end="")
    if given.record:
        _RECORD.write_text(text, "utf-8")
    return 0


def _make(folder: Path, *args: str) -> None:
    if not (folder / "expected.json").exists():
        run("-m", "bench.transcripts", folder, *args)


if __name__ == "__main__":
    sys.exit(main())
