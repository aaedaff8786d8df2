"""Each known trap of the formats and each public report names the cases that hold it, and those exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
CASES = PROJECT / "tests" / "cases"
COVERAGE: dict[str, dict[str, list[str]]] = yaml.safe_load((CASES / "coverage.yaml").read_text(encoding="utf-8"))
NUMBERED = {"claude-code": 10, "codex": 9, "aider": 8}
INGESTION = (1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 14, 15, 16, 18, 19, 20, 21, 22, 25)
REPORTS = (*INGESTION, 26, 27, 28, 29, 30, 32, 33, 35, 37, 38, 39, 40, 42, 44, 45, 46, 48, 50, 51, 54, 56)


@pytest.mark.parametrize("agent", NUMBERED)
def test_every_numbered_trap_of_a_format_is_listed(agent: str) -> None:
    numbers = [int(trap.split(" ")[0]) for trap in COVERAGE[agent]]
    assert numbers == list(range(1, NUMBERED[agent] + 1))


def test_every_public_report_is_listed() -> None:
    assert list(COVERAGE["reports"]) == [f"B{number:02d}" for number in REPORTS]


def test_every_trap_is_held_by_cases_that_exist() -> None:
    named = {(trap, name) for traps in COVERAGE.values() for trap, names in traps.items() for name in names or [""]}
    assert not {(trap, name) for trap, name in named if not is_there(name)}


def is_there(name: str) -> bool:
    """Tell whether a case, a file of tests, or a test in one (`file::name`) exists."""
    if "/" not in name:
        return (CASES / (name or "-")).exists()
    file, _, test = name.partition("::")
    path = PROJECT / file
    return path.exists() and (not test or f"def {test}(" in path.read_text(encoding="utf-8"))
