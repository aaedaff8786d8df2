"""Runs a Python process to its end and says what it cost. Imports nothing of kbd.

A child's peak memory is never less than what its parent had when the child was made, so the parent stays small.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One process: seconds by the wall and of CPU, peak memory in bytes, what it printed."""

    wall: float
    cpu: float
    rss: int
    out: str


def run(*args: str | Path, codes: Collection[int] = (0,)) -> Run:
    """Run Python with these arguments; raises CalledProcessError if it exits with another code than these."""
    command = [sys.executable, *map(str, args)]
    with tempfile.TemporaryFile("w+") as out:
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, cwd=_ROOT)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if child.returncode not in codes:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * _RSS_UNIT, text)


def spread(values: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Return median, least and most."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return {"median": round(middle, digits), "min": round(least, digits), "max": round(most, digits)}
