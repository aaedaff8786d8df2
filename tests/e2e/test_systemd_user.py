"""The service of a user without any rights: under its own `systemd --user`, and as the system-wide unit with `User=`.

PID 1 is no systemd here: a manager that root runs takes its place, which sets user and walls with the same code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbd.service_units import UNIT_NAME, Service, render_systemd
from tests.e2e.test_systemd import CONFIG, Home, wait_for
from tests.user_manager import Manager, user_manager

NOBODY = 65534
PROJECT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or os.geteuid() != 0,
        reason="root on Linux can be another user; any other user is one already (test_systemd.py)",
    ),
    pytest.mark.xdist_group("systemd"),
]


class Stranger(Home):
    """The home of a user without rights."""

    def kbd(self, *arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-P", "-m", "kbd", "--config", str(self.config)]
        command += ["--state-dir", str(self.folder / "state"), *arguments]
        done = self.run(*command)
        said = "".join(p.read_text() for p in (self.said, self.folder / "log") if p.exists())
        assert done.returncode == code, done.stdout + done.stderr + said
        return done.stdout

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = self.manager.env | {"PYTHONPATH": str(PROJECT)}
        return subprocess.run(
            [*self.manager.enter, *command], env=env, cwd="/", capture_output=True, text=True, timeout=60
        )


@pytest.fixture
def home() -> Iterator[Stranger]:
    with tempfile.TemporaryDirectory(prefix="kbd") as path:
        folder = Path(path).resolve()
        home = Stranger(folder, Manager.__new__(Manager))
        home.furnish()
        with user_manager(folder, NOBODY) as manager:
            home.manager = manager
            drop_in = manager.units / f"{UNIT_NAME}.d"
            drop_in.mkdir()
            (drop_in / "log.conf").write_text(f"[Service]\nStandardError=append:{home.said}\n")
            yield home


def test_service_of_a_user_without_rights_counts_writes_and_stays_within_its_walls(home: Stranger) -> None:
    home.config.write_text(CONFIG + "write: {every_seconds: 0, quiet_seconds: 0, max_wait_seconds: 0}\n")
    home.kbd("service", "install")
    counts_within_its_walls(home)
    assert json.loads(home.kbd("list", "--json"))["entries"][0]["citations"] == 1
    home.kbd("service", "uninstall")
    assert home.manager.show(UNIT_NAME, "LoadState") == "not-found"


def test_system_unit_runs_as_its_user_counts_writes_and_stays_within_its_walls() -> None:
    with tempfile.TemporaryDirectory(prefix="kbd") as path:
        folder = Path(path).resolve()
        home = Stranger(folder, Manager.__new__(Manager))
        home.furnish()
        home.config.write_text(CONFIG + "write: {every_seconds: 0, quiet_seconds: 0, max_wait_seconds: 0}\n")
        (folder / "state").mkdir(mode=0o700)
        for made in (folder / "work", *(folder / "work").rglob("*"), folder / "state"):
            os.chown(made, NOBODY, NOBODY)
        written = (str(home.lessons.parent), str(folder / "state"))
        command = (sys.executable, "-P", "-m", "kbd", "--config", str(home.config), "--state-dir", written[1])
        with user_manager(folder, for_others=True) as manager:
            home.manager = manager
            (manager.units / UNIT_NAME).write_text(render_systemd(Service(command, written), user="nobody"))
            manager.systemctl("daemon-reload")
            manager.systemctl("start", "--no-block", UNIT_NAME)
            counts_within_its_walls(home)
            manager.systemctl("stop", UNIT_NAME)
            assert manager.show(UNIT_NAME, "Result") == "success"


def counts_within_its_walls(home: Stranger) -> None:
    home.manager.wait_until(UNIT_NAME, "ActiveState", "active", seconds=20)
    pid = home.pid()
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == [str(NOBODY)] * 4
    assert (fields["CapEff"], fields["NoNewPrivs"], fields["Seccomp"]) == ("0" * 16, "1", "2")
    with home.log.open("a") as log:
        log.write("2026-06-11 10:00 as in Lock fd leaked on exception path, so\n\n")
    wait_for(lambda: "ref:1" in home.lessons.read_text(), "the number was not written", 30)
    assert home.lessons.stat().st_uid == NOBODY
    assert {path.stat().st_mode & 0o77 for path in (home.folder / "state").rglob("*")} == {0}
    mounts = Path(f"/proc/{pid}/mountinfo").read_text()
    points = {line.split()[4]: line.split()[5].split(",") for line in mounts.splitlines()}
    assert "ro" in points["/"]
    assert "rw" in points[str(home.lessons.parent)] and "rw" in points[str(home.folder / "state")]
    assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
