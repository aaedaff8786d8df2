"""`kbd purge` and `kbd detach`: nothing is left behind, in no byte of state, backups and undo."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.entries import parse
from kbd.core.model import State
from kbd.core.splice import apply, bare_edits, edits_for
from kbd.store.locks import InstanceLock
from tests.service.life import Life, entry

DAY = timedelta(days=1)
TODAY = date(2026, 1, 2)
USED = "Cited only yesterday indeed"
OTHER = "Another lesson of some length"
SECRET = "Zanzibar-4711"
CONFIG = """\
bases:
  - {name: lessons, files: ["kb/*.md"], relations: kb/.knowledge-graph.yaml}
sources:
  - {agent: claude-code, root: claude}
"""


def record(session: str, number: int, text: str, cwd: str) -> str:
    message = {"id": f"m-{session}-{number}", "role": "assistant", "content": [{"type": "text", "text": text}]}
    line = {"type": "assistant", "uuid": f"u-{session}-{number}", "sessionId": session, "cwd": cwd, "message": message}
    return json.dumps(line | {"timestamp": f"2026-01-02T08:0{number}:00.000Z", "parentUuid": None}) + "\n"


class Home(Life):
    """A life whose agent is Claude Code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.root / "config.yaml").write_text(CONFIG)
        self.silent = True

    def session(self, name: str, *texts: str, cwd: str = "/srv/app") -> Path:
        folder = self.root / "claude" / "projects" / cwd.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.jsonl"
        path.write_text("".join(record(name, i, text, cwd) for i, text in enumerate(texts)))
        return path

    def places_of(self, words: str) -> list[str]:
        """Return the files of the state directory that hold a text, in any of its bytes."""
        files = (path for path in self.state.rglob("*") if path.is_file())
        return [str(path.relative_to(self.state)) for path in files if words.encode() in path.read_bytes()]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    home.live.write_text(
        "# Lessons\n\n"
        + entry(USED, "2025-12-01", comment="ref:4 | last:2025-12-20 | decay:active")
        + entry(OTHER, "2025-12-01")
    )
    home.session("session-aaaa", f"as {SECRET} showed, {USED} holds", f"and {OTHER} too", cwd="/srv/secret-app")
    home.session("session-bbbb", f"the lesson {USED} helped with {OTHER}")
    home.lived(TODAY)
    home.close()
    home.lived(TODAY + DAY)  # a second backup
    home.close()
    yield home
    home.close()


def kbd(home: Home, *args: str, answer: str | None = None) -> Result:
    return home.kbd(*args, now=TODAY + DAY, answer=answer)


def test_purged_session_is_in_no_byte_and_counts_no_more(home: Home) -> None:
    assert home.rows()[USED].ref == 6
    assert any(place.startswith("backups/") for place in home.places_of("session-aaaa"))
    result = kbd(home, "purge", "--session", "session-aaaa", "--yes")
    assert result.exit_code == 0, result.output
    assert "2 references" in result.stderr
    for words in ("session-aaaa", SECRET, "secret-app", "m-session-aaaa"):
        assert home.places_of(words) == []
    assert home.places_of("session-bbbb") != []
    assert (home.rows()[USED].ref, home.rows()[OTHER].ref) == (5, 1)
    home.lived(TODAY + DAY)
    assert "ref:5 |" in home.live.read_text()


def test_purge_reaches_copies_cut_short_damaged_ledgers_free_pages_and_the_wal(home: Home) -> None:
    whole = (home.state / "ledger.db").read_bytes()
    for left in ("backups/.0123456789ab.tmp", ".ledger.db.0123456789ab.tmp", "ledger.db.damaged-20260102T120000",
                 "ledger.db-wal.damaged-20260102T120000"):  # fmt: skip
        (home.state / left).write_bytes(whole)
    with sqlite3.connect(home.state / "ledger.db") as db:
        db.execute("CREATE TABLE scratch AS SELECT * FROM mentions")
        db.execute("DROP TABLE scratch")
        assert db.execute("PRAGMA freelist_count").fetchone()[0]
    db.close()
    assert kbd(home, "purge", "--session", "session-aaaa", "--yes").exit_code == 0
    for words in ("session-aaaa", SECRET, "secret-app", "m-session-aaaa"):
        assert home.places_of(words) == []


