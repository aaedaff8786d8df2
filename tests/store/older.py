"""Ledgers as earlier commits left them (see tests/fixtures/ledgers), with the knowledge and transcripts they are of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner, Result

from kbd.cli.main import main
from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport
from tests.fixtures.ledgers import scenario

LEDGERS = Path(__file__).parent.parent / "fixtures" / "ledgers"
NAMES = tuple(sorted(path.stem for path in LEDGERS.glob("*.sql")))
VERSION_1 = tuple(name for name in NAMES if name < "22")
NEWEST = VERSION_1[-1]
NOW = datetime.fromisoformat(f"{scenario.STEPS[-1]}T13:00:00+00:00")
KEPT = (
    "SELECT title, ref, last, citations, sessions, listed, base_ref, covers, adjust, last_floor, state, wrote_ref, "
    "wrote_last, wrote_state, first_seen, pinned FROM entries ORDER BY id",
    "SELECT entry, session, day, added FROM refs ORDER BY 1, 2, 3",
    "SELECT entry, snippet, files, listed FROM mentions ORDER BY 1, 2, 3",
    "SELECT at, kind, entry, title, detail FROM events WHERE kind!='ledger_migrated' ORDER BY id",
    "SELECT entry, ref, last FROM pairs ORDER BY 1, 2, 3",
    "SELECT entry, kind, text, earns_from, until FROM patterns ORDER BY id",
    "SELECT source, day FROM activity ORDER BY 1, 2",
    "SELECT source, session, day FROM seen_sessions ORDER BY 1, 2",
    "SELECT path, offset, high, gone, last_record_at FROM files ORDER BY id",
)
"""What a migration must keep of any ledger."""
KEPT_IF_THERE = (
    "SELECT entry, session, day FROM set_aside ORDER BY 1, 2, 3",
    "SELECT id, act, at, kind, path FROM undo ORDER BY id",
    "SELECT undo, entry, place, old, new, before, after, title FROM undo_changes ORDER BY 1, 2, 3",
    "SELECT digest FROM purged ORDER BY 1",
    "SELECT session, ancestor FROM lineage ORDER BY 1, 2",
)


@dataclass
class Older:
    """The world of an older ledger below a root."""

    root: Path
    name: str

    def __post_init__(self) -> None:
        for folder in ("home", "state"):
            (self.root / folder).mkdir(mode=0o700)
        scenario.begin(self.root)
        scenario.go_on(self.root)
        (self.root / "knowledge" / "lessons.md").write_bytes((LEDGERS / f"{self.name}.md").read_bytes())
        (self.root / "config.yaml").write_text(scenario.config_of(self.formats()), encoding="utf-8")

    def lay(self, path: Path | None = None) -> Path:
        """Make the ledger, as its commit left it."""
        path = path or self.ledger
        path.parent.mkdir(mode=0o700, exist_ok=True)
        script = (LEDGERS / f"{self.name}.sql").read_text(encoding="utf-8").replace("/srv/agent", str(self.root))
        with closing(sqlite3.connect(path)) as db:
            db.executescript(script)
        return path

    def formats(self) -> set[str]:
        """Return the formats of the sources that the commit read."""
        with closing(sqlite3.connect(":memory:")) as db:
            db.executescript((LEDGERS / f"{self.name}.sql").read_text(encoding="utf-8"))
            return {str(row[0]).replace("-", "_") for row in db.execute("SELECT agent FROM sources")}

    @property
    def ledger(self) -> Path:
        """The file of the ledger."""
        return self.root / "state" / "ledger.db"

    def open(self) -> Engine:
        """Open the ledger as a daemon does."""
        return Engine(load_config(self.root / "config.yaml"), self.root / "state", {}, str(self.root / "home"), NOW)

    def kbd(self, *args: str) -> Result:
        """Run a command."""
        options = ["--config", str(self.root / "config.yaml"), "--state-dir", str(self.root / "state")]
        now = ["--now", scenario.STEPS[-1]]
        return CliRunner(env={"HOME": str(self.root / "home")}).invoke(main, [*options, *now, *args], prog_name="kbd")


def run(engine: Engine) -> PassReport:
    """Run a pass over all there is."""
    return engine.run_pass(Clock(NOW, NOW.timestamp(), UTC), immediate=True)


def kept(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return what a migration must keep."""
    tables = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    there = [query for query in KEPT_IF_THERE if query.split(" FROM ")[1].split()[0] in tables]
    return {query: [tuple(row) for row in db.execute(query)] for query in (*KEPT, *there)}


def kept_at(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what a migration must keep of a ledger that nobody has open."""
    with closing(sqlite3.connect(path)) as db:
        return kept(db)


def counted(db: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return the numbers of all entries, and their references."""
    numbers = "SELECT title, ref, last, citations, sessions, listed, state FROM entries ORDER BY id"
    return [tuple(row) for query in (numbers, KEPT[1]) for row in db.execute(query)]
