"""The daemon under a real `systemd --user`: installed by `kbd service`, kept alive, watched, reloaded, stopped."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kbd.service_units import UNIT_NAME
from tests.user_manager import Manager, user_manager

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux only"),
    pytest.mark.xdist_group("systemd"),
]

CONFIG = """\
bases:
- {name: lessons, files: [knowledge/*.md]}
sources:
- {name: logs, path: logs, format: text}
scan: {every_seconds: 1}
"""
# The unit's own delays are minutes; what they do is the same in seconds.
SHORT = "[Service]\nRestartSec=0.1\nWatchdogSec=4\nStandardError=append:{log}\n"


class Home:
    """A user's home with a configuration, and kbd called in it."""

    def __init__(self, folder: Path, manager: Manager) -> None:
        self.folder, self.manager = folder, manager
        self.config = folder / "work/config.yaml"
        self.lessons = folder / "work/knowledge/lessons.md"
        self.log = folder / "work/logs/agent.log"
        self.said = folder / "daemon.log"

    def furnish(self) -> None:
        self.lessons.parent.mkdir(parents=True)
        self.log.parent.mkdir()
        self.config.write_text(CONFIG)
        self.lessons.write_text("- **Lock fd leaked on exception path**: close it in finally (2026-05-19)\n")
        self.log.write_text("")

    def kbd(self, *arguments: str, code: int = 0) -> str:
        done = self.called(*arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def called(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "kbd", "--config", str(self.config)]
        command += ["--state-dir", str(self.folder / "state"), *arguments]
        return subprocess.run(command, env=self.manager.env, cwd="/", capture_output=True, text=True, timeout=60)

    def remedies(self) -> dict[str, str]:
        """Return code → remedy of what is wrong."""
        return {one["code"]: one["remedy"] for one in json.loads(self.called("status", "--json").stdout)["reasons"]}

    def status(self) -> dict:
        return json.loads(self.kbd("service", "status", "--json"))["service"]

    def pid(self) -> int:
        return int(self.manager.show(UNIT_NAME, "MainPID"))


def wait_for(holds, what: str, seconds: float = 15) -> None:
    """Ask a process outside until it answers as expected; there is no other way to wait for one."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def home():
    with tempfile.TemporaryDirectory(prefix="kbd") as path, user_manager(Path(path).resolve()) as manager:
        home = Home(Path(path).resolve(), manager)
        home.furnish()
        (manager.units / f"{UNIT_NAME}.d").mkdir()
        (manager.units / f"{UNIT_NAME}.d/short.conf").write_text(SHORT.format(log=home.said))
        yield home


@pytest.fixture
def running(home):
    """The service, installed and settled."""
    home.config.write_text(CONFIG)
    home.kbd("service", "install")
    home.manager.wait_until(UNIT_NAME, "ActiveState", "active")
    yield home
    home.kbd("service", "uninstall")


def test_installed_service_becomes_active_and_counts(running):
    status = running.status()
    assert status["installed"] and status["current"] and status["enabled"]
    assert (status["active"], status["pid"]) == ("active", running.pid())
    running.log.write_text("2026-06-11 10:00 as in Lock fd leaked on exception path, so\n\n")
    wait_for(lambda: '"citations": 1' in running.kbd("list", "--json"), "the citation was not counted")


def test_killed_daemon_is_started_again(running):
    os.kill(running.pid(), signal.SIGKILL)
    running.manager.wait_until(UNIT_NAME, "NRestarts", "1")
    running.manager.wait_until(UNIT_NAME, "ActiveState", "active")
    assert running.status()["restarts"] == 1


def test_watchdog_fires_on_a_stalled_daemon_and_only_then(running):
    # Idle for longer than the watchdog's time: a daemon without work is no stalled one.
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 5, "the clock stands still")
    assert running.manager.show(UNIT_NAME, "NRestarts") == "0"
    os.kill(running.pid(), signal.SIGSTOP)
    running.manager.wait_until(UNIT_NAME, "NRestarts", "1", seconds=20)
    running.manager.wait_until(UNIT_NAME, "ActiveState", "active")


def test_stop_ends_well_within_five_seconds(running):
    began = time.monotonic()
    running.manager.systemctl("stop", UNIT_NAME)
    assert time.monotonic() - began < 5
    assert running.manager.show(UNIT_NAME, "Result") == "success"
    assert running.manager.show(UNIT_NAME, "ExecMainStatus") == "0"
    running.kbd("service", "status", code=3)


def test_reload_takes_a_new_configuration_and_refuses_a_bad_one(running):
    pid = running.pid()
    running.config.write_text(CONFIG.replace("name: lessons", "name: renamed"))
    running.manager.systemctl("reload", UNIT_NAME)
    wait_for(lambda: '"base": "renamed"' in running.kbd("list", "--json"), "the new configuration was not taken")
    running.config.write_text("bases: [")
    running.manager.systemctl("reload", UNIT_NAME)
    wait_for(lambda: "config_refused" in running.said.read_text(), "the bad configuration was not refused")
    running.config.write_text(CONFIG.replace("name: lessons", "name: renamed"))
    with running.log.open("a") as log:
        log.write("2026-06-12 10:00 as in Lock fd leaked on exception path, again\n\n")
    wait_for(lambda: '"last": "2026-06-12"' in running.kbd("list", "--json"), "it does not go on")
    assert running.pid() == pid


def test_unit_follows_the_configuration_once_installed_anew(running):
    (running.folder / "elsewhere").mkdir(exist_ok=True)
    running.config.write_text(CONFIG.replace("knowledge/*.md", f"knowledge/*.md, {running.folder}/elsewhere/*.md"))
    out = running.kbd("service", "status", code=1)
    assert "renews it" in out
    out = running.kbd("service", "install")
    assert "elsewhere" in out
    assert running.status()["current"]


def test_installing_again_starts_a_daemon_anew_only_if_it_read_another_configuration(running):
    pid = running.pid()
    assert "installed already" in running.kbd("service", "install")
    assert running.pid() == pid
    running.config.write_text(f"{CONFIG}# edited, and nothing that concerns the unit\n")
    running.kbd("service", "install")
    running.manager.wait_until(UNIT_NAME, "ActiveState", "active")
    assert running.pid() != pid


@pytest.fixture
def elsewhere():
    """A folder outside /tmp, where the test lies: that stays open to a service which has files there."""
    with tempfile.TemporaryDirectory(prefix="kbd", dir="/var/tmp") as path:
        yield Path(path).resolve()


def test_folder_that_the_walls_keep_shut_is_told_with_what_opens_it(running, elsewhere):
    folder, title = elsewhere, "Walls have ears and no doors"
    (folder / "late.md").write_text(f"- **{title}** (2026-05-19)\n")
    late = CONFIG.replace("scan:", "write: {every_seconds: 0, quiet_seconds: 0}\nscan:")
    running.config.write_text(late.replace("\nsources", f"\n- {{name: late, files: ['{folder}/*.md']}}\nsources"))
    running.manager.systemctl("reload", UNIT_NAME)
    with running.log.open("a") as log:
        log.write(f"2026-06-13 10:00 as in {title}, so\n\n")
    wait_for(lambda: "late" in running.kbd("list", "--json"), "the new base was not read")
    wait_for(lambda: "write_failed" in running.remedies(), "the write that failed is not told")
    assert "`kbd service install` opens" in running.remedies()["write_failed"]
    running.kbd("service", "install")
    wait_for(lambda: "ref:" in (folder / "late.md").read_text(), "it was not written then either")


def test_uninstalled_service_leaves_nothing_behind(home):
    home.kbd("service", "install")
    home.kbd("service", "uninstall")
    assert home.manager.show(UNIT_NAME, "LoadState") == "not-found"
    assert not (home.manager.units / UNIT_NAME).exists()
    assert not list(home.manager.units.rglob(f"*.wants/{UNIT_NAME}"))
    assert "not installed" in home.kbd("service", "uninstall")


def test_daemon_in_the_foreground_keeps_the_service_from_being_installed(home):
    command = [
        sys.executable,
        "-P",
        "-m",
        "kbd",
        "--config",
        str(home.config),
        "--state-dir",
        str(home.folder / "state"),
    ]
    with subprocess.Popen([*command, "run"], env=home.manager.env, stderr=subprocess.DEVNULL) as daemon:
        wait_for(
            lambda: (home.folder / "state/daemon.lock").exists() and (home.folder / "state/daemon.lock").read_text(),
            "the daemon did not start",
        )
        home.kbd("service", "install", code=3)
        assert not (home.manager.units / UNIT_NAME).exists()
        daemon.terminate()
        assert daemon.wait(10) == 0
