"""Remembers which files each session of a store touched last, where the rows of many sessions lie mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbd.sources.memory import RecentFiles, SeenFile

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

    def saved(self) -> dict[str, list[SeenFile]]:
        """Return what the constructor takes, the session active last at the end."""
        return {session: files.saved() for session, files in self._sessions.items()}
