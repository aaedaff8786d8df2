"""What a pass costs that changes one counter of a large base: `.venv/bin/python -m bench.counter [--record]`.

The base is read and written once; then one entry is cited at a time. What its file says is checked before the time is
believed. CPU seconds of the process, of whole passes as the daemon makes them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.process import spread
from kbd.config import load_config
from kbd.engine import Clock, Engine

_RECORD = Path(__file__).resolve().parent / "record" / "counter.json"
_NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)
_CONFIG = 'bases: [{name: b, files: ["kb/*.md"]}]\nsources: [{name: logs, path: logs, format: text}]\n'
_ENTRY = (
    "- [pitfall] **Lesson number {i} about sockets** — close it in finally, whoever asked for it {i} (2025-05-19)\n"
)
_COMMENT = "  <!-- ref:3 | last:2025-05-19 | decay:active -->\n"
RUNS = 9


class World:
    """A base of so many entries in so many files, with or without counters in them."""

    def __init__(self, root: Path, entries: int, files: int, *, counted: bool) -> None:
        self.root = root
        for folder in ("kb", "logs", "state"):
            (root / folder).mkdir(mode=0o700)
        (root / "config.yaml").write_text(_CONFIG)
        (root / "logs" / "first.log").write_text(f"{_NOW:%Y-%m-%d} 10:00 nothing\n\n")
        text = _ENTRY + _COMMENT if counted else _ENTRY
        for name in range(files):
            numbers = range(name * entries // files, (name + 1) * entries // files)
            (root / "kb" / f"{name}.md").write_text("# Lessons\n\n" + "".join(text.format(i=i) for i in numbers))
        self.open = Engine(load_config(root / "config.yaml"), root / "state", {}, str(root), _NOW)

    def pass_(self) -> float:
        """Run a pass; return its CPU seconds."""
        began = time.process_time()
        self.open.run_pass(Clock(_NOW, time.time(), UTC), immediate=True)
        return time.process_time() - began

    def cite(self, number: int) -> float:
        """Cite an entry in a new session and run a pass; raises SystemExit if its file does not say so."""
        title = f"Lesson number {number} about sockets"
        (self.root / "logs" / f"{number}.log").write_text(f"{_NOW:%Y-%m-%d} 11:00 {title} helped\n\n")
        seconds = self.pass_()
        files = "".join(path.read_text() for path in (self.root / "kb").glob("*.md"))
        if f"last:{_NOW:%Y-%m-%d}" not in files.partition(title)[2].partition("- [")[0]:
            raise SystemExit(f"the counter of {title!r} was not written")
        return seconds


def measured(entries: int, files: int, *, counted: bool) -> dict[str, Any]:
    """Return the CPU seconds of passes that change one counter, and of those that change none."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), entries, files, counted=counted)
        first = world.pass_()
        cited = [world.cite(entries // 2 + 7 * run) for run in range(RUNS)]
        idle = [world.pass_() for _ in range(RUNS)]
        world.open.close()
    return {
        "entries": entries, "files": files, "counters_there": counted, "first_pass_cpu_s": round(first, 2),
        "one_counter_cpu_s": spread(cited, 3), "nothing_new_cpu_s": spread(idle, 3),
    }  # fmt: skip


def main() -> int:
    """Print the results, and keep them on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help=f"write {_RECORD.name}")
    record = parser.parse_args().record
    cases = [(1_000, 1, True), (10_000, 1, True), (10_000, 1, False), (10_000, 10, True)]
    results = [measured(entries, files, counted=counted) for entries, files, counted in cases]
    told = {"day": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version(), "results": results}
    print(json.dumps(told, indent=1))
    if record:
        _RECORD.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
