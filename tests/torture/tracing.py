"""Runs a piece of kbd in a forked child under strace, which records its system calls or tampers with one of them.

The child begins when strace holds it, so ordinals count from its first step; importing kbd is none of them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

CHANGING = (
    "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2", "link", "linkat",
    "unlink", "unlinkat", "mkdir", "mkdirat", "fchmod", "utimensat", "fsetxattr", "openat",
)  # fmt: skip
OPTIONAL = frozenset({"rename", "renameat", "link", "unlink", "mkdir"})
"""Calls that some machines have only in their `…at` form."""

_CALL = re.compile(r"(?:\d+ +)?(?P<name>\w+)\((?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A recorded call: the `number`-th of its `name`, counted from 1, and the words strace has for it."""

    name: str
    number: int
    text: str

    @property
    def opens_to_read(self) -> bool:
        return self.name == "openat" and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", self.text)


@dataclass(frozen=True)
class End:
    """How a child ended: killed, or with an exit code; and what it said."""

    killed: bool
    code: int
    said: str


def require_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")


class Traced:
    """A child that waits at its first step for strace, and wherever its body calls `rest`."""

    def __init__(self, body: Callable[[Callable[[], None]], int], folder: Path, *options: str) -> None:
        self._log = folder / "child.log"
        self.trace = folder / "trace.log"
        self._ready, told = os.pipe()
        gate, self._gate = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            os.close(self._ready)
            _live(body, self._log, gate, told)
        os.close(gate)
        os.close(told)
        calls = ",".join("?" + name if name in OPTIONAL else name for name in CHANGING)
        command = ["strace", "-p", str(self.pid), "-o", str(self.trace), "-y", "-e", "signal=none"]
        if not any(option.startswith("trace=") for option in options):
            command += ["-e", f"trace={calls}"]
        for option in options:
            command += ["-e", option] if "=" in option else option.split(" ")
        self._strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._strace.stderr is not None
        said = self._strace.stderr.readline()
        if "attached" not in said:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            pytest.skip(f"strace may not trace here: {said.strip()}")

    def to_rest(self) -> bool:
        """Let the child go on until it rests; return False if it ended instead."""
        self._go()
        return os.read(self._ready, 1) != b""

    def _go(self) -> None:
        with suppress(BrokenPipeError):  # dead already
            os.write(self._gate, b"x")

    def end(self) -> End:
        """Let the child go on to its end."""
        self._go()
        _, status = os.waitpid(self.pid, 0)
        self._strace.communicate()
        os.close(self._gate)
        os.close(self._ready)
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        code = os.waitstatus_to_exitcode(status)
        return End(code == -signal.SIGKILL, code, said)


def _live(body: Callable[[Callable[[], None]], int], log: Path, gate: int, told: int) -> None:
    """Be the child; never return."""
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.read(gate, 1)

        def rest() -> None:
            os.write(told, b"r")
            os.read(gate, 1)

        code = body(rest)
    except BaseException:  # noqa: BLE001 - the child must never return into the test
        traceback.print_exc()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def calls_of(trace: Path) -> list[Call]:
    """Return the calls that a trace holds, in order."""
    seen: dict[str, int] = {}
    calls = []
    for line in trace.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found:
            seen[found["name"]] = seen.get(found["name"], 0) + 1
            calls.append(Call(found["name"], seen[found["name"]], found["rest"]))
    return calls
