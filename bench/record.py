"""Run the benches and keep what they say: `python bench/record.py` writes `bench/record/match.json`.

The record holds the environment and, for each case and engine, the median and the spread in milliseconds, MB/s of UTF-8
input, how many times as long as kbd it took, and the titles it missed or added.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

_BENCH = Path(__file__).resolve().parent
_RECORD = _BENCH / "record" / "match.json"


def main() -> int:
    """Run `test_match.py` and write the record; return pytest's exit status, and write nothing if it is not 0."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        run = [sys.executable, "-m", "pytest", str(_BENCH / "test_match.py"), "--benchmark-only", "-o", "addopts=-q"]
        status = subprocess.run([*run, f"--benchmark-json={raw}"], cwd=_BENCH.parent, check=False).returncode
        if status == 0:
            record = condensed(json.loads(raw.read_text("utf-8")))
            _RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return status


def condensed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a pytest-benchmark report."""
    machine = raw["machine_info"]
    benches = raw["benchmarks"]
    kbd_medians = {
        bench["extra_info"]["case"]: bench["stats"]["median"]
        for bench in benches
        if bench["extra_info"]["engine"] == "kbd"
    }
    return {
        "environment": {
            "python": machine["python_version"],
            "system": machine["system"],
            "machine": machine["machine"],
            "cpu": machine["cpu"].get("brand_raw", ""),
            "cpus": machine["cpu"].get("count"),
            "pyahocorasick": version("pyahocorasick"),
        },
        "day": raw["datetime"][:10],
        "results": [_row(bench, kbd_medians) for bench in benches],
    }


def _row(bench: dict[str, Any], kbd_medians: dict[str, float]) -> dict[str, Any]:
    told, stats = bench["extra_info"], bench["stats"]
    return {
        "case": told["case"],
        "engine": told["engine"],
        "median_ms": round(stats["median"] * 1e3, 3),
        "iqr_ms": round(stats["iqr"] * 1e3, 3),
        "mb_per_s": float(f"{told['bytes'] / stats['median'] / 1e6:.3g}"),
        "times_kbd": float(f"{stats['median'] / kbd_medians[told['case']]:.3g}"),
        "missed": told.get("missed", 0),
        "extra": told.get("extra", 0),
    }


if __name__ == "__main__":
    sys.exit(main())
