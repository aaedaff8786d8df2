"""A world in which the agent, and the repository that the knowledge lies in, are strangers that mean harm."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from click.testing import Result

from tests.cli.world import World

TITLE = "Lock fd leaked on exception path"
OTHER = "Backoff must be capped at once"
CONFIG = """\
bases:
  - name: lessons
    files: ["kb/*.md", "kb/*/*.md"]
    relations: kb/.knowledge-graph.yaml
    graph: {log: onto/graph.jsonl, schema: onto/schema.yaml}
sources:
  - {agent: claude-code, root: claude}
  - {name: logs, path: logs, format: text}
  - {name: chat, path: chat, format: chat-jsonl}
"""
SCHEMA = "types: {Task: {required: [title], properties: {title: string}}}\nrelations: {blocks: {}}\n"
SLOW_SECONDS = 15.0


class Stranger(World):
    """A world whose transcripts, names and knowledge are hostile."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.root / "config.yaml").write_text(CONFIG)
        for folder in ("claude", "chat", "onto"):
            (self.root / folder).mkdir()
        (self.root / "onto" / "schema.yaml").write_text(SCHEMA)
        (self.root / "onto" / "graph.jsonl").write_text("")

    def lesson(self, title: str = TITLE, name: str = "lessons.md") -> Path:
        return self.note(name, f"# Lessons\n\n- [pitfall] **{title}** — close it in finally (2026-01-19)\n")

    def say(self, text: str, session: str = "s1", *, cwd: str = "/w", name: str = "a.jsonl", file: str = "") -> Path:
        """Let the agent say something, and edit a file in the same message."""
        path = self.root / "claude" / "projects" / "-w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        number = len(path.read_bytes().splitlines()) if path.exists() else 0
        mark = hashlib.sha256(f"{session}{name}".encode("utf-8", "replace")).hexdigest()[:8]
        blocks: list[dict[str, object]] = [{"type": "text", "text": text}]
        if file:
            call = {"file_path": file, "old_string": "a", "new_string": "b"}
            blocks.append({"type": "tool_use", "id": f"t{number}", "name": "Edit", "input": call})
        message = {"id": f"m{number}-{mark}", "role": "assistant", "content": blocks}
        line = {"type": "assistant", "uuid": f"u{number}-{mark}", "sessionId": session, "cwd": cwd}
        line |= {"timestamp": f"2026-06-10T08:{number:02d}:00Z", "message": message}
        with path.open("a", encoding="utf-8", errors="surrogatepass") as out:
            out.write(json.dumps(line) + "\n")
        return path

    def read(self) -> Result:
        """Run a full pass; it ends in its time, and without a fault of kbd."""
        began = time.process_time()
        done = self.run("run", "--once")
        assert time.process_time() - began < SLOW_SECONDS
        assert done.exit_code in (0, 1), done.output
        assert "fault of kbd" not in done.stderr, done.stderr
        return done

    def refs(self) -> dict[str, int]:
        return {e["title"]: e["ref"] for e in self.answer("list", "--all")["entries"]}

    def state_bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.state.rglob("*") if path.is_file())
