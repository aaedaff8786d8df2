"""The messages of a store where the rows of many sessions lie mixed, and which files each session touched last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kbd.core.model import Block, Message, SessionId
from kbd.sources.jsonl import text_of
from kbd.sources.memory import RecentFiles, SeenFile, identifier

REMEMBERED_SESSIONS = 8


class SessionFiles:
    """Recent files by session, of the sessions that were active last."""

    def __init__(self, saved: Mapping[str, Sequence[SeenFile]] | None = None) -> None:
        """Begin with what `saved` returned."""
        self._sessions = {session: RecentFiles(files) for session, files in (saved or {}).items()}

    def of(self, session: str) -> RecentFiles:
        """Return the recent files of a session."""
        found = self._sessions.pop(session, None) or RecentFiles()
        self._sessions[session] = found
        if len(self._sessions) > REMEMBERED_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return found

    def message(
        self, row: Mapping[str, object], at: datetime | None, blocks: tuple[Block, ...], offset: int
    ) -> Message:
        """Return the message of a row, whose files are remembered.

        The row names its `session`, the `parent` of that and the `root` above it that it counts for, and its working
        directory, `cwd`. It has no id that a copy would keep: session, time and words tell it.
        """
        thread = identifier(row.get("session")) or ""
        session = identifier(row.get("root")) or thread
        origins = [identifier(row.get("parent")), session]
        cwd, files = text_of(row, "cwd") or None, self.of(thread)
        found = Message(
            None,
            SessionId(session),
            str(offset),
            at,
            cwd,
            blocks,
            offset,
            recent=files.before(at),
            copied_from=tuple(SessionId(origin) for origin in dict.fromkeys(origins) if origin and origin != thread),
            thread=thread,
        )
        files.note(blocks, cwd, at)
        return found

    def saved(self) -> dict[str, list[SeenFile]]:
        """Return what the constructor takes, the session active last at the end."""
        return {session: files.saved() for session, files in self._sessions.items()}
