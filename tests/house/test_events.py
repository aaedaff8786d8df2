"""The README's table of log events is the list of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CALLS = {"info", "warning", "error", "exception"}


def logged_events() -> set[str]:
    events = set()
    for path in (ROOT / "kbd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id == "LOG" and isinstance(node.args[0], ast.Constant):
                    events.add(node.args[0].value.split()[0])
    return events


def test_readme_lists_every_event_of_the_log() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("### Events in the log")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert logged_events() == listed
