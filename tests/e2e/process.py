"""The real command line as processes: a daemon, and commands beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.world import World

FAST = (
    "write: {every_seconds: 0, git_every_seconds: 0, quiet_seconds: 0, max_wait_seconds: 0}\nscan: {every_seconds: 1}\n"
)
PATIENCE_SECONDS = 30.0


class Kbd:
    """Calls kbd on a world."""

    def __init__(self, world: World, **environment: str) -> None:
        self.world = world
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "PYTHONPATH")}
        self.environment = {**keep, "HOME": str(world.root / "home"), "TZ": "UTC", **environment}

    def command(self, *args: str) -> list[str]:
        root = self.world.root
        options = [
            "--config",
            str(root / "config.yaml"),
            "--state-dir",
            str(self.world.state),
            "--now",
            str(self.world.today),
        ]
        return [sys.executable, "-m", "kbd", *options, *args]

    def __call__(self, *args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.world.root,
        )

    def ok(self, *args: str) -> str:
        done = self(*args)
        assert done.returncode == 0, f"kbd {args} exited {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *args: str) -> Any:
        """Return what a reading command says, whatever the health."""
        done = self(*args, "--json")
        assert done.stdout, f"kbd {args} said nothing: {done.stderr}"
        return json.loads(done.stdout)

    def reasons(self) -> dict[str, str]:
        return {r["code"]: r["what"] for r in self.json("status")["reasons"]}

    def list_faults(self) -> list[str]:
        """Compare `kbd list --json` with the oracle."""
        wanted = self.world.oracle.numbers()
        entries = {e["title"]: e for e in self.json("list", "--all")["entries"]}
        faults = [f"{t} is not listed" for t in wanted.keys() - entries.keys()]
        for title, number in wanted.items():
            said = entries.get(title, {})
            last = str(number.last) if number.last else None
            expected = {"ref": number.ref, "last": last, "citations": number.citations, "sessions": number.sessions}
            faults += [
                f"{title}: {key} {said.get(key)}, oracle {value}"
                for key, value in expected.items()
                if said.get(key) != value
            ]
        return faults

    @contextmanager
    def daemon(self, command: list[str] | None = None) -> Iterator[Daemon]:
        """Run the daemon, or a command that is one; it is ended by SIGTERM, and must then exit 0 within 5 seconds."""
        log = self.world.root / "daemon.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(
                command or self.command("run"), env=self.environment, stdout=out, stderr=out, cwd=self.world.root
            )
        daemon = Daemon(process, log)
        try:
            yield daemon
            daemon.end()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


class Daemon:
    """A running daemon."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def until(
        self,
        reached: Callable[[], bool],
        what: Callable[[], object] = lambda: "",
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Wait until something is so, as long as the daemon lives."""
        deadline = time.monotonic() + patience_seconds
        while not reached():
            assert time.monotonic() < deadline, f"not reached: {what()}\n{self.said()[-3000:]}"
            try:
                code = self.process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the daemon exited {code}\n{self.said()[-3000:]}")

    def cpu_seconds(self) -> float:
        """Return the processor time that the daemon has used."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def end(self) -> None:
        self.process.terminate()
        code = self.process.wait(timeout=5)
        assert code == 0, f"exited {code}\n{self.said()[-3000:]}"
