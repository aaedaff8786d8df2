"""What the cases of these agents have in common: the base, the steps, the database that goes on from step to step."""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_stores import GooseStore, HermesStore, OpenCodeStore, Store

CASES = Path(__file__).parent.parent / "cases"
BACKOFF, RELEASE = "Backoff must be capped", "Release: build, verify, tag, publish"
UTC, FD = "Store timestamps in UTC", "Lock fd leaked on exception path"
TITLES = (FD, BACKOFF, RELEASE, UTC)
KB = "# Lessons\n\n## All\n\n" + "".join(f"- [pitfall] **{title}** — why it matters (2026-05-19)\n" for title in TITLES)
ROOTS = {
    "opencode": "home/.local/share/opencode",
    "goose": "home/.local/share/goose/sessions",
    "hermes": "home/.hermes",
    "codex": "home/.codex",
}
FILES = {
    "opencode": ("opencode.db", OpenCodeStore),
    "goose": ("sessions.db", GooseStore),
    "hermes": ("state.db", HermesStore),
}
CAP, SHIP = f"Per {BACKOFF}, I cap it.", f"{RELEASE} is what I follow."


class Case:
    """A case being laid."""

    def __init__(self, agent: str, name: str, why: str) -> None:
        self.agent, self.folder, self.steps = agent, CASES / f"{agent}-{name}", 0
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "why.txt").write_text(why + "\n")
        (self.folder / "config.yaml").write_text(
            'bases:\n  - name: lessons\n    files: ["kb/*.md"]\n    relations: kb/.knowledge-graph.yaml\n'
            f"sources:\n  - {{agent: {agent}, root: {ROOTS[agent]}}}\n"
        )
        self.work = Path(tempfile.mkdtemp())

    @property
    def root(self) -> Path:
        return self.folder / str(self.steps) / "files" / ROOTS[self.agent]

    def step(self, lay: Callable[[], None] | None = None, ops: Sequence[Sequence[str]] = (), **refs: object) -> None:
        """Close a step: what `lay` put under `root`, and what must come out."""
        self.steps += 1
        here = self.folder / str(self.steps)
        here.mkdir()
        if self.steps == 1:
            (here / "files/kb").mkdir(parents=True)
            (here / "files/kb/lessons.md").write_text(KB)
        if lay is not None:
            self.root.mkdir(parents=True, exist_ok=True)
            lay()
        if ops:
            (here / "ops.json").write_text(json.dumps(ops) + "\n")
        given = {
            title: refs.get(name, 0) for title, name in ((BACKOFF, "cap"), (RELEASE, "ship"), (UTC, "utc"), (FD, "fd"))
        }
        expect = {title: value if isinstance(value, dict) else {"ref": value} for title, value in given.items()}
        (here / "step.json").write_text(json.dumps({"now": "2026-06-30", "expect": expect}, indent=1) + "\n")

    def store(self, **options: bool) -> Store:
        """Return the agent's database, which goes on from step to step."""
        name, kind = FILES[self.agent]
        return kind(self.work / name, **options)

    def put(self, store: Store) -> Callable[[], None]:
        store.close()
        return lambda: shutil.copy(store.path, self.root / store.path.name) and None
