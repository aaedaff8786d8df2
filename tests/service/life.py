"""A base with a text log, lived through day by day: every pass is the engine's own, the clock is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from click.testing import CliRunner, Result

from kbd.cli.main import main
from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport
from kbd.store.ledger import lessons, open_reading
from kbd.store.ledger.lessons import EntryRow

CONFIG = """\
bases:
  - name: lessons
    files: ["kb/*.md"]
    relations: kb/.knowledge-graph.yaml
sources:
  - {name: logs, path: logs, format: text}
"""


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


@dataclass
class Life:
    """`root` holds config.yaml, kb/, logs/ and .state/. The agent writes something every week, unless it is silent."""

    root: Path
    silent: bool = False
    worked_until: date | None = None
    opened: Engine | None = None

    def __post_init__(self) -> None:
        for folder in ("kb", "logs", ".state"):
            (self.root / folder).mkdir(mode=0o700)
        (self.root / "config.yaml").write_text(CONFIG)

    @property
    def state(self) -> Path:
        return self.root / ".state"

    @property
    def live(self) -> Path:
        return self.root / "kb" / "lessons.md"

    @property
    def archive(self) -> Path:
        return self.root / "kb" / "lessons-archive.md"

    def lived(self, day: date, *, immediate: bool = True) -> PassReport:
        """Run one full pass at noon."""
        self.works_until(day)
        if self.opened is None:
            config = load_config(self.root / "config.yaml")
            self.opened = Engine(config, self.state, {}, str(self.root), noon(day))
        return self.opened.run_pass(Clock(noon(day), noon(day).timestamp(), UTC), immediate=immediate)

    def kbd(self, *args: str, now: date, answer: str | None = None) -> Result:
        """Run a command in this process."""
        options = ["--config", str(self.root / "config.yaml"), "--state-dir", str(self.state), "--now", now.isoformat()]
        env = {"HOME": str(self.root), "NO_COLOR": "1"}
        return CliRunner(env=env).invoke(main, [*options, *args], input=answer, prog_name="kbd")

    def close(self) -> None:
        """End the process; the next pass is that of another one."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def says(self, day: date, text: str) -> None:
        """Let the agent write a paragraph into its log."""
        with (self.root / "logs" / "agent.log").open("a") as log:
            log.write(f"{day} 10:00 {text}\n\n")

    def works_until(self, until: date) -> None:
        """Let the agent write lines that name nothing, every week up to a day, so that kbd has sight."""
        day = until if self.worked_until is None else self.worked_until + timedelta(days=7)
        while day <= until and not self.silent:
            self.says(day, "ran the tests, all green")
            self.worked_until = day
            day += timedelta(days=7)

    def rows(self) -> dict[str, EntryRow]:
        """Return the entries that stand in a file, by title; two of one title would be a fault."""
        ledger = open_reading(self.state)
        assert ledger is not None
        try:
            base = ledger.db.execute("SELECT id FROM bases WHERE name='lessons'").fetchone()[0]
            rows = lessons.entries_of(ledger.db, base)
        finally:
            ledger.close()
        assert len({row.title for row in rows}) == len(rows)
        return {row.title: row for row in rows}

    def states(self) -> dict[str, str]:
        return {title: row.state.value for title, row in self.rows().items()}

    def events(self, kind: str) -> list[tuple[str, str, str]]:
        ledger = open_reading(self.state)
        assert ledger is not None
        try:
            rows = ledger.db.execute("SELECT day, title, detail FROM events WHERE kind=? ORDER BY id", (kind,))
            return [tuple(row) for row in rows]
        finally:
            ledger.close()


def entry(title: str, created: str, *, text: str = "what to do about it", comment: str = "") -> str:
    date_ = f" ({created})" if created else ""
    return f"- [pitfall] **{title}** — {text}{date_}\n" + (f"  <!-- {comment} -->\n" if comment else "")
