"""A small world of agents and lessons in a folder, drawn from a seed, with an oracle of what must be counted."""

from __future__ import annotations

import random
import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import yaml

from tests.e2e.agents import Claude, Logs, Shared
from tests.e2e.oracle import Lesson, Number, Oracle
from tests.e2e.spool import Spool

TITLES = {
    "en.md": (
        "Lock fd leaked on exception path", "Atomic commits: one logical change per commit",
        "Backoff must be capped", "Build cache", "C++ ABI break", ".env leaked",
        "Chose Amazon Transcribe over Whisper", "Session states: COLD to DEAD",
        "Release: build, verify, tag, publish", "fcntl.flock on symlinked path", "Store timestamps in UTC",
        "Retry storm",
    ),
    "zh.md": (
        "不要在 async 函数里直接调 subprocess.run", "缓存必须有上限", "数据库迁移先加列后删列",
        "日志里不能出现密钥", "重试要带抖动", "时区统一用 UTC", "配置热加载失败时保留旧配置", "先写测试再修复",
        "线程池大小等于核心数",
    ),
    "mixed.md": (
        "Token 计数 off by one", "Naïve datetime compared with aware", "Parser chokes on CRLF",
        "fsync 目录 after rename", "Thread pool starves the loop", "Feature flags die after two releases",
        "SQLite WAL on NFS corrupts", "Idempotent migrations", "Umlaut in Größe breaks sort",
    ),
}  # fmt: skip
LATER = ("Late lesson about socket reuse", "后来加入的经验:连接池要关闭")
KINDS = ("pitfall", "guideline", "decision", "process", "model")
_BLOCK = re.compile(r"^- .*\*\*(?P<title>.+?)\*\*.*\n(?P<rest>(?:[ \t]+.*\n?)*)", re.MULTILINE)
_COMMENT = re.compile(r"<!-- ref:(\d+) \| last:(\S+) \| decay:(\w+) -->")


@dataclass(frozen=True)
class Shown:
    """What a Markdown file says of an entry, read without kbd."""

    ref: int
    last: date | None
    state: str
    file: str


class World:
    """Folders with knowledge, transcripts and logs.

    Attributes:
        root: the folder; `config.yaml`, `kb`, `claude`, `logs` and the state directory `state` lie in it.
        oracle: what must be counted once everything has arrived.
    """

    def __init__(self, root: Path, seed: int, today: date, settings: str = "") -> None:
        self.root, self.rng, self.today = root, random.Random(seed), today
        self.state = root / "state"
        self.knowledge = root / "kb"
        self.spool = Spool(self.rng, self.now.timestamp())
        self.oracle = Oracle({})
        self._make_lessons()
        (root / "config.yaml").write_text(_config(settings), encoding="utf-8")
        shared = Shared(self.rng, self.spool, self.oracle, today)
        self.claude = Claude(shared, root / "claude" / "projects", self.knowledge)
        self.logs = Logs(shared, root / "logs")
        self.shared = shared
        for folder in ("claude/projects", "logs", "home"):
            (root / folder).mkdir(parents=True)

    @property
    def now(self) -> datetime:
        """Noon of the world's day."""
        return datetime.combine(self.today, time(12), UTC)

    def _make_lessons(self) -> None:
        self.knowledge.mkdir(parents=True)
        for file, titles in TITLES.items():
            text = f"---\nname: {file}\n---\n# Lessons of {file}\n\nPeople write here too.\n\n## First part\n\n"
            for i, title in enumerate(titles):
                lesson = self._lesson(title, file, i)
                self.oracle.lessons[title] = lesson
                text += lesson.block() + ("\n## Second part\n\n" if i == 4 else "")
            (self.knowledge / file).write_bytes(text.replace("\n", "\r\n" if file == "mixed.md" else "\n").encode())
        for title in LATER:
            self.oracle.lessons[title] = self._lesson(title, "en.md", 2)
            self.oracle.lessons[title].present = False

    def _lesson(self, title: str, file: str, i: int) -> Lesson:
        body = f"note {self.rng.getrandbits(60):x} on why it went wrong and what to do about it"
        lesson = Lesson(title, body, KINDS[i % 5], file, self.today - timedelta(days=20 + i))
        if i % 4 == 1:
            lesson.ident = f"KD{len(self.oracle.lessons):02d}"
        if i % 3 == 0:
            lesson.base_ref, lesson.covers = 3 + i, self.today - timedelta(days=6)
        return lesson

    def work(self, actions: int) -> None:
        """Let agents do something; part of it reaches the disk."""
        for _ in range(actions):
            self.claude.act() if self.rng.random() < 0.7 else self.logs.act()
            self.spool.flush_pieces()

    def settle(self) -> None:
        """Let everything arrive."""
        self.spool.settle()

    def copy(self) -> None:
        """Let sessions be copied that kbd has seen, and nothing be said that is new."""
        self.note_seen()
        for _ in range(3):
            self.claude.copy()
        self.settle()

    def note_seen(self) -> None:
        """Note that kbd has seen all files: copies made from now on are younger for it too."""
        for one in (*self.claude.sessions, *self.logs.logs):
            one.seen = one.path.exists()

    def next_day(self, days: int = 1) -> None:
        """Go on to a later day."""
        self.today += timedelta(days=days)
        self.shared.today = self.today
        self.spool.seconds = self.now.timestamp()

    def add_lesson(self, title: str) -> Lesson:
        """Write a new entry at the end of a file, as a person does; it earns what is dated on this day or later."""
        lesson = self.oracle.lessons[title]
        lesson.created, lesson.earns_from, lesson.present = self.today, self.today, True
        with open(self.knowledge / lesson.file, "ab") as out:
            out.write(lesson.block().encode())
        return lesson

    def bump(self, lesson: Lesson, by: int) -> None:
        """Change the number of an entry by hand, in place as editors do."""
        path = self.knowledge / lesson.file
        data = path.read_bytes()
        start = data.index(f"**{lesson.title}**".encode())
        found = re.compile(rb"<!-- ref:(\d+)").search(data, start)
        assert found is not None
        path.write_bytes(data[: found.start(1)] + b"%d" % (int(found[1]) + by) + data[found.end(1) :])
        lesson.adjust += by

    def shown(self) -> dict[str, Shown]:
        """Return what the Markdown says; a title that stands twice fails."""
        found: dict[str, Shown] = {}
        for path in self._notes():
            for block in _BLOCK.finditer(path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")):
                assert block["title"] not in found, f"{block['title']} stands twice: {found[block['title']]}, {path}"
                said = _COMMENT.search(block["rest"])
                last = date.fromisoformat(said[2]) if said and said[2] != "none" else None
                found[block["title"]] = (
                    Shown(int(said[1]), last, said[3], path.name) if said else Shown(0, None, "active", path.name)
                )
        return found

    def prose(self) -> dict[str, bytes]:
        """Return the knowledge files without what kbd may change in them."""
        return {path.name: _prose(path.read_bytes()) for path in self._notes()}

    def _notes(self) -> list[Path]:
        return sorted(p for p in self.knowledge.glob("*.md") if p.is_file() and ".kbd-conflict" not in p.name)

    def ledger_rows(self) -> list[sqlite3.Row]:
        """Return the entries as the ledger has them."""
        db = sqlite3.connect(f"file:{self.state / 'ledger.db'}?mode=ro", uri=True)
        db.row_factory = sqlite3.Row
        try:
            return db.execute("SELECT * FROM entries WHERE gone_on IS NULL").fetchall()
        finally:
            db.close()

    def counted(self) -> dict[str, Number]:
        """Return the ledger's numbers."""
        return {
            r["title"]: Number(
                r["ref"], date.fromisoformat(r["last"]) if r["last"] else None, r["citations"], r["sessions"]
            )
            for r in self.ledger_rows()
        }

    def faults(self) -> list[str]:
        """Compare ledger and Markdown with the oracle; everything has arrived and was written."""
        wanted, counted, shown = self.oracle.numbers(), self.counted(), self.shown()
        faults = [
            f"{title}: ledger {counted.get(title)}, oracle {number}"
            for title, number in wanted.items()
            if counted.get(title) != number
        ]
        faults += [f"{title} came from nowhere" for title in counted.keys() - wanted.keys()]
        return faults + self.markdown_faults(shown)

    def markdown_faults(self, shown: dict[str, Shown] | None = None) -> list[str]:
        """Compare Markdown and relations with the ledger, and look for temporaries."""
        shown = self.shown() if shown is None else shown
        faults = []
        for row in self.ledger_rows():
            one = shown.get(row["title"])
            last = date.fromisoformat(row["last"]) if row["last"] else None
            wanted = (row["ref"], last, row["state"])
            if one is None or (one.ref, one.last, one.state) != wanted:
                faults.append(f"{row['title']}: Markdown {one}, ledger {wanted}")
            elif one.file.endswith("-archive.md") is not (row["state"] == "archived"):
                faults.append(f"{row['title']} is {row['state']} and stands in {one.file}")
        faults += [f"{title} is not in the ledger" for title in shown.keys() - {r["title"] for r in self.ledger_rows()}]
        faults += [f"left over: {p}" for p in self.root.rglob("*") if ".tmp" in p.name or ".kbd-conflict" in p.name]
        return faults + self._relation_faults()

    def _relation_faults(self) -> list[str]:
        path = self.knowledge / ".knowledge-graph.yaml"
        items = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
        written = {
            (i["s"], i["o"], str(i["u"]))
            for i in (items["relations"] if isinstance(items, dict) else items or [])
            if "e" not in i
        }
        db = sqlite3.connect(f"file:{self.state / 'ledger.db'}?mode=ro", uri=True)
        try:
            known = set(db.execute("SELECT s, o, u FROM relations WHERE e IS NULL").fetchall())
        finally:
            db.close()
        return [f"relation {r} stands in {'file' if r in written else 'ledger'} only" for r in written ^ known]


def _prose(data: bytes) -> bytes:
    lines = re.split(rb"(?<=\n)", data)
    return b"".join(
        line.replace("⚠️ ".encode(), b"") for line in lines if not _COMMENT.search(line.decode("utf-8", "replace"))
    )


def _config(settings: str) -> str:
    return (
        'bases:\n  - {name: lessons, files: ["kb/*.md"], relations: kb/.knowledge-graph.yaml}\n'
        "sources:\n  - {agent: claude-code, root: claude}\n  - {name: logs, path: logs, format: text}\n" + settings
    )
