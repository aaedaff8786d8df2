"""What a test as root must give up to meet the faults of a common user, and mounts that only one test sees."""

from __future__ import annotations

import ctypes
import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
INOTIFY_LIMITS = Path("/proc/sys/user")
_MS_REC_PRIVATE = 0x4000 | 0x40000
_PR_CAPBSET_DROP = 24
_CAP_DAC = (1, 2)
"""DAC_OVERRIDE and DAC_READ_SEARCH: what lets root read a file of mode 0."""


def bound_by_modes() -> None:
    """Let file modes hold for what this process executes, root or not (for `preexec_fn`)."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in _CAP_DAC:
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl")


def with_private_mounts(body: Callable[[], None], log: Path) -> None:
    """Run the body of a test in a child that may mount; its failure is the test's."""
    _in_child(_may_mount, body, log, "may not make mounts of its own")


def with_own_limits(body: Callable[[], None], log: Path) -> None:
    """Run the body of a test in a child whose limits of inotify are its own, at `INOTIFY_LIMITS`."""
    _in_child(_has_own_limits, body, log, "may not make a user namespace with limits of its own")


def _may_mount() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return not (libc.unshare(_CLONE_NEWNS) or libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None))


def _has_own_limits() -> bool:
    if os.getuid() or ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER):
        return False
    try:
        for table, text in (("uid_map", "0 0 1"), ("setgroups", "deny"), ("gid_map", "0 0 1")):
            Path("/proc/self", table).write_text(text)
        limit = INOTIFY_LIMITS / "max_inotify_watches"
        limit.write_text(limit.read_text())
    except OSError:
        return False
    return True


def _in_child(prepare: Callable[[], bool], body: Callable[[], None], log: Path, lacking: str) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 77
            if prepare():
                code = 1
                body()
                code = 0
        except BaseException:  # noqa: BLE001 - the child must never return into the test
            log.write_text(traceback.format_exc())
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        pytest.skip(lacking)
    assert code == 0, log.read_text()


def mount_small(folder: Path, kib: int) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", str(folder)], check=True)


def remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all space of a file system; return the file that has it."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast
