"""A home with a configuration, knowledge files and a real ledger, and the command run in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kbd.cli.main import main
from kbd.core.handles import handle
from kbd.core.model import State
from kbd.core.normal import normalise
from kbd.store.ledger import Ledger, facts, lessons, open_ledger, transcripts
from kbd.store.ledger.counts import recount
from kbd.store.ledger.facts import BlockFact, Holder, MentionFact

TODAY = date(2026, 6, 11)
NOON = datetime(2026, 6, 11, 12, tzinfo=UTC)
CONFIG = """\
bases:
  - name: lessons
    files: ["kb/*.md"]
sources:
  - {name: logs, path: logs, format: text}
"""


@dataclass
class World:
    """`root` holds config.yaml, kb/, logs/ and .state/."""

    root: Path
    now: str = TODAY.isoformat()
    env: dict[str, str] = field(default_factory=dict)
    opened: list[Ledger] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "config.yaml").write_text(CONFIG)
        for folder in ("kb", "logs", "home"):
            (self.root / folder).mkdir()
        self.state.mkdir(mode=0o700)

    @property
    def state(self) -> Path:
        return self.root / ".state"

    def options(self) -> list[str]:
        return ["--config", str(self.root / "config.yaml"), "--state-dir", str(self.state), "--now", self.now]

    def run(self, *args: str) -> Result:
        env = {"HOME": str(self.root / "home"), "NO_COLOR": None, "KBD_CONFIG": None, **self.env}
        return CliRunner(env=env).invoke(main, [*self.options(), *args], prog_name="kbd")

    def answer(self, *args: str) -> dict[str, Any]:
        answer = json.loads(self.run(*args, "--json").stdout)
        assert answer["version"] == 1
        return answer

    def note(self, name: str, text: str) -> Path:
        path = self.root / "kb" / name
        path.write_text(text)
        return path

    def ledger(self) -> Books:
        ledger = open_ledger(self.state, NOON)
        self.opened.append(ledger)
        with ledger.transaction() as db:
            base = lessons.base_id(db, "lessons")
            db.execute("UPDATE bases SET first_read='2026-06-01', decay_after='2026-06-01' WHERE id=?", (base,))
            source = transcripts.source_id(db, "logs", str(self.root / "logs"), "text")
        return Books(ledger, base, source, self.root)


@dataclass
class Books:
    """The ledger, open for writing."""

    ledger: Ledger
    base: int
    source: int
    root: Path

    def entry(self, title: str, base: int | None = None, **columns: object) -> int:
        """Add an active entry dated 2026-06-01, in step with its file unless columns say otherwise."""
        norm = normalise(title)
        place = self.ledger.db.execute("SELECT count(*) FROM entries").fetchone()[0]
        values: dict[str, object] = {
            "base": base or self.base,
            "title": title,
            "norm": norm,
            "section": "Lessons",
            "handle": handle(norm),
            "type": "pitfall",
            "type_source": "tag",
            "file": str(self.root / "kb" / "lessons.md"),
            "line": place + 3,
            "place": place,
            "state": State.ACTIVE,
            "created": date(2026, 6, 1),
            "first_seen": date(2026, 6, 1),
            "file_ref": 0,
        }
        with self.ledger.transaction() as db:
            number = lessons.insert_entry(db, **(values | columns))
            lessons.add_pattern(db, number, "title", norm, None)
            recount(db, [number], TODAY)
        return number

    def cite(
        self, entry: int, session: str, at: str, snippet: str = "as we learned", files: tuple[str, ...] = ()
    ) -> None:
        """Let a session cite an entry in a message of its own."""
        when = datetime.fromisoformat(at).replace(tzinfo=UTC)
        with self.ledger.transaction() as db:
            holder = Holder(
                session=session,
                at=when,
                observed=False,
                file=self.transcript(),
                birth_ns=None,
                path="/t/S1.jsonl",
                cwd=None,
                record=f"r-{at}",
                offset=42,
            )
            key = facts.key_of("m", str(entry), session, at)
            message = facts.hold_message(db, key, self.source, holder)
            pattern = db.execute("SELECT id FROM patterns WHERE entry=?", (entry,)).fetchone()[0]
            mention = MentionFact(
                pattern=pattern, entry=entry, listed=False, own=0, span=10, prefix=b"p", snippet=snippet, files=files
            )
            block = BlockFact(key=key, author="agent_text", norm_length=50, length=50, sha=b"s", mentions=(mention,))
            facts.hold_block(db, message, block, {pattern})
            recount(db, [entry], TODAY)

    def transcript(self, **columns: object) -> int:
        """Return the one transcript, with these columns."""
        db = self.ledger.db
        path = str(self.root / "logs" / "a.log")
        row = db.execute("SELECT id FROM files").fetchone()
        file = row[0] if row else transcripts.add_file(db, self.source, path, "a.log", 1, 2, None).id
        for name, value in columns.items():
            db.execute(f"UPDATE files SET {name}=? WHERE id=?", (value, file))
        return int(file)

    def activity(self, sessions: int = 1, day: date = TODAY) -> None:
        """Let the source give records of so many sessions on a day."""
        named = [(f"quiet-{number}", day) for number in range(sessions)]
        with self.ledger.transaction() as db:
            self.transcript(records=100, messages=90)
            transcripts.note_sessions(db, self.source, named)
            transcripts.note_activity(db, self.source, [day], datetime(day.year, day.month, day.day, 9, tzinfo=UTC))
