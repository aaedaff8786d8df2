"""The last record of `make torture`: what was tried, and what came of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

RECORD = Path(__file__).parents[2] / "bench" / "record" / "torture.json"


def note(campaign: str, **numbers: int | float) -> None:
    """Replace one campaign's line in the record; called when it has held, so what failed is never noted."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    known[campaign] = {**numbers, "on": time.strftime("%Y-%m-%d", time.gmtime())}
    RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def table() -> str:
    """Return the record as a table."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return "\n".join(f"{name:<10} {'  '.join(f'{k} {v}' for k, v in row.items())}" for name, row in known.items())
