"""A real `systemd --user` for tests, on a system that may not have been booted with systemd.

As root, in a mount namespace of its own: systemd only asks that /run/systemd/system exists, and wants a cgroup it
owns. Any other user needs a booted systemd, whose manager of that user lends a cgroup. The control socket lies in a
folder of the test, so that `systemctl --user` reaches it from outside.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# unit-root is where systemd builds the file system of a walled service, inaccessible/ what it puts over files that
# the service may not see; on a booted system PID 1 makes both.
_BOOT = """\
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/systemd/unit-root /run/systemd/inaccessible/dir
cd /run/systemd/inaccessible
touch reg && mkfifo fifo && mknod chr c 0 0 && mknod blk b 0 0 && touch sock && chmod 000 *
cd /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
own=/sys/fs/cgroup/kbd-test-$$
mkdir -p $own/manager
cleanup() { echo $$ > /sys/fs/cgroup/cgroup.procs; find $own -depth -type d -exec rmdir {} + ; }
trap cleanup EXIT
echo $$ > $own/manager/cgroup.procs
as=
if [ -n "$KBD_TEST_PYTHON" ]; then
  # What the user must reach may lie in the home of root: in this namespace only that much of it is open.
  mkdir -m 755 /run/reach && mount --bind "$KBD_TEST_PYTHON" /run/reach
  home=~root
  case $KBD_TEST_PYTHON in "$home"/*)
    mount -t tmpfs -o mode=755 tmpfs "$home"
    mkdir -p "$KBD_TEST_PYTHON" && mount --bind /run/reach "$KBD_TEST_PYTHON"
  esac
fi
if [ -n "$KBD_TEST_UID" ]; then
  # A service's walls are built with what lies here, wherever XDG_RUNTIME_DIR is.
  mkdir -p "/run/user/$KBD_TEST_UID" && mount --bind "$XDG_RUNTIME_DIR" "/run/user/$KBD_TEST_UID"
  chown -R "$KBD_TEST_UID" $own
  as="setpriv --reuid $KBD_TEST_UID --regid $KBD_TEST_UID --clear-groups --no-new-privs"
fi
$as /lib/systemd/systemd --user &
trap "kill $!" TERM
wait $! || wait $! || true
"""


# A scope with `Delegate=` is a cgroup in which another manager may make its own.
_LENT = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--", "env")


def why_not() -> str | None:
    """Say what is missing for a manager here; None if nothing."""
    needed = ("systemctl", "unshare") if os.geteuid() == 0 else ("systemctl", "systemd-run")
    missing = [tool for tool in needed if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not installed; .ci/run installs systemd"
    own = ["unshare", "-m", "mount", "-t", "cgroup2", "none", "/mnt"]
    probe = own if os.geteuid() == 0 else [*_LENT, "true"]
    done = subprocess.run(probe, capture_output=True, text=True)
    return None if done.returncode == 0 else f"no systemd of its own for the test: {done.stderr.strip()}"


def require() -> None:
    """Skip where nobody booted with systemd and a user cannot lend itself a cgroup; root can, on every Linux."""
    reason = why_not()
    if reason is not None and os.geteuid() != 0:
        pytest.skip(reason)
    assert reason is None, reason


class Manager:
    """Talks to the manager; `units` is where its unit files lie."""

    def __init__(self, folder: Path, uid: int | None = None) -> None:
        self.uid, self.enter = uid, []
        self.units = folder / "config/systemd/user"
        runtime = folder / "run"
        self.units.mkdir(parents=True)
        runtime.mkdir(mode=0o700)
        self.env = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "SYSTEMD_LOG_TARGET": "console",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_RUNTIME_DIR": str(runtime),
        }
        self.socket = runtime / "systemd/private"

    def systemctl(self, *arguments: str) -> str:
        command = [*self.enter, "systemctl", "--user", *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def show(self, unit: str, name: str) -> str:
        return self.systemctl("show", "--value", "-p", name, unit)

    def wait_until(self, unit: str, name: str, value: str, seconds: float = 10) -> None:
        """Wait until a property has a value; a process outside is waited for, so there is no other way than to ask."""
        until = time.monotonic() + seconds
        while (now := self.show(unit, name)) != value:
            assert time.monotonic() < until, f"{unit}: {name} is {now}, expected {value}"
            time.sleep(0.05)


@contextmanager
def user_manager(folder: Path, uid: int | None = None, *, for_others: bool = False) -> Iterator[Manager]:
    """Run a manager with everything it has in `folder` (a short path: its socket must fit in 108 characters).

    With a `uid` root runs it as that user, and `enter` is what stands before a command to be run as that user too.
    With `for_others` it stays root's, and its services may run as other users (`User=`), as those of PID 1 do.
    """
    require()
    manager = Manager(folder, uid)
    if uid is not None or for_others:
        manager.env["KBD_TEST_PYTHON"] = sys.base_prefix
    if for_others:
        for path in (folder, folder / "run"):
            path.chmod(0o755)
    if uid is not None:
        manager.env["KBD_TEST_UID"] = str(uid)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, uid)
    if os.geteuid() == 0:
        command, env = ["unshare", "--mount", "bash", "-c", _BOOT], manager.env
    else:
        own = (f"{name}={value}" for name, value in manager.env.items())
        command, env = (
            [*_LENT, "-u", "DBUS_SESSION_BUS_ADDRESS", *own, "/lib/systemd/systemd", "--user"],
            dict(os.environ),
        )
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd="/")
    try:
        until = time.monotonic() + 10
        while not manager.socket.exists():
            assert process.poll() is None and time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.02)
        if for_others:
            (folder / "run/systemd/notify").chmod(0o777)  # as that of PID 1 is
        if uid is not None:
            drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
            manager.enter = ["nsenter", "--mount", f"--target={process.pid}", *drop]
        yield manager
    finally:
        process.terminate()
        process.wait(20)
