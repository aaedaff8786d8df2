"""`kbd undo`: bytes come back, later passes hold to it, and what changed since is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from kbd.errors import FileUnwritable
from kbd.store.ledger import open_reading
from tests.service.life import Life, entry

DAY = timedelta(days=1)
TODAY = date(2026, 1, 2)
USED = "Cited only yesterday indeed"
OTHER = "Another lesson of some length"
OLD = "Old one that nobody cites now"
TEXT = (
    "# Lessons\n\n## Net\n\n"
    + entry(USED, "2025-12-01", comment="ref:4 | last:2025-12-20 | decay:active")
    + entry(OTHER, "2025-12-01")
    + entry(OLD, "2025-01-01", comment="ref:2 | last:2025-03-01 | decay:active")
    + "\n## Later\n\nsome prose\n"
)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    life.live.write_text(TEXT)
    life.lived(TODAY - DAY)
    life.says(TODAY, f"the lesson {USED} helped")
    life.says(TODAY, f"so did {OTHER}")
    life.lived(TODAY)
    life.close()
    yield life
    life.close()


def kbd(life: Life, *args: str, now: date = TODAY) -> Result:
    return life.kbd(*args, now=now)


def test_undone_counters_stand_as_before_and_stay(life: Life) -> None:
    written = life.live.read_text()
    assert "ref:5 | last:2026-01-02" in written
    result = kbd(life, "undo")
    assert result.exit_code == 0, result.output
    before = life.live.read_text()
    assert before != written
    assert "ref:4 | last:2025-12-20 | decay:active" in before
    life.lived(TODAY + DAY)
    assert life.live.read_text() == before
    assert life.kbd("rescan", now=TODAY + DAY).exit_code == 0
    life.lived(TODAY + 2 * DAY)
    assert life.live.read_text() == before
    assert (life.rows()[USED].ref, life.rows()[OTHER].ref) == (4, 0)


def test_what_is_cited_after_an_undo_counts_on_top(life: Life) -> None:
    kbd(life, "undo")
    life.says(TODAY + DAY, f"the lesson {USED} helped, {OTHER} too")
    life.lived(TODAY + DAY)
    assert (life.rows()[USED].ref, life.rows()[OTHER].ref) == (5, 1)
    assert "ref:5 | last:2026-01-03" in life.live.read_text()


def test_what_waits_to_be_written_is_not_undone(life: Life) -> None:
    git = life.root / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "index.lock").write_text("")
    life.says(TODAY + DAY, f"the lesson {USED} helped")
    life.lived(TODAY + DAY)
    life.close()
    assert (life.rows()[USED].ref, life.rows()[USED].file_ref) == (6, 5)
    (git / "index.lock").unlink()
    assert kbd(life, "undo", now=TODAY + DAY).exit_code == 0
    assert "ref:4 | last:2025-12-20" in life.live.read_text()
    life.lived(TODAY + 2 * DAY)
    assert "ref:5 | last:2026-01-03" in life.live.read_text()
    assert life.kbd("rescan", now=TODAY + 2 * DAY).exit_code == 0
    assert life.rows()[USED].ref == 5


def test_undo_of_one_entry_leaves_the_others_as_written(life: Life) -> None:
    kbd(life, "undo", USED)
    assert "ref:4 | last:2025-12-20" in life.live.read_text()
    assert "ref:1 | last:2026-01-02" in life.live.read_text()
    life.lived(TODAY + DAY)
    assert (life.rows()[USED].ref, life.rows()[OTHER].ref) == (4, 1)
    assert kbd(life, "undo", OTHER).exit_code == 0
    assert "ref:1" not in life.live.read_text()


def test_undo_finds_its_bytes_where_they_moved_to(life: Life) -> None:
    text = life.live.read_text().replace("# Lessons\n", "# Lessons\n\nA long new preface.\n" * 9)
    life.live.write_text(text.replace("what to do about it", "what to do, told better"))
    assert kbd(life, "undo").exit_code == 0
    after = life.live.read_text()
    assert "ref:4 | last:2025-12-20" in after
    assert after.count("told better") == 3


def test_undo_refuses_where_the_bytes_changed_since(life: Life) -> None:
    life.live.write_text(life.live.read_text().replace("ref:5 |", "ref:9 |"))
    written = life.live.read_text()
    result = kbd(life, "undo")
    assert result.exit_code == 6
    assert USED.lower() in result.stderr
    assert life.live.read_text() == written
    assert kbd(life, "undo", OTHER).exit_code == 0


def test_undo_refuses_an_entry_that_was_deleted_or_renamed_by_hand(life: Life) -> None:
    life.live.write_text(life.live.read_text().replace(f"**{USED}**", "**Something else entirely now**"))
    written = life.live.read_text()
    assert kbd(life, "undo").exit_code == 6
    assert life.live.read_text() == written


def test_undo_goes_back_step_by_step(life: Life) -> None:
    states = [life.live.read_bytes()]
    for i in range(1, 4):
        life.says(TODAY + i * DAY, f"the lesson {USED} helped")
        life.lived(TODAY + i * DAY)
        states.append(life.live.read_bytes())
    life.close()
    for state in reversed(states[:-1]):
        assert kbd(life, "undo", str(life.live), now=TODAY + 4 * DAY).exit_code == 0
        assert life.live.read_bytes() == state


def test_ten_writes_of_counters_are_kept_for_a_file(life: Life) -> None:
    for i in range(1, 14):
        life.says(TODAY + i * DAY, f"the lesson {USED} helped")
        life.lived(TODAY + i * DAY)
    life.close()
    acts = json.loads(kbd(life, "undo", "--list", "--json", now=TODAY + 20 * DAY).stdout)["acts"]
    assert [act["kind"] for act in acts] == ["counters"] * 10


def archived(life: Life) -> tuple[bytes, str]:
    """Let the old entry be archived; return the file before, with the counters as they are then."""
    before = life.live.read_bytes()
    assert kbd(life, "set", OLD, "--state", "archived").exit_code == 0
    return before, life.archive.read_text()


def test_undone_archive_move_restores_both_files_byte_for_byte(life: Life) -> None:
    life.archive.write_text("# Kept\n\n- **Something kept in the archive** — x\n")
    life.lived(TODAY)
    life.close()
    kept = life.archive.read_bytes()
    before, _ = archived(life)
    assert OLD not in life.live.read_text()
    result = kbd(life, "undo", OLD)
    assert result.exit_code == 0, result.output
    assert (life.live.read_bytes(), life.archive.read_bytes()) == (before, kept)
    life.lived(TODAY + DAY)
    assert (life.live.read_bytes(), life.archive.read_bytes()) == (before, kept)
    life.lived(TODAY + 100 * DAY)
    assert life.states()[OLD] == "dormant"


def test_undone_first_archive_move_takes_the_archive_away(life: Life) -> None:
    before, _ = archived(life)
    result = kbd(life, "undo", OLD)
    assert result.exit_code == 0, result.output
    assert life.live.read_bytes() == before
    assert not life.archive.exists()
    life.lived(TODAY + DAY)
    assert life.live.read_bytes() == before
    assert {path.name for path in life.live.parent.iterdir()} == {"lessons.md", ".kbd-writer"}


def test_undone_archive_move_leaves_what_a_person_wrote_into_the_archive(life: Life) -> None:
    archived(life)
    life.archive.write_text(life.archive.read_text() + "\nA remark of mine.\n")
    assert kbd(life, "undo", OLD).exit_code == 0
    assert life.archive.read_text() == "# Lessons\n\n## Net\n\n\nA remark of mine.\n"


def test_undone_archive_move_leaves_an_empty_file_that_was_there(life: Life) -> None:
    life.archive.write_text("")
    life.lived(TODAY)
    life.close()
    archived(life)
    assert kbd(life, "undo", OLD).exit_code == 0
    assert life.archive.read_text() == ""


def test_undone_archive_move_leaves_the_headings_under_which_another_block_came(life: Life) -> None:
    archived(life)
    assert kbd(life, "set", OTHER, "--state", "archived").exit_code == 0
    assert kbd(life, "undo", OLD).exit_code == 0
    assert OLD not in life.archive.read_text()
    assert life.rows()[OTHER].section == "Lessons / Net"
    assert life.archive.read_text().startswith("# Lessons\n\n## Net\n\n- [pitfall] **Another lesson")


def test_undone_archive_move_goes_back_though_counters_around_it_changed(life: Life) -> None:
    archived(life)
    for i in range(1, 3):
        life.says(TODAY + i * DAY, f"the lesson {OTHER} helped")
        life.lived(TODAY + i * DAY)
    life.close()
    assert kbd(life, "undo", OLD, now=TODAY + 3 * DAY).exit_code == 0
    text = life.live.read_text()
    assert text.index(OTHER) < text.index(OLD) < text.index("## Later")
    assert not life.archive.exists()


def test_undone_restore_puts_the_block_back_into_the_archive(life: Life) -> None:
    _, archive = archived(life)
    kbd(life, "restore", OLD)
    assert kbd(life, "undo", OLD).exit_code == 0
    assert OLD not in life.live.read_text()
    assert life.archive.read_text() == archive
    life.lived(TODAY + DAY)
    assert life.states()[OLD] == "archived"


def test_undone_fading_holds_until_a_person_would_let_it_fade_again(life: Life) -> None:
    life.works_until(TODAY + 200 * DAY)
    days = [TODAY + i * DAY for i in range(1, 40)]
    faded = next(day for day in days if (life.lived(day), life.states()[OLD] == "dormant")[1])
    life.close()
    assert "⚠️" in life.live.read_text()
    assert kbd(life, "undo", OLD, now=faded).exit_code == 0
    assert "⚠️" not in life.live.read_text()
    life.lived(faded + 30 * DAY)
    assert life.states()[OLD] == "active"


def test_forgotten_entry_comes_back_with_its_history(life: Life) -> None:
    before = life.live.read_bytes()
    kbd(life, "forget", OLD, "--yes")
    life.lived(TODAY)
    life.close()
    assert kbd(life, "undo", str(life.live)).exit_code == 0
    assert life.live.read_bytes() == before
    assert life.rows()[OLD].ref == 2
    assert [title for _, title, _ in life.events("undone")] == [OLD]


def test_undone_classification_takes_the_tags_out(life: Life) -> None:
    life.live.write_text(life.live.read_text().replace("- [pitfall] ", "- "))
    life.lived(TODAY)
    life.close()
    before = life.live.read_bytes()
    assert kbd(life, "classify", "--write").exit_code == 0
    assert life.live.read_bytes() != before
    assert kbd(life, "undo", str(life.live)).exit_code == 0
    assert life.live.read_bytes() == before


def test_dry_run_shows_the_diff_and_changes_nothing(life: Life) -> None:
    before = life.live.read_bytes(), (life.state / "ledger.db").read_bytes()
    result = kbd(life, "undo", "--dry-run")
    assert "+  <!-- ref:4 | last:2025-12-20 | decay:active -->" in result.stdout
    assert (life.live.read_bytes(), (life.state / "ledger.db").read_bytes()) == before


def test_other_acts_are_kept_for_thirty_days(life: Life) -> None:
    kbd(life, "forget", OLD, "--yes")
    kbd(life, "forget", OTHER, "--yes", now=TODAY + 31 * DAY)
    acts = json.loads(kbd(life, "undo", "--list", "--json").stdout)["acts"]
    assert [act["kind"] for act in acts if act["kind"] == "forget"] == ["forget"]
    ledger = open_reading(life.state)
    assert ledger is not None
    orphans = ledger.db.execute("SELECT count(*) FROM undo_changes WHERE undo NOT IN (SELECT id FROM undo)").fetchone()
    ledger.close()
    assert orphans[0] == 0


def test_nothing_to_undo_is_said(tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert kbd(life, "undo").exit_code == 2
    life.live.write_text(entry(USED, "2025-12-01"))
    life.lived(TODAY)
    life.close()
    assert kbd(life, "undo").exit_code == 2
    assert kbd(life, "undo", "--list").exit_code == 0
    assert kbd(life, "undo", "no such thing at all").exit_code == 2


def test_undo_refuses_while_git_is_at_work(life: Life) -> None:
    (life.root / ".git").mkdir()
    (life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (life.root / ".git" / "index.lock").write_text("")
    before = life.live.read_bytes()
    assert kbd(life, "undo").exit_code == 6
    assert life.live.read_bytes() == before


def test_undo_cut_short_is_finished_by_the_next_pass(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, *_: bytes) -> None:
        raise FileUnwritable("no space left", where=path)

    with monkeypatch.context() as patched:
        patched.setattr("kbd.service.undoing.replace_file", full)
        assert kbd(life, "undo").exit_code == 1
    life.lived(TODAY + DAY)
    assert "ref:4 | last:2025-12-20 | decay:active" in life.live.read_text()
    assert (life.rows()[USED].ref, life.rows()[OTHER].ref) == (4, 0)
