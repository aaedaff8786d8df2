"""The unit under a real user manager, with a stand-in for the daemon that speaks its protocol."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from kbd.service_units import UNIT_NAME, Service, render_systemd
from tests.user_manager import Manager, user_manager

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux only"),
    pytest.mark.xdist_group("systemd"),
]

# What the daemon does with the system, each said in one line; then it reports itself alive until told to stall.
STAND_IN = """\
import ctypes, fcntl, os, signal, socket, sqlite3, sys, threading, time
import watchdog.observers
import ahocorasick, msgspec
kb, state = sys.argv[1:3]

def tried(name, act):
    try:
        result = act()
    except OSError as error:
        result = type(error).__name__
    with open(f"{state}/said", "a") as file:
        file.write(f"{name}={result}\\n")

def exchange():
    for name in "ab":
        with open(f"{kb}/{name}", "w") as file:
            file.write(name)
    libc = ctypes.CDLL(None)
    libc.renameat2(-100, os.fsencode(f"{kb}/a"), -100, os.fsencode(f"{kb}/b"), 2)
    return open(f"{kb}/a").read()

def observe():
    observer = watchdog.observers.Observer()
    observer.schedule(watchdog.events.FileSystemEventHandler(), kb, recursive=True)
    observer.start(); observer.stop(); observer.join()
    return "ok"

def ledger():
    with sqlite3.connect(f"{state}/l") as db:
        return db.execute("pragma journal_mode=wal").fetchone()[0]

def outside():  # /tmp, where the test lies, stays open to a service that has files there
    path = f"/var/tmp/kbd-test-{os.getpid()}"
    with open(path, "w") as file:
        written = file.write("x")
    os.unlink(path)
    return written

def keep_owner():
    with open(f"{kb}/a") as file:
        os.fchown(file.fileno(), os.getuid(), os.getgid()); os.fchmod(file.fileno(), 0o640)
        fcntl.flock(file, fcntl.LOCK_EX)
    return oct(os.stat(f"{kb}/a").st_mode)

tried("exchange", exchange); tried("observe", observe); tried("ledger", ledger); tried("owner", keep_owner)
tried("outside", outside)
tried("network", lambda: socket.socket(socket.AF_INET))
tried("word", lambda: os.environ["ODD"])
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"])
stall = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: stall.set())
signal.signal(signal.SIGHUP, lambda *_: tried("reload", lambda: "ok"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
notify.send(b"READY=1")
while True:
    if not stall.is_set():
        notify.send(b"WATCHDOG=1")
    time.sleep(0.1)
"""
ODD = "a \"b\" 100% %h $HOME \\ 'c'"


@pytest.fixture(scope="module")
def folder():
    # Not pytest's own folder: the control socket needs a short path, and its parents are closed to other users.
    with tempfile.TemporaryDirectory(prefix="kbd") as path:
        yield Path(path).resolve()


@pytest.fixture(scope="module")
def manager(folder):
    with user_manager(folder) as running:
        yield running


def install(manager: Manager, folder: Path, namespaces: bool) -> str:
    """Write the unit, with short delays in a drop-in, and return its name."""
    name = UNIT_NAME if namespaces else f"open-{UNIT_NAME}"
    knowledge, state = folder / name / ODD.replace("/", ""), folder / name / "state"
    knowledge.mkdir(parents=True)
    state.mkdir()
    (folder / "stand_in.py").write_text(STAND_IN)
    command = (sys.executable, str(folder / "stand_in.py"), str(knowledge), str(state))
    written = (str(knowledge), str(state), str(folder / "absent"))
    unit = render_systemd(Service(command, written, environment=(("ODD", ODD),)), namespaces=namespaces)
    (manager.units / name).write_text(unit)
    (manager.units / f"{name}.d").mkdir()
    (manager.units / f"{name}.d/short.conf").write_text("[Service]\nRestartSec=0.1\nWatchdogSec=1\n")
    manager.systemctl("daemon-reload")
    return name


@pytest.mark.parametrize("namespaces", [True, False], ids=["walled", "open"])
def test_unit_becomes_active_by_notify_and_is_kept_alive(manager, folder, namespaces):
    unit = install(manager, folder, namespaces)
    manager.systemctl("start", unit)
    assert manager.show(unit, "ActiveState") == "active"
    said = folder / unit / "state/said"
    assert dict(line.split("=", 1) for line in said.read_text().splitlines()) == {
        "exchange": "b",
        "observe": "ok",
        "ledger": "wal",
        "owner": "0o100640",
        "outside": "OSError" if namespaces else "1",
        "network": "OSError",
        "word": ODD,
    }
    manager.systemctl("reload", unit)
    os.kill(int(manager.show(unit, "MainPID")), signal.SIGKILL)
    manager.wait_until(unit, "NRestarts", "1")
    manager.wait_until(unit, "ActiveState", "active")
    assert "reload=ok" in said.read_text()
    os.kill(int(manager.show(unit, "MainPID")), signal.SIGUSR1)
    manager.wait_until(unit, "NRestarts", "2")
    manager.wait_until(unit, "ActiveState", "active")
    manager.systemctl("stop", unit)
    assert manager.show(unit, "Result") == "success"


def test_exit_that_a_restart_cannot_mend_stays(manager, folder):
    service = Service(("/bin/sh", "-c", "exit 2"), (str(folder),))
    (manager.units / "final.service").write_text(render_systemd(service))
    manager.systemctl("daemon-reload")
    manager.systemctl("start", "--no-block", "final.service")
    manager.wait_until("final.service", "ActiveState", "failed")
    assert manager.show("final.service", "ExecMainStatus") == "2"
    assert manager.show("final.service", "NRestarts") == "0"
