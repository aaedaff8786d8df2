"""How often kbd writes into a file: changes are collected for a while, and whoever else writes there is left alone."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

from kbd.store.gitstate import in_git
from kbd.store.rewrite import Quiet


@dataclass(frozen=True, slots=True)
class Pace:
    """When files may be written (SPEC 13 `write`); times in seconds of the real clock.

    Attributes:
        every_seconds: at most one write in so long; `git_every_seconds` in a git work tree.
        quiet_seconds: not while the file changed so recently, for `max_wait_seconds` at most.
        immediate: write at once, without these delays (`run --once`).
    """

    every_seconds: float = 30
    git_every_seconds: float = 900
    quiet_seconds: float = 5
    max_wait_seconds: float = 300
    immediate: bool = False

    def seconds_to_wait(self, path: str, wrote_at: float | None, now: float) -> float:
        """Return for how long writes to a file are still collected; 0 if it may be written.

        Raises:
            FileUnreadable: a `.git` is there and cannot be read.
        """
        if self.immediate or wrote_at is None:
            return 0.0
        every = self.git_every_seconds if in_git(path) else self.every_seconds
        age = now - wrote_at
        return max(every - age, 0.0) if age >= 0 else 0.0

    def quiet(self, path: str, waiting: MutableMapping[str, float], now: float, own_mtime_ns: int | None) -> Quiet:
        """Return when a file counts as at rest; one that has waited for long enough does.

        `waiting` says since when which file waits; the caller takes a file out once it is written.
        """
        waited = now - waiting.setdefault(path, now)
        at_once = self.immediate or waited > self.max_wait_seconds
        return Quiet(now, 0.0 if at_once else self.quiet_seconds, own_mtime_ns)
