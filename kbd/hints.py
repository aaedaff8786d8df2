"""What moved since the daemon last looked: paths, until they are so many that it looks everywhere."""

from __future__ import annotations

import threading
from collections.abc import Iterable

MAX_HINTS = 4096
FLOOD_EVENTS = 16_384
"""So many events more, while a look everywhere is due anyway, are a flood: they would pile up in memory."""


class Hints:
    """Paths that moved since the last look; too many become "look everywhere"."""

    def __init__(self) -> None:
        """Begin with nothing to look at."""
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._everywhere = False
        self._passed_over = 0
        self.wake = threading.Event()

    def note(self, paths: Iterable[str]) -> None:
        """Wake the daemon to look at these paths, besides the knowledge files; a folder stands for all in it."""
        with self._lock:
            self._paths.update(paths)
            self._everywhere = self._everywhere or len(self._paths) > MAX_HINTS
            if self._everywhere:
                self._paths.clear()
            self.wake.set()

    def pass_over(self) -> bool:
        """Tell whether the next look goes everywhere, so that an event more need not be noted; it is counted."""
        if self._everywhere:
            self._passed_over += 1
        return self._everywhere

    @property
    def is_flooded(self) -> bool:
        """Whether events come in such numbers that they had better not be listened to."""
        return self._everywhere and self._passed_over > FLOOD_EVENTS

    def look_everywhere(self) -> None:
        """Ask for a full scan."""
        with self._lock:
            self._everywhere = True
            self.wake.set()

    def take(self) -> set[str] | None:
        """Return what moved and forget it; None: look everywhere."""
        with self._lock:
            paths = None if self._everywhere else self._paths
            self._paths, self._everywhere, self._passed_over = set(), False, 0
            self.wake.clear()
            return paths
