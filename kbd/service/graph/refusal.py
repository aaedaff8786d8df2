"""What a change or a question is refused with, and why."""

from __future__ import annotations

from collections.abc import Sequence

from kbd.core.model import Problem
from kbd.errors import Refused


class GraphRefused(Refused):
    """A change that the schema or a contract forbids; `problems` say all that speaks against it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Take the reasons; the message has a line for each."""
        self.problems = tuple(problems)
        lines = [f"  - {p.where}: {p.what}; {p.hint}" for p in problems]
        super().__init__("\n".join(["refused, and nothing was written", *lines]))
