"""Each known trap of the formats and each public report names the cases that hold it, and those exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
CASES = PROJECT / "tests" / "cases"
COVERAGE: dict[str, dict[str, list[str]]] = yaml.safe_load((CASES / "coverage.yaml").read_text(encoding="utf-8"))
NUMBERED = {"claude-code": 10, "codex": 7, "aider": 7}
REPORTS = (1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 14, 15, 16, 18, 19, 20, 21, 22, 25)


@pytest.mark.parametrize("agent", NUMBERED)
def test_every_numbered_trap_of_a_format_is_listed(agent: str) -> None:
    numbers = [int(trap.split(" ")[0]) for trap in COVERAGE[agent]]
    assert numbers == list(range(1, NUMBERED[agent] + 1))


def test_every_report_on_ingestion_and_counting_is_listed() -> None:
    assert list(COVERAGE["reports"]) == [f"B{number:02d}" for number in REPORTS]


def test_every_trap_is_held_by_cases_that_exist() -> None:
    named = {(trap, name) for traps in COVERAGE.values() for trap, names in traps.items() for name in names or [""]}
    missing = {(trap, n) for trap, n in named if not (PROJECT / n if "/" in n else CASES / (n or "-")).exists()}
    assert not missing
