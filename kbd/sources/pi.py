"""Pi: session files like OpenClaw's, one folder per working directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo

from kbd.sources.contract import FileKind
from kbd.sources.openclaw import EntryDecoder

# A folder is named `--path--`; sub-agents' artifacts, runs and forks below it repeat the same calls.
_SESSION = re.compile(r"(?:(?:.*/)?--[^/]*--/)?[^/.][^/]*\.jsonl")


class Pi:
    """Where Pi writes; the root may be its folder, the `sessions` in it, or one folder of sessions."""

    agent = "pi"

    def default_roots(self, env: Mapping[str, str], home: str) -> list[str]:
        """Return `$PI_CODING_AGENT_DIR` or its default."""
        return [env.get("PI_CODING_AGENT_DIR") or f"{home}/.pi/agent"]

    def file_kind(self, relpath: str) -> FileKind | None:
        """Take the files that lie in a session folder itself."""
        return FileKind.LINES if _SESSION.fullmatch(relpath) else None

    def decoder(self, relpath: str, state: bytes | None, *, tz: tzinfo = UTC) -> EntryDecoder:
        """Return a decoder for one session file, named by what follows the time in its name."""
        return EntryDecoder(re.sub(r"[^/]*_(?=[^/_]+$)", "", relpath), state, tz)


FORMAT = Pi()
