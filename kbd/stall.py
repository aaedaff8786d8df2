"""Ends a daemon that makes no progress, so that whoever keeps it alive starts it anew: not every system has a watchdog.

Silence is counted in ticks of its own thread, not by a clock: a process stopped or suspended for a week has missed no
tick. A pass that never lets another thread run is ended by the kernel after as much processor time.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading

LOG = logging.getLogger("kbd")
STALL_SECONDS = 900.0
"""So long a step may take; steps are batches, files and thousands of files looked at, most of them milliseconds."""
TICK_SECONDS = 5.0
LAST_WORDS_SECONDS = 5.0
STALLED_EXIT = 1


class StallGuard:
    """Watches for silence."""

    def __init__(self, limit_seconds: float = STALL_SECONDS, tick_seconds: float = TICK_SECONDS) -> None:
        """Prepare; nothing is watched before `start`."""
        self._limit, self._tick = limit_seconds, tick_seconds
        self._silent = 0.0
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        # The default of SIGPROF ends the process; where it hung is written before, without Python's help.
        faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
        self.progress()
        threading.Thread(target=self._watch, name="stall-guard", daemon=True).start()

    def progress(self) -> None:
        """Note that a step was done."""
        self._silent = 0.0
        signal.setitimer(signal.ITIMER_PROF, self._limit)

    def stop(self) -> None:
        """Cease to watch."""
        self._stopped.set()
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _watch(self) -> None:
        while not self._stopped.wait(self._tick):
            self._silent += self._tick
            if self._silent >= self._limit:
                self._end()

    def _end(self) -> None:
        # What hangs may be the log itself, as when nobody reads the pipe it goes into.
        words = threading.Thread(target=self._say, daemon=True)
        words.start()
        words.join(LAST_WORDS_SECONDS)
        os._exit(STALLED_EXIT)

    def _say(self) -> None:
        LOG.error("stalled seconds=%d", self._silent)
        faulthandler.dump_traceback(all_threads=True)
