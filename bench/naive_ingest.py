r"""The same transcripts the naive way, without a ledger: json.loads of every line, then a search per title.

`python -m bench.naive_ingest DIR ENTRIES` prints a JSON list. `regex_per_title` is what one writes first, `\btitle\b`
for each title; `find_loop` is `str.find` for each title and a boundary check, `json_only` stops after decoding. Each
stops at the first file that ends after `SECONDS` of CPU; the rate is that of the part it read (`sample_mb`). Nothing
is stored, no rule but the word boundary is kept, so all of them do less than kbd.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.naive import Engine, find_loop, regex_per_title
from bench.transcripts import titles_of

SECONDS = 8.0


def agent_texts(line: dict[str, Any]) -> Iterator[str]:
    """Yield what an agent wrote in a line: its texts, and all strings of its tool inputs."""
    if line.get("type") != "assistant":
        return
    for block in line["message"]["content"]:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_use":
            yield from (value for value in block["input"].values() if isinstance(value, str))


def rate(folder: Path, engine: Engine) -> tuple[float, float]:
    """Return MB per second of CPU, and MB read."""
    size, began = 0, time.process_time()
    for path in sorted((folder / "claude").rglob("*.jsonl")):
        data = path.read_bytes()
        for raw in data.splitlines():
            for text in agent_texts(json.loads(raw)):
                engine(text)
        size += len(data)
        if time.process_time() - began > SECONDS:
            break
    return size / 1e6 / (time.process_time() - began), size / 1e6


def main() -> int:
    """Print the rates."""
    folder, titles = Path(sys.argv[1]), titles_of(int(sys.argv[2]))
    ways: dict[str, Callable[[], Engine]] = {
        "regex_per_title": lambda: regex_per_title(titles),
        "find_loop": lambda: find_loop(titles),
        "json_only": lambda: lambda text: set(),
    }
    found = []
    for way, engine in ways.items():
        mb_per_cpu_s, sample = rate(folder, engine())
        found.append({"way": way, "mb_per_cpu_s": float(f"{mb_per_cpu_s:.3g}"), "sample_mb": round(sample, 1)})
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
