"""Checks of what kbd stands on: the state directory, its file system, the space left, Python and its libraries."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from kbd.errors import FileUnreadable
from kbd.service.doctor.check import Check, finding, fine, note
from kbd.store.filesystem import free_bytes, network_file_system

LOW_BYTES = 100 << 20
MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 35)  # RETURNING
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)>=(?P<least>[0-9.]+)(?!.*extra ==)")


def check_state(state: Path, uid: int) -> Iterator[Check]:
    """Check that the state directory is the user's alone."""
    try:
        seen = os.stat(state)
        inside = sorted(os.listdir(state))
    except FileNotFoundError:
        yield note("state", str(state), "not there yet", "`kbd run` makes it")
        return
    except OSError as error:
        yield finding("state", str(state), f"cannot be looked into: {error.strerror}", "mend its permissions")
        return
    if seen.st_uid != uid:
        yield finding("state", str(state), "belongs to another user", f"`chown -R $USER {state}`")
    if seen.st_mode & _OTHERS:
        what = f"is open to others (mode {stat.S_IMODE(seen.st_mode):04o})"
        yield finding("state", str(state), what, f"`chmod 700 {state}`")
    opened = [name for name in inside if _is_open(state / name)]
    if opened and seen.st_mode & _OTHERS:
        yield finding("state", str(state), f"{', '.join(opened[:3])} can be read by others", f"`chmod -R go= {state}`")
    if seen.st_uid == uid and not seen.st_mode & _OTHERS:
        yield fine("state", str(state), "is the user's alone")


def _is_open(path: Path) -> bool:
    try:
        return bool(os.lstat(path).st_mode & _OTHERS) and not path.is_symlink()
    except FileNotFoundError:
        return False


def check_file_systems(state: str, folders: Iterable[str]) -> Iterator[Check]:
    """Check that state and knowledge do not lie on network file systems, and that there is space left."""
    try:
        kind = network_file_system(state)
        if kind:
            what = f"lies on a network file system ({kind}): SQLite and locks are not safe there"
            yield finding("file_system", state, what, "give a local folder with --state-dir")
        for folder in dict.fromkeys(folders):
            if shared := network_file_system(folder):
                what = f"lies on a network file system ({shared}): changes made elsewhere are found by polling only"
                yield note("file_system", folder, what, "one kbd for these files, or `write: {shared: true}`")
        yield from _check_space([state, *folders])
    except FileUnreadable as error:
        yield finding("file_system", error.where, error.what, error.hint)
    else:
        if not kind:
            yield fine("file_system", state, "lies on a local disk")


def _check_space(folders: Iterable[str]) -> Iterator[Check]:
    for folder in dict.fromkeys(folders):
        if (free := free_bytes(folder)) < LOW_BYTES:
            yield finding("disk", folder, f"only {free >> 20} MiB are free", "free some space")


def check_versions(version: str) -> Iterator[Check]:
    """Check Python, SQLite and the libraries against what kbd needs."""
    python = tuple(map(int, platform.python_version_tuple()[:2]))
    if python < MIN_PYTHON:
        yield finding("versions", "", f"Python {platform.python_version()} is too old", "install Python 3.11 or newer")
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        yield finding("versions", "", f"SQLite {sqlite3.sqlite_version} is too old", "install a newer Python")
    try:
        needed = importlib.metadata.requires("kbd") or []
    except importlib.metadata.PackageNotFoundError:
        yield note("versions", "", "kbd is not installed as a package", "`pip install` it, or services cannot start it")
        needed = []
    yield from (check for line in needed for check in _check_library(line))
    yield fine("versions", "", f"kbd {version}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}")


def _check_library(requirement: str) -> Iterator[Check]:
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return
    try:
        have = importlib.metadata.version(match["name"])
    except importlib.metadata.PackageNotFoundError:
        yield finding("versions", match["name"], "is not installed", "install kbd anew")
        return
    if _numbers(have) < _numbers(match["least"]):
        yield finding("versions", match["name"], f"{have} is older than {match['least']}", "install kbd anew")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])
