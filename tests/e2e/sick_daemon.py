"""A real daemon to which something happens inside: `python -m tests.e2e.sick_daemon ILLNESS LIMIT KBD-OPTIONS…`.

It runs as `kbd run` does; the illness begins when the file `strike` appears in its working directory.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from watchdog.utils import BaseThread

from kbd import daemon as daemon_module
from kbd.config import load_config
from kbd.daemon import Daemon, Setting
from kbd.engine import PassReport
from kbd.passlog import log_to_stderr
from kbd.stall import StallGuard
from kbd.store.locks import InstanceLock

STRIKE = Path("strike")


def lose_thread(kind: str) -> Callable[[Daemon], None]:
    """End the threads of a class of watchdog, as an exception in them would, when they next run."""

    def strike(_daemon: Daemon) -> None:
        for thread in threading.enumerate():
            if isinstance(thread, BaseThread) and kind in type(thread).__name__:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
                )

    return strike


def instead_of_a_pass(act: Callable[[Callable[[Any], None]], None]) -> Callable[[Daemon], None]:
    """Let the next passes do something else; it is given what tells of progress."""

    def strike(daemon: Daemon) -> None:
        run_pass = daemon.engine.run_pass

        def sick(*args: Any, **options: Any) -> Any:
            act(options["beat"])
            return run_pass(*args, **options)

        daemon.engine.run_pass = sick  # type: ignore[method-assign]

    return strike


def creep(beat: Callable[[Any], None]) -> None:
    """Take longer than the limit, with progress all the time; leave word of how many signs of life that made."""
    signs = set()
    for _ in range(12):
        threading.Event().wait(0.25)
        beat(PassReport())
        signs.add(os.stat("state/heartbeat.json").st_mtime_ns)
    Path("creeping").write_text(str(len(signs)))
    Path("creeping").rename("crept")


ILLNESSES: dict[str, Callable[[Daemon], None]] = {
    "emitter": lose_thread("Emitter"),
    "reader": lose_thread("InotifyFD"),
    "dispatcher": lose_thread("Observer"),
    "hang": instead_of_a_pass(lambda beat: threading.Event().wait() and None),
    "spin": instead_of_a_pass(lambda beat: re.match(r"(a+)+$", "a" * 60 + "b") and None),
    "creep": instead_of_a_pass(creep),
    "none": lambda daemon: None,
}


def _fall_ill(daemon: Daemon, strike: Callable[[Daemon], None]) -> None:
    while not STRIKE.exists():
        threading.Event().wait(0.05)
    strike(daemon)
    STRIKE.unlink()


def main(illness: str, limit_seconds: str, root: str) -> int:
    log_to_stderr(os.environ)
    daemon_module.BREATH_SECONDS = 1.0
    home = Path(root)
    load = partial(load_config, home / "config.yaml")
    setting = Setting(load, home / "state", os.environ, str(home / "home"), lambda: datetime.now(UTC))
    with InstanceLock(setting.state_dir):
        daemon = Daemon(setting, StallGuard(float(limit_seconds), 0.1))
        threading.Thread(target=_fall_ill, args=(daemon, ILLNESSES[illness]), daemon=True).start()
        return daemon.run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
