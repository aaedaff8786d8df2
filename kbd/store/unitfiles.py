"""Service files on disk, and the commands of the service manager that take note of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbd.errors import FileUnwritable
from kbd.store.descriptors import strerror
from kbd.store.files import create_file, read_regular
from kbd.store.replacing import replace_file

MAX_BYTES = 1 << 20
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended: its exit status and what it said."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str


def read_unit(path: str) -> bytes | None:
    """Return an installed service file, None if there is none.

    Raises:
        FileUnreadable: it is there and cannot be read.
    """
    try:
        return read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        return None


def write_unit(path: str, data: bytes) -> bool:
    """Install a service file, whole or not at all; return False if it stood there already.

    Raises:
        FileUnwritable: the system refused.
        FileUnreadable: something else than a regular file is in its place.
        ChangedUnderneath: someone else wrote it at the same moment.
    """
    old = read_unit(path)
    if old == data:
        return False
    if old is not None:
        replace_file(path, old, data)
        return True
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        hint = "check its permissions"
        raise FileUnwritable(strerror(error), where=os.path.dirname(path), hint=hint) from error
    create_file(path, data)
    return True


def remove_unit(path: str) -> bool:
    """Remove a service file; return False if there was none.

    Raises:
        FileUnwritable: the system refused.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileUnwritable(strerror(error), where=path, hint="check the permissions of its folder") from error
    return True


def run_command(command: Sequence[str], env: Mapping[str, str]) -> Ran:
    """Run a command of the service manager and return how it ended; 127 if it is not installed, 124 if it hangs."""
    tool = shutil.which(command[0], path=env.get("PATH"))
    if tool is None:
        return Ran(tuple(command), 127, "", f"{command[0]} is not installed")
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell; its words are kbd's own and paths it wrote
            [tool, *command[1:]],
            env=dict(env),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(tuple(command), 124, "", f"did not answer in {_SECONDS:.0f} s")
    except OSError as error:
        return Ran(tuple(command), 126, "", strerror(error))
    return Ran(tuple(command), done.returncode, done.stdout, done.stderr)


def follow_command(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command that talks to the terminal itself, until it ends; return its exit status, 127 if not installed."""
    tool = shutil.which(command[0], path=env.get("PATH"))
    if tool is None:
        return 127
    return subprocess.run([tool, *command[1:]], env=dict(env), check=False).returncode  # noqa: S603 - as above
