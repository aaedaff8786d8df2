"""What a decoder remembers of a session: when a message began, which files were touched lately."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import TypeVar

import msgspec

from kbd.core.model import Block, Touch, TouchMode
from kbd.core.redact import holds_secret, masked_id
from kbd.core.shell import join_path
from kbd.sources.times import from_micros, to_micros

REMEMBERED_MESSAGES = 256  # records of one message may stand apart: tool results and other messages come between
REMEMBERED_FILES = 32
RECENT_FILES = 5
RECENT = timedelta(minutes=10)
_EARLIEST = datetime.min.replace(tzinfo=UTC) + RECENT
_MAX_ID = 256
_MAX_PATH = 4096

FirstTime = tuple[str, int]
SeenFile = tuple[str, TouchMode, int]

S = TypeVar("S")


def restore(state: bytes | None, kind: type[S]) -> S:
    """Return the saved state as `kind`, a fresh one if there is none or it is of another version.

    Losing a state costs work and a session's recent files, never exactness: keys decide what counts.
    """
    if state is None:
        return kind()
    try:
        return msgspec.json.decode(state, type=kind)
    except (msgspec.MsgspecError, ValueError):
        return kind()


def identifier(value: object) -> str | None:
    """Return an id as an agent gave it, a token masked; None if it is none (absent, empty, absurdly long)."""
    return masked_id(value) if isinstance(value, str) and 0 < len(value) <= _MAX_ID else None


@lru_cache(1024)
def may_be_kept(path: str) -> bool:
    """Tell whether a path holds no secret; the same ones are kept batch after batch."""
    return not holds_secret(path)


class FirstTimes:
    """Remembers the time of the first record of the newest message ids."""

    def __init__(self, saved: Iterable[FirstTime] = ()) -> None:
        """Begin with what `saved` returned."""
        self._times = {native_id: from_micros(micros) for native_id, micros in saved}

    def of(self, native_id: str | None, at: datetime | None) -> datetime | None:
        """Return the time of the first record of a message, which is `at` if this is the first that has a time."""
        if native_id is None:
            return at
        first = self._times.pop(native_id, None) or at
        if first is not None:
            self._times[native_id] = first
            if len(self._times) > REMEMBERED_MESSAGES:
                del self._times[next(iter(self._times))]
        return first

    def saved(self) -> list[FirstTime]:
        """Return what the constructor takes, oldest first."""
        times = ((native_id, to_micros(time)) for native_id, time in self._times.items())
        return [(native_id, micros) for native_id, micros in times if micros is not None]


class RecentFiles:
    """Remembers the files a session read or wrote last, with the times of the records that did so."""

    def __init__(self, saved: Iterable[SeenFile] = ()) -> None:
        """Begin with what `saved` returned."""
        self._files = {path: (from_micros(micros), Touch(path, mode)) for path, mode, micros in saved}
        times = [time for time, _ in self._files.values() if time is not None]
        self._newest = max(times, default=_EARLIEST)
        self._ascends = len(times) == len(self._files) and times == sorted(times)

    def before(self, at: datetime | None) -> tuple[Touch, ...]:
        """Return the files touched in the ten minutes up to `at`, newest first, at most five."""
        if at is None or not self._files:
            return ()
        since = max(at, _EARLIEST) - RECENT
        near = []
        for seen in reversed(self._files.values()):
            if seen[0] is not None and since <= seen[0] <= at:
                near.append(seen)
            elif self._ascends and seen[0] is not None and seen[0] < since:
                break  # of the files remembered few are near
        near.reverse()
        near.sort(key=itemgetter(0), reverse=True)
        return tuple([touch for _, touch in near[:RECENT_FILES]])

    def note(self, blocks: Iterable[Block], cwd: str | None, at: datetime | None) -> None:
        """Remember the files that tool calls among `blocks` read or wrote."""
        if at is None:
            return
        for block in blocks:
            for touch in block.call.touched if block.call else ():
                if touch.mode is not TouchMode.MENTION and len(touch.path) <= _MAX_PATH:
                    self._note(join_path(cwd or "", touch.path), touch.mode, at)

    def _note(self, path: str, mode: TouchMode, at: datetime) -> None:
        self._ascends, self._newest = self._ascends and at >= self._newest, max(at, self._newest)
        self._files.pop(path, None)
        self._files[path] = (at, Touch(path, mode))
        if len(self._files) > REMEMBERED_FILES:
            del self._files[next(iter(self._files))]

    def saved(self) -> list[SeenFile]:
        """Return what the constructor takes, oldest first; no path that holds a secret, for it is kept."""
        kept = ((time, touch) for time, touch in self._files.values() if may_be_kept(touch.path))
        return [(touch.path, touch.mode, to_micros(time) or 0) for time, touch in kept]
