"""Runs `kbd run --once` in a forked child and kills it with SIGKILL, at a chosen call or at a chosen instant.

Importing kbd once and forking makes a round cost some tens of milliseconds. The calls at which a crash can leave
something behind are wrapped in the child: writes (torn in the middle, too), syncs, renames, and each SQL statement.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kbd.config import load_config
from kbd.daemon import Setting, run_once
from kbd.store import exchange
from tests.e2e.world import World

TRACED = ("open", "write", "fsync", "rename", "replace", "link", "unlink", "ftruncate", "fchmod", "utime", "mkdir")


@dataclass(frozen=True)
class Death:
    """When a child dies: at its `call`-th traced call (before it, after it, or in the midst of a write), or `seconds`
    after its start. Neither: it lives."""

    call: int = 0
    how: str = "before"
    seconds: float = 0.0


class Counter:
    """Counts traced calls and dies at one of them."""

    def __init__(self, death: Death) -> None:
        self.death, self.calls = death, 0

    def due(self) -> bool:
        self.calls += 1
        return self.calls == self.death.call

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **options: Any) -> Any:
            if not self.due():
                return call(*args, **options)
            if self.death.how == "torn" and name == "write":
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            elif self.death.how == "after":
                call(*args, **options)
            die()

        return traced

    def install(self) -> None:
        for name in TRACED:
            setattr(os, name, self.wrapped(name, getattr(os, name)))
        for name in ("exchange", "rename_new"):
            real = getattr(exchange, name)
            for module in [
                m for n, m in sys.modules.items() if n.startswith("kbd.") and getattr(m, name, None) is real
            ]:
                setattr(module, name, self.wrapped(name, real))
        connect = sqlite3.connect

        def traced_connect(*args: Any, **options: Any) -> sqlite3.Connection:
            db = connect(*args, **options)
            db.set_trace_callback(lambda _statement: die() if self.due() else None)
            return db

        sqlite3.connect = traced_connect  # type: ignore[assignment]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def setting(world: World) -> Setting:
    now: datetime = world.now
    return Setting(
        lambda: load_config(world.root / "config.yaml"), world.state, {}, str(world.root / "home"), lambda: now
    )


def run(world: World, death: Death = Death(), passes: int = 1) -> tuple[bool, int]:
    """Run passes in a child; return whether it was killed, and how many traced calls it made if it lived.

    Raises:
        AssertionError: the child ended in another way than by the kill, or with another exit code than 0.
    """
    log = world.root / "child.log"
    reading, writing = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(world, death, passes, log, writing)
    os.close(writing)
    if death.seconds:
        signal.sigtimedwait({signal.SIGCHLD}, death.seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    signal.sigtimedwait({signal.SIGCHLD}, 0)
    calls = os.read(reading, 32)
    os.close(reading)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return not calls, int(calls or 0)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, f"{status}: {log.read_text(errors='replace')[-3000:]}"
    return False, int(calls)


def _live(world: World, death: Death, passes: int, log: Path, report: int) -> None:
    """Be the child; never return."""
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        tell, counter = os.write, Counter(death)
        counter.install()
        world.state.mkdir(mode=0o700, exist_ok=True)
        code = max(run_once(setting(world)) for _ in range(passes))
        tell(report, b"%d" % counter.calls)
    except BaseException:  # noqa: BLE001 - the child must never return into the test
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def random_death(rng: random.Random, calls: int, seconds: float) -> Death:
    """Choose when to die, given what a whole pass takes: early calls more often, the rest evenly."""
    if rng.random() < 0.2:
        return Death(seconds=rng.uniform(0.001, seconds))
    return Death(rng.randrange(1, max(calls, 2)), rng.choice(("before", "after", "torn")))
