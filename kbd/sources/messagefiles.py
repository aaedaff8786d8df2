"""Remembers which files the records of one message read or wrote, where a message comes in several records."""

from __future__ import annotations

from collections.abc import Iterable

from kbd.core.model import Block, TouchMode
from kbd.core.shell import join_path
from kbd.sources.memory import may_be_kept

REMEMBERED_MESSAGES = 16
REMEMBERED_FILES = 8
_MAX_PATH = 4096

NamedFiles = tuple[str, list[str]]


class MessageFiles:
    """Files by message, of the messages that came last."""

    def __init__(self, saved: Iterable[NamedFiles] = ()) -> None:
        """Begin with what `saved` returned."""
        self._files = dict(saved)

    def take(self, message: str | None, blocks: Iterable[Block], cwd: str | None) -> tuple[str, ...]:
        """Return the files of earlier records of a message, and remember those of a further one."""
        if message is None:
            return ()
        earlier = self._files.pop(message, [])
        calls = [block.call for block in blocks if block.call and not block.call.own]
        touched = [touch for call in calls for touch in call.touched if touch.mode is not TouchMode.MENTION]
        paths = [join_path(cwd or "", touch.path) for touch in touched if len(touch.path) <= _MAX_PATH]
        if earlier or paths:
            self._files[message] = list(dict.fromkeys([*earlier, *paths]))[:REMEMBERED_FILES]
            if len(self._files) > REMEMBERED_MESSAGES:
                del self._files[next(iter(self._files))]
        return tuple(earlier)

    def saved(self) -> list[NamedFiles]:
        """Return what the constructor takes, oldest first; no path that holds a secret, for it is kept."""
        return [(message, [path for path in paths if may_be_kept(path)]) for message, paths in self._files.items()]
