"""The daemon: decides when passes run, and stays alive whatever a pass meets.

Events are hints, scans are the truth. One daemon runs on a state directory. Progress is proven by the pass itself:
only then is the service manager's watchdog fed.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from kbd import __version__
from kbd.config import Config
from kbd.core.redact import printable
from kbd.engine import Clock, Engine, PassReport
from kbd.engine.watching import seconds_between_scans
from kbd.errors import FileUnwritable, KbdError, UsageError
from kbd.hints import Hints
from kbd.notify import Notifier
from kbd.passlog import log_pass, log_to_stderr
from kbd.stall import StallGuard
from kbd.store.displaced import DISPLACED
from kbd.store.filesystem import require_local
from kbd.store.heartbeat import Heartbeat, write_heartbeat
from kbd.store.localzone import LocalZone
from kbd.store.locks import InstanceLock, running_pid
from kbd.store.pausing import pause_in_force
from kbd.streams import has_terminal, talk
from kbd.watch import Watch

LOG = logging.getLogger("kbd")
SETTLE_SECONDS = 0.25
RETRY_SECONDS = 15.0
START_EXTENSION_USEC = 60_000_000
"""A first reading that makes progress may take another minute, again and again."""
BREATH_SECONDS = 60.0
"""While nothing happens the daemon shows that often that it waits and does not hang."""
LAST_WRITES_SECONDS = 3.0
"""For so long a daemon that was told to end writes what it has collected; it is to be gone within five seconds."""
REST_SECONDS = 2.0
"""While paused the daemon looks that often whether the pause is over; and while files that it replaced may still be
open elsewhere, whether someone wrote into them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a daemon runs on.

    Attributes:
        load: reads the configuration anew (SIGHUP); raises UsageError.
        state_dir: the state directory.
        env: environment; home: the user's home.
        now: the clock, or a given time.
    """

    load: Callable[[], Config]
    state_dir: Path
    env: Mapping[str, str]
    home: str
    now: Callable[[], datetime]


def run_once(setting: Setting) -> int:
    """Run one full pass and exit: 0 if all went well, 1 if something could not be done. While paused: no pass."""
    pause = pause_in_force(setting.state_dir, datetime.now(UTC))
    if pause is not None:
        talk(f"paused {pause.words()}")
        return 0
    require_local(setting.state_dir)
    with InstanceLock(setting.state_dir):
        engine = Engine(setting.load(), setting.state_dir, setting.env, setting.home, setting.now())
        try:
            stop = _Stop()
            report = engine.run_pass(Clock(setting.now(), time.time(), LocalZone()), immediate=True, stop=stop.is_set)
        finally:
            engine.close()
    log_pass(report, 0.0)
    if sys.stderr.isatty():  # in a timer's mail only what went wrong
        read = f"files read: {report.files:,}, records: {report.records:,}, citing: {report.citing:,}"
        talk(f"{read}, entries written: {report.written:,}")
    for problem in report.problems:
        talk(printable(f"{problem.where}: {problem.what}; {problem.hint}"))
    # What an editor wrote over kbd is saved: that is for a person to merge, and nothing that could not be done.
    return 1 if any(problem.code != "write_conflict" for problem in report.problems) else 0


def rescan(setting: Setting, source: str | None) -> int:
    """Read all transcripts, or those of one source, from the beginning again. Changes no number.

    A running daemon is left to do it: it finds the files rewound at its next full scan.
    """
    engine = Engine(setting.load(), setting.state_dir, setting.env, setting.home, setting.now())
    try:
        if source is not None and source not in {spec.name for _, spec in engine.frame.sources()}:
            raise UsageError(f"no source named {source!r}", hint="see `kbd sources`")
        engine.rewind(source)
    finally:
        engine.close()
    if running_pid(setting.state_dir) is None:
        return run_once(setting)
    talk("the running daemon reads it again when it looks at all files next")
    return 0


class _Stop:
    """Set by SIGTERM and SIGINT; a second SIGINT ends the process the usual way."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.on_stop: Callable[[], None] = lambda: None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._set)

    def _set(self, number: int, _frame: FrameType | None) -> None:
        if self._event.is_set() and number == signal.SIGINT:
            signal.default_int_handler(number, None)
        self._event.set()
        self.on_stop()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)


def run_forever(setting: Setting) -> int:
    """Run until SIGTERM; returns the exit code. Raises AlreadyRunning if a daemon runs on the state directory."""
    log_to_stderr(setting.env)
    require_local(setting.state_dir)
    with InstanceLock(setting.state_dir) as lock:
        return Daemon(setting, is_in_place=lock.stands).run()