@pytest.mark.parametrize("then", ["the next pass", "the same again"])
def test_purge_that_was_killed_is_finished(home: Home, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("kbd.cli.leaving.purging.leave_nothing", lambda *_: None)  # killed before it
        kbd(home, "purge", "--session", "session-aaaa", "--yes")
    assert home.places_of(SECRET) != []
    if then == "the next pass":
        home.lived(TODAY + DAY)
        home.close()
    else:
        assert "finished" in kbd(home, "purge", "--session", "session-aaaa", "--yes").stderr
    for words in ("session-aaaa", SECRET, "secret-app", "m-session-aaaa"):
        assert home.places_of(words) == []


def test_purged_session_stays_away_though_its_transcript_is_there(home: Home) -> None:
    kbd(home, "purge", "--session", "session-aaaa", "--yes")
    home.close()
    assert kbd(home, "rescan").exit_code == 0
    home.live.write_text(home.live.read_text() + entry(f"Why {SECRET} happened at all", ""))
    home.lived(TODAY + DAY)
    home.close()
    assert home.places_of("session-aaaa") == []
    assert home.rows()[USED].ref == 5


def test_copy_in_another_session_keeps_the_credit_of_a_purged_one(home: Home) -> None:
    original = home.root / "claude" / "projects" / "-srv-app" / "session-bbbb.jsonl"
    copy = original.with_name("session-cccc.jsonl")
    copy.write_text(original.read_text().replace('"session-bbbb"', '"session-cccc"'))
    home.lived(TODAY + DAY)
    home.close()
    assert home.rows()[USED].ref == 6
    kbd(home, "purge", "--session", "session-bbbb", "--yes")
    assert home.rows()[USED].ref == 6


def test_purged_project_takes_all_its_sessions_along(home: Home) -> None:
    home.session("session-dddd", f"{OTHER} once more", cwd="/srv/secret-app/sub")
    home.session("session-eeee", "nothing of interest", cwd="/srv/secret-app")
    home.lived(TODAY + DAY)
    home.close()
    assert kbd(home, "purge", "--project", "/srv/secret-app", "--yes").exit_code == 0
    for words in ("session-aaaa", "session-dddd", "session-eeee", "secret-app"):
        assert home.places_of(words) == []
    assert (home.rows()[USED].ref, home.rows()[OTHER].ref) == (5, 1)


def test_purged_entry_is_in_no_byte_and_keeps_the_number_in_its_file(home: Home) -> None:
    number = home.rows()[USED].ref
    result = kbd(home, "purge", "--entry", USED, "--yes")
    assert result.exit_code == 0, result.output
    assert home.places_of(USED) == home.places_of(USED.lower()) == []
    assert home.places_of(OTHER) != []
    home.lived(TODAY + DAY)
    home.close()
    assert (home.rows()[USED].ref, home.rows()[USED].citations) == (number, 0)
    kbd(home, "rescan")
    assert home.rows()[USED].ref == number
    home.session("session-ffff", f"{USED} again").write_text(
        record("session-ffff", 0, f"{USED} again", "/srv/app").replace("2026-01-02", "2026-01-03")
    )
    home.lived(TODAY + DAY)
    assert home.rows()[USED].ref == number + 1


def test_forgotten_and_purged_entry_leaves_no_trace(home: Home) -> None:
    kbd(home, "forget", USED, "--yes")
    home.lived(TODAY + DAY)
    home.close()
    assert home.places_of(USED) != []
    for path in (home.root / "claude").rglob("*.jsonl"):
        path.unlink()
    assert kbd(home, "purge", "--entry", USED, "--yes").exit_code == 0
    home.lived(TODAY + DAY)
    home.close()
    assert home.places_of(USED) == home.places_of(USED.lower()) == []


def test_short_id_of_a_purged_session_takes_nothing_else_along(home: Home) -> None:
    home.session("s", f"{OTHER} once more")
    home.lived(TODAY + DAY)
    home.close()
    assert home.rows()[OTHER].ref == 3
    assert kbd(home, "purge", "--session", "s", "--yes").exit_code == 0
    home.lived(TODAY + DAY)
    home.close()
    kbd(home, "rescan")
    assert (home.rows()[USED].ref, home.rows()[OTHER].ref) == (6, 2)


@pytest.mark.parametrize("args", [("--session", "session-aaaa"), ("--entry", USED), ("--project", "/srv/secret-app")])
def test_nothing_is_removed_by_a_dry_run_or_against_the_answer(home: Home, args: tuple[str, ...]) -> None:
    assert kbd(home, "purge", *args, "--dry-run").exit_code == 0
    assert kbd(home, "purge", *args, answer="n\n").exit_code == 0
    assert home.rows()[USED].ref == 6
    assert home.places_of(SECRET) != []


@pytest.mark.parametrize(
    "args, code",
    [((), 2), (("--session", "a", "--entry", "b"), 2), (("--session", "nobody"), 2), (("--entry", "no such entry"), 2)],
)
def test_purge_wants_one_known_thing(home: Home, args: tuple[str, ...], code: int) -> None:
    assert kbd(home, "purge", *args, "--yes").exit_code == code


def test_neither_runs_beside_a_daemon(home: Home) -> None:
    with InstanceLock(home.state):
        assert kbd(home, "purge", "--session", "session-aaaa", "--yes").exit_code == 3
        assert kbd(home, "detach", "--yes").exit_code == 3


def test_detached_files_are_as_before_kbd_came(tmp_path: Path) -> None:
    home = Home(tmp_path)
    text = ("# Lessons\n\n" + entry(USED, "2025-12-01")).replace("\n", "\r\n") + f"* **{OTHER}** no newline at the end"
    home.live.write_bytes(text.encode())
    home.session("session-aaaa", f"{USED} and {OTHER}")
    home.lived(TODAY)
    home.close()
    kbd(home, "set", OTHER, "--state", "dormant")
    written = home.live.read_bytes()
    assert b"ref:1" in written and "⚠️".encode() in written
    shown = kbd(home, "detach", "--dry-run")
    assert "-  <!-- ref:1 | last:2026-01-02 | decay:active -->" in shown.stdout
    assert home.live.read_bytes() == written
    assert kbd(home, "detach", "--yes").exit_code == 0
    assert home.live.read_bytes() == text.encode()
    assert sorted(path.name for path in home.live.parent.iterdir()) == ["lessons.md"]
    assert kbd(home, "detach", "--yes").exit_code == 0
    assert home.live.read_bytes() == text.encode()


def test_detach_keeps_what_others_put_into_a_comment(home: Home) -> None:
    home.live.write_text(entry(USED, "2025-12-01", comment="ref:4 | decay:active | source:manual"))
    assert kbd(home, "detach", "--yes").exit_code == 0
    assert home.live.read_text() == entry(USED, "2025-12-01", comment="source:manual")


def test_attached_again_kbd_writes_its_numbers_anew(home: Home) -> None:
    written = home.live.read_bytes()
    kbd(home, "detach", "--yes")
    assert b"<!--" not in home.live.read_bytes()
    home.lived(TODAY + DAY)
    assert home.live.read_bytes() == written


LINES = st.lists(st.sampled_from(["- **First title here** x\n", "- [pitfall] **Second one** y\r\n", "  more\n", "\n",
    "## Head\n", "prose\r\n", "```\n", "- **Last without newline"]), max_size=12)  # fmt: skip


@given(LINES, st.sampled_from([State.ACTIVE, State.DORMANT]), st.integers(0, 9))
def test_taking_out_what_was_put_in_gives_the_bytes_before(lines: list[str], state: State, ref: int) -> None:
    before = "".join(lines).encode()
    edits = [edit for one in parse(before).entries for edit in edits_for(before, one, ref, None, state)]
    after = apply(before, edits)
    if len(parse(after).entries) == len(parse(before).entries):
        assert apply(after, [edit for one in parse(after).entries for edit in bare_edits(after, one)]) == before
