"""Roo Code: tasks kept as Cline keeps them, with summaries marked and hidden messages still in place.

An item beside a conversation tells the working directory, and of a subtask which task it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo

from kbd.sources.cline import TaskDecoder, editor_storages
from kbd.sources.contract import FileKind


class Roo:
    """Where the extension writes; the root may be any folder above the tasks."""

    agent = "roo"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return the extension's folder in each editor."""
        return editor_storages(home, "rooveterinaryinc.roo-cline")

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take conversations by name, not the temporary files of a save."""
        return FileKind.DOCUMENT if relpath.rsplit("/", 1)[-1] == "api_conversation_history.json" else None

    def companions(self, relpath: str, read: Sequence[bytes]) -> tuple[str, ...]:
        """Name the history item of a task."""
        folder = relpath.rpartition("/")[0]
        plain = not any(char in folder for char in "*?[")
        return (f"{folder}/history_item.json".removeprefix("/"),) if plain and len(read) == 1 else ()

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> TaskDecoder:
        """Return a decoder for one task."""
        return TaskDecoder(relpath, tz)


FORMAT = Roo()
