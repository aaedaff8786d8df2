"""Prints the record after a campaign."""

from __future__ import annotations

import pytest

from tests.torture.record import table


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.markexpr == "torture":
        terminalreporter.section("torture record")
        terminalreporter.write_line(table())