class Daemon:
    """The loop around the passes."""

    def __init__(
        self, setting: Setting, guard: StallGuard | None = None, is_in_place: Callable[[], bool] = lambda: True
    ) -> None:
        """Open everything; raises what the configuration and the ledger raise.

        `is_in_place` tells whether the state directory is still the one that the daemon began with.
        """
        self.setting, self.guard, self.is_in_place = setting, guard or StallGuard(), is_in_place
        self.config = setting.load()
        self.engine = Engine(self.config, setting.state_dir, setting.env, setting.home, setting.now())
        self.hints = Hints()
        self.stop = _Stop()
        self.watch = Watch(self.hints, str(setting.state_dir), self._goes_on)
        self.stop.on_stop = self.hints.wake.set
        self.notifier = Notifier(setting.env)
        self.reload = threading.Event()
        # Told by `nohup` to outlive its terminal, or without one, the daemon takes every SIGHUP for a reload.
        self._ends_with_terminal = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and has_terminal()
        signal.signal(signal.SIGHUP, self._on_hangup)
        self.since = datetime.now(UTC)
        self.last_error = self.refused_config = self.mended = ""
        self.next_full = self.scan_every = 0.0
        self.is_ready = False
        self.last_pass_at: datetime | None = None
        self._fed = self._told = 0.0

    def _goes_on(self) -> bool:
        self._beat(None)
        return not self.stop.is_set()

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        if self._ends_with_terminal and not has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        self.reload.set()
        self.hints.wake.set()

    def run(self) -> int:
        """Loop until told to stop."""
        LOG.info("started pid=%d state=%s", os.getpid(), self.setting.state_dir)
        self.guard.start()
        try:
            self.watch.start(self.engine.watched_folders())
            self.hints.look_everywhere()
            while not self.stop.is_set():
                self._require_state()
                if self.reload.is_set():
                    self._reload()
                pause = pause_in_force(self.setting.state_dir, datetime.now(UTC))
                if pause is None:
                    self._pass()
                else:
                    self._heartbeat(None, f"paused {pause.words()}")
                if not self.is_ready:
                    self.notifier.send(READY=1)
                    self.is_ready = True
                if pause is None:
                    self._wait()
                else:
                    self.stop.wait(REST_SECONDS)
                    self.engine.look_again()
            self._write_last()
        finally:
            self.guard.stop()
            self.notifier.send(STOPPING=1)
            self.watch.stop()
            self.engine.close()
        LOG.info("stopped")
        return 0

    def _write_last(self) -> None:
        """Write what waits to be written; what cannot be now is written after the next start."""
        if pause_in_force(self.setting.state_dir, datetime.now(UTC)) is not None:
            return
        try:
            report = self.engine.write_last(Clock(self.setting.now(), time.time(), LocalZone()), LAST_WRITES_SECONDS)
        except KbdError as exc:
            LOG.error("last_write_failed error=%s", type(exc).__name__)
        else:
            log_pass(report, 0.0)

    def _require_state(self) -> None:
        """End a daemon whose state directory was deleted or moved: what it counts now would be lost, or counted twice.

        Raises:
            FileUnwritable: whoever keeps the daemon alive starts it on what is there now.
        """
        if not (self.is_in_place() and self.engine.frame.ledger.stands()):
            LOG.error("state_gone")
            what = "the state directory or its ledger was deleted, moved or replaced under the daemon"
            raise FileUnwritable(what, where=str(self.setting.state_dir), hint="start it again: `kbd run`")

    def _reload(self) -> None:
        """Take the new configuration; a bad one is refused and the old one stays."""
        self.reload.clear()
        self.notifier.send(RELOADING=1, MONOTONIC_USEC=time.monotonic_ns() // 1000)
        try:
            self.config = self.setting.load()
        except UsageError as exc:
            self.refused_config = f"configuration refused, the old one stays: {exc}"
            LOG.error("config_refused")
            talk(printable(str(exc), keep_lines=True))
        else:
            self.refused_config = ""
            self.engine.take_config(self.config)
            self.watch.start(self.engine.watched_folders())
            LOG.info("config_loaded")
        self.hints.look_everywhere()
        self.notifier.send(READY=1)

    def _pass(self) -> None:
        """Run one pass; whatever it meets, the daemon goes on and says so."""
        began = time.monotonic()
        if time.monotonic() >= self.next_full:
            self.hints.look_everywhere()
        hints = self.hints.take()
        clock = Clock(self.setting.now(), time.time(), LocalZone())
        try:
            report = self.engine.run_pass(clock, immediate=False, hints=hints, stop=self.stop.is_set, beat=self._beat)
        except KbdError as exc:
            self._failed(exc)
            return
        except Exception as exc:
            LOG.exception("pass_failed")
            self._failed(exc)
            return
        self.last_error = ""
        seconds = time.monotonic() - began
        if hints is None:
            told = not self.watch.degraded
            self.scan_every = seconds_between_scans(self.config.scan.every_seconds, report.scan_seconds, told=told)
            self.next_full = time.monotonic() + self.scan_every
        if not report.complete:
            self.hints.look_everywhere()
        self._heartbeat(report)
        log_pass(report, seconds)

    def _failed(self, exc: Exception) -> None:
        self.last_error = printable(str(exc)) or type(exc).__name__
        LOG.error("pass_failed error=%s", type(exc).__name__)
        self._heartbeat(None)
        self.next_full = time.monotonic() + RETRY_SECONDS

    def _beat(self, report: PassReport | None) -> None:
        """Tell the service manager that a step was proven to be done; before the first READY, that it takes longer."""
        self.guard.progress()
        self.watch.rest()
        if not self.is_ready:
            self.notifier.send(EXTEND_TIMEOUT_USEC=START_EXTENSION_USEC)
        if self.notifier.watchdog_seconds and time.monotonic() - self._fed > self.notifier.watchdog_seconds / 4:
            self._fed = time.monotonic()
            self.notifier.send(WATCHDOG=1)
        if report is not None and self.last_pass_at is not None and time.monotonic() - self._told > BREATH_SECONDS:
            self._tell()  # a pass over a backlog may take an hour

    def _heartbeat(self, report: PassReport | None, resting: str = "") -> None:
        """Say how the daemon fares; one that rests, as told, is as well as one that made a pass."""
        self.guard.progress()
        status = resting or self.last_error or self.watch.degraded or "watching"
        if report is not None or resting:
            self.notifier.send(WATCHDOG=1, STATUS=status)
        else:
            self.notifier.send(WATCHDOG=1, STATUS=f"failing: {status}")
        self.last_pass_at = datetime.now(UTC) if report is not None else self.last_pass_at
        self._tell()

    def _tell(self) -> None:
        """Leave a sign of life for `status`."""
        self._told = time.monotonic()
        beat = Heartbeat(
            pid=os.getpid(),
            since=self.since,
            version=__version__,
            at=datetime.now(UTC),
            watching=self._watching(),
            scan_every_seconds=self.scan_every,
            last_pass_at=self.last_pass_at,
            last_error=self.last_error or self.refused_config,
            config=self.config.digest,
        )
        try:
            write_heartbeat(self.setting.state_dir, beat)
        except FileUnwritable as exc:
            LOG.error("heartbeat_failed")
            self.last_error = self.last_error or str(exc)

    def _watching(self) -> str:
        """Say how changes are noticed, and what last kept them from being."""
        if self.watch.degraded:
            return f"polling: {self.watch.degraded}"
        return "inotify" + (f" ({self.mended})" if self.mended else "")

    def _wait(self) -> None:
        """Sleep until something moved, a full scan is due, or a write that waited may be done.

        After a failed pass only the next try counts: a write that could not be done is due at every moment.
        """
        pause = max(self.next_full - time.monotonic(), 0.0)
        if not self.last_error:
            pause = min(pause, self.engine.seconds_to_next_write(time.time()), self.config.scan.every_seconds)
        deadline = time.monotonic() + max(pause, 0.05)
        breath = (self.notifier.watchdog_seconds or BREATH_SECONDS) / 3
        breathe_at = time.monotonic() + breath
        while not self.stop.is_set() and (left := deadline - time.monotonic()) > 0:
            if self.hints.wake.wait(min(left, REST_SECONDS if DISPLACED else breath)):
                self._settle()
                break
            if self.engine.look_again():
                break
            if time.monotonic() >= breathe_at:
                breathe_at += breath
                self._require_state()
                self._beat(None)  # this loop turns, so the daemon is alive, however long nothing happens
                self._mend_watch()
        self._mend_watch()

    def _mend_watch(self) -> None:
        """Watch anew where events do not come any more; then the next pass looks everywhere."""
        if what := self.watch.refresh():
            self.mended = f"{what} at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: all files were looked at"
            LOG.warning("watch_mended")

    def _settle(self) -> None:
        """Let a burst of events come in, so that one pass serves them all."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while not self.stop.is_set() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
