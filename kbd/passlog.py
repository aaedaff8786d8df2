"""The daemon's log on stderr: how its lines look, and the line that a pass leaves."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kbd.core.redact import printable
from kbd.engine import PassReport
from kbd.service.status.reasons import USUAL_FAULTS

LOG = logging.getLogger("kbd")


def log_to_stderr(env: Mapping[str, str]) -> None:
    """Write the log as `event key=value …` lines; the journal adds times itself, a terminal or a file does not."""
    stamp = "" if "JOURNAL_STREAM" in env else "%(asctime)s "
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable(f"{stamp}%(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Printable(logging.Formatter):
    """A traceback may quote what a stranger wrote."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), keep_lines=True)


def log_pass(report: PassReport, seconds: float) -> None:
    """Log a pass that did or met something; that a write waits its turn is no problem, and `status` shows it."""
    problems = sum(problem.code not in USUAL_FAULTS for problem in report.problems)
    if not (report.records or report.written or problems):
        return
    LOG.info(
        "pass files=%d records=%d citing=%d bytes=%d written=%d problems=%d seconds=%.2f",
        report.files,
        report.records,
        report.citing,
        report.read_bytes,
        report.written,
        problems,
        seconds,
    )
