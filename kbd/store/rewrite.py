"""One guarded change of a person's file: under its lock, read anew, edit, replace; or not now, with the reason."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from kbd.errors import ChangedUnderneath
from kbd.store import gitstate
from kbd.store.descriptors import StrPath, unwritable
from kbd.store.files import create_file, read_with_stat
from kbd.store.leases import has_writer
from kbd.store.locks import Locks
from kbd.store.replacing import replace_file

MAX_BYTES = 64 << 20
_CONFLICT_MARKER = re.compile(rb"^(<{7}|={7}(?=\r?$)|>{7})(?: .*)?\r?$", re.MULTILINE)
_BACKOFF_SECONDS = 0.05
Edit = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Written:
    """The file has new content.

    Attributes:
        path: the file, symbolic links resolved.
        before: its content until now; None if it is new.
        data: its content.
        mtime_ns: its modification time; given as `own_mtime_ns` to the next rewrite, it is no sign of a person.
    """

    path: str
    before: bytes | None
    data: bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The edit changed nothing, so nothing was written."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The file may not be written now; `reason` is one clause."""

    reason: str


Outcome = Written | Unchanged | Deferred


@dataclass(frozen=True, slots=True)
class Quiet:
    """When a file counts as at rest.

    Attributes:
        now: the real clock, seconds since the epoch.
        seconds: it must not have changed for so long; 0 asks for nothing.
        own_mtime_ns: a modification time that is kbd's own doing.
    """

    now: float
    seconds: float
    own_mtime_ns: int | None = None


def rewrite(
    path: StrPath,
    edit: Edit,
    locks: Locks,
    *,
    quiet_seconds: float,
    now: float,
    own_mtime_ns: int | None = None,
    create: bool = False,
    timeout_seconds: float = 10.0,
    attempts: int = 5,
) -> Outcome:
    """Change a file under its lock; see `rewrite_held`.

    Raises:
        LockTimeout: another process held the file for longer than `timeout_seconds`.
    """
    quiet = Quiet(now, quiet_seconds, own_mtime_ns)
    with locks.hold([path], timeout_seconds):
        return rewrite_held(path, edit, locks, quiet, create=create, attempts=attempts)


def rewrite_held(
    path: StrPath, edit: Edit, locks: Locks, quiet: Quiet, *, create: bool = False, attempts: int = 5
) -> Outcome:
    """Change a file whose lock the caller holds.

    Args:
        path: the file.
        edit: content in, content out; called once an attempt with what stands in the file then, b"" for a new one.
        locks: for its way of waiting between attempts.
        quiet: when the file counts as at rest.
        create: make the file if it is not there.
        attempts: how often to begin anew when the file changes between reading and writing; the pause doubles.

    Raises:
        FileNotFoundError: there is no such file, and `create` is not set.
        FileUnreadable, FileUnwritable: nothing was written.
        ChangedUnderneath: it went on changing; nothing was written.
    """
    for attempt in range(1, attempts + 1):
        before, mtime_ns = _content(path, create)
        reason = reason_to_wait(path, before or b"", mtime_ns, quiet)
        if reason is not None:
            return Deferred(reason)
        data = edit(before or b"")
        if data == (before or b""):
            return Unchanged()
        try:
            # Whoever has it open may be in the middle of a save: half of that is no text to go on from.
            if attempt > attempts - 2 or not has_writer(path):
                return _put(path, before, data)
        except ChangedUnderneath:
            if attempt == attempts:
                raise
        locks.wait(_BACKOFF_SECONDS * 2**attempt)
    raise ValueError("attempts must be at least 1")


def has_conflict(data: bytes) -> bool:
    """Tell whether a version control's conflict markers stand in the file, the three in their order."""
    awaited = iter((b"<<<<<<<", b"=======", b">>>>>>>"))
    marker = next(awaited)
    for found in _CONFLICT_MARKER.finditer(data):
        if found[1] == marker:
            marker = next(awaited, b"")
    return not marker


def _content(path: StrPath, create: bool) -> tuple[bytes | None, int | None]:
    try:
        data, status = read_with_stat(path, MAX_BYTES)
    except FileNotFoundError:
        if create:
            return None, None
        raise
    return data, status.st_mtime_ns


def reason_to_wait(path: StrPath, data: bytes, mtime_ns: int | None, quiet: Quiet) -> str | None:
    """Return why a file with this content may not be written now, in one clause; None if it may.

    Raises:
        FileUnreadable: what git is doing there cannot be told.
    """
    state = gitstate.at_work(path)
    if state is not None:
        return f"git is at work ({state})"
    if has_conflict(data):
        return "conflict markers stand in it"
    if mtime_ns is not None and mtime_ns != quiet.own_mtime_ns:
        # A time in the future counts as long ago once it is further away than the limit: a clock was set back.
        age_seconds = quiet.now - mtime_ns / 1e9
        if abs(age_seconds) < quiet.seconds:
            return f"changed {max(age_seconds, 0):.0f} s ago"
    if quiet.seconds > 0 and has_writer(path):
        return "another program has it open for writing"
    return None


def _put(path: StrPath, before: bytes | None, data: bytes) -> Written:
    if before is None:
        real = create_file(path, data)
        with unwritable(real):  # it may be gone again
            return Written(real, None, data, os.stat(real).st_mtime_ns)
    done = replace_file(path, before, data)
    return Written(done.real, before, data, done.mtime_ns)
