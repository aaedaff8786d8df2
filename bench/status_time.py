"""How long `kbd status` takes, and which imports: `python -m bench.status_time CONFIG STATE_DIR`.

Prints JSON: milliseconds by the wall and of CPU over some runs, those of a Python that does nothing, and the imports
that cost most by themselves, from one run under `-X importtime`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.process import run, spread

RUNS = 15
_MARK = "import time:"
ANSWERS = (0, 1, 3)
"""Exit codes of an answer: fine, degraded, no daemon."""


def status_times(config: Path, state: Path) -> dict[str, Any]:
    """Return the times in milliseconds."""
    done = [run(*_command(config, state), codes=ANSWERS) for _ in range(RUNS)]
    bare = [run("-c", "pass") for _ in range(RUNS)]
    return {
        "runs": RUNS,
        "wall_ms": spread([one.wall * 1e3 for one in done], 0),
        "cpu_ms": spread([one.cpu * 1e3 for one in done], 0),
        "python_alone_ms": spread([one.wall * 1e3 for one in bare], 0),
    }


def costly_imports(config: Path, state: Path, count: int = 25) -> list[tuple[str, float]]:
    """Return (module, milliseconds of its own), the costliest first."""
    command = [sys.executable, "-X", "importtime", *map(str, _command(config, state))]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    rows = [line[len(_MARK) :].split("|") for line in told.splitlines() if line.startswith(_MARK)]
    found = [(name.strip(), int(own) / 1e3) for own, _, name in rows if own.strip().isdigit()]
    return sorted(found, key=lambda one: -one[1])[:count]


def _command(config: Path, state: Path) -> tuple[str | Path, ...]:
    return ("-m", "kbd", "--config", config, "--state-dir", state, "status", "--json")


def main() -> int:
    """Print times and imports."""
    config, state = Path(sys.argv[1]), Path(sys.argv[2])
    print(json.dumps(status_times(config, state) | {"imports_ms": costly_imports(config, state)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
