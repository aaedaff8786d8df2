"""A folder with knowledge, Claude Code transcripts and logs, and passes over it at given times, in this process."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport
from kbd.store.ledger import lessons
from kbd.store.ledger.lessons import EntryRow

NOON = datetime(2026, 6, 11, 12, tzinfo=UTC)
CONFIG = """\
bases:
  - {name: lessons, files: ["kb/*.md"]}
sources:
  - {agent: claude-code, root: claude}
  - {name: logs, path: logs, format: text}
"""
TITLE = "Lock fd leaked on exception path"
ENTRY = f"- [pitfall] **{TITLE}** — close it in finally (2026-05-19)\n"


@dataclass
class Lab:
    """`root` holds config.yaml, kb/, claude/, logs/, home/ and state/."""

    root: Path
    config: str = CONFIG
    engine: Engine | None = None
    said: dict[Path, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("kb", "claude", "logs", "home", "state"):
            (self.root / folder).mkdir()

    def note(self, text: str = ENTRY, name: str = "lessons.md") -> Path:
        """Write a knowledge file."""
        path = self.root / "kb" / name
        path.write_text(text, encoding="utf-8")
        return path

    def log(self, text: str, name: str = "agent.log") -> Path:
        """Append to a log."""
        path = self.root / "logs" / name
        with path.open("a", encoding="utf-8") as out:
            out.write(text)
        return path

    def say(self, session: str, text: str, at: str = "2026-06-11T09:00:00Z", **fields: object) -> Path:
        """Let an agent write a message into the transcript of a session."""
        path = self.root / "claude" / "-home-x" / f"{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        number = self.said[path] = self.said.get(path, 0) + 1
        message = {"id": f"msg_{session}_{number}", "role": "assistant", "content": [{"type": "text", "text": text}]}
        line = {"type": "assistant", "uuid": f"{session}-{number}", "timestamp": at, "sessionId": session, "cwd": "/w"}
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line | {"message": message} | fields) + "\n")
        return path

    def run(
        self,
        now: datetime = NOON,
        *,
        hints: Collection[str] | None = None,
        immediate: bool = True,
        real: float | None = None,
    ) -> PassReport:
        """Run a pass; the engine stays open, as in a daemon."""
        if self.engine is None:
            (self.root / "config.yaml").write_text(self.config)
            loaded = load_config(self.root / "config.yaml")
            self.engine = Engine(loaded, self.root / "state", {}, str(self.root / "home"), now)
        clock = Clock(now, now.timestamp() if real is None else real, UTC)
        return self.engine.run_pass(clock, immediate=immediate, hints=hints)

    def restart(self) -> None:
        """Close the engine; the next pass opens a new one with the configuration as it is then."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def entries(self) -> list[EntryRow]:
        """Return the entries of the base `lessons`."""
        assert self.engine is not None
        db = self.engine.frame.ledger.db
        return lessons.entries_of(db, lessons.base_id(db, "lessons"))

    def credits(self) -> set[tuple[str, str]]:
        """Return session and day of all references."""
        assert self.engine is not None
        return {(str(r[0]), str(r[1])) for r in self.engine.frame.ledger.db.execute("SELECT session, day FROM refs")}

    def ref(self, title: str = TITLE) -> int:
        """Return the number of an entry."""
        return next(row.ref for row in self.entries() if row.title == title)
