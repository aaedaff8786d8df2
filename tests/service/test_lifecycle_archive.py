"""Archive and come-back through real passes: where the block stands, and what a person does meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.service.life import Life, entry, noon

DAY = timedelta(days=1)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    yield life
    life.close()


def faded(life: Life, *texts: str, start: date = date(2026, 1, 1)) -> date:
    """Lay a live file whose entries were last heard of half a year before, and let them turn dormant, then archived.

    Return the day of the last pass.
    """
    life.live.write_text("".join(texts))
    life.lived(start)
    life.lived(start + DAY)
    end = start + 31 * DAY
    life.lived(end)
    return end


OLD = entry("Lock fd leaked on exception path", "2025-01-01", comment="ref:2 | last:2025-05-01 | decay:active")
NET = "# Lessons\n\n## Net\n\n" + OLD + "\n## Build\n\n" + entry("Build cache must be warm", "2025-12-20")


def test_archived_block_stands_byte_for_byte_under_its_heading(life: Life) -> None:
    faded(life, NET)
    assert life.archive.read_text() == (
        "# Lessons\n\n## Net\n\n- ⚠️ [pitfall] **Lock fd leaked on exception path** — what to do about it (2025-01-01)\n"
        "  <!-- ref:2 | last:2025-05-01 | decay:archived -->\n"
    )
    assert "## Net\n" in life.live.read_text()
    assert "Lock fd leaked" not in life.live.read_text()
    assert life.live.stat().st_mode == life.archive.stat().st_mode


def test_cited_archived_entry_comes_back_to_the_end_of_its_heading_path(life: Life) -> None:
    day = faded(life, NET)
    timeouts = "## Net\n\n- **Timeouts add up along the way**: sum them\n"
    life.live.write_text(life.live.read_text().replace("## Net\n", timeouts))
    life.says(day + DAY, "again the Lock fd leaked on exception path bug")
    life.lived(day + DAY)
    text = life.live.read_text()
    assert life.states()["Lock fd leaked on exception path"] == "active"
    assert text.index("Timeouts add up") < text.index("Lock fd leaked") < text.index("## Build")
    assert f"<!-- ref:3 | last:{day + DAY} | decay:active -->" in text
    assert "⚠️" not in text
    assert "Lock fd leaked" not in life.archive.read_text()


def test_archived_entry_comes_back_though_its_heading_is_gone(life: Life) -> None:
    day = faded(life, NET)
    life.live.write_text("# Other\n\n- **Something else entirely here**: text\n")
    life.says(day + DAY, "again the Lock fd leaked on exception path bug")
    life.lived(day + DAY)
    text = life.live.read_text()
    assert text.startswith("# Other\n\n- **Something else entirely here**: text\n")
    assert text.rstrip().endswith("decay:active -->")
    assert text.count("Lock fd leaked") == 1
    assert life.archive.read_text().count("Lock fd leaked") == 0


def test_archived_entry_comes_back_though_its_file_is_gone(life: Life) -> None:
    day = faded(life, NET)
    (life.root / "kb" / "other.md").write_text("- **Something else entirely here**: text\n")
    life.live.unlink()
    life.says(day + DAY, "again the Lock fd leaked on exception path bug")
    life.lived(day + DAY)
    assert "**Lock fd leaked on exception path**" in life.live.read_text()
    assert "## Net" in life.live.read_text()
    assert life.states()["Lock fd leaked on exception path"] == "active"


def test_coming_back_is_done_once(life: Life) -> None:
    day = faded(life, NET)
    life.says(day + DAY, "again the Lock fd leaked on exception path bug")
    life.lived(day + DAY)
    files = life.live.read_bytes(), life.archive.read_bytes()
    for later in range(2, 5):
        life.lived(day + later * DAY)
    assert files == (life.live.read_bytes(), life.archive.read_bytes())
    assert len(life.events("to_active")) == 1
    assert len(life.events("moved")) == 2


def test_title_put_back_by_hand_takes_the_history_and_leaves_the_archived_block(life: Life) -> None:
    day = faded(life, NET)
    archived = life.archive.read_bytes()
    with life.live.open("a") as file:
        file.write("\n- **Lock fd leaked on exception path**: now written anew\n")
    life.lived(day + DAY)
    row = life.rows()["Lock fd leaked on exception path"]
    assert (row.state.value, row.file, row.ref) == ("active", str(life.live), 2)
    assert row.active_since == day + DAY
    assert life.archive.read_bytes() == archived
    life.lived(day + 2 * DAY)
    assert life.states()["Lock fd leaked on exception path"] == "active"


def test_title_put_back_by_hand_may_be_archived_again_beside_the_old_block(life: Life) -> None:
    day = faded(life, NET)
    with life.live.open("a") as file:
        file.write("\n- **Lock fd leaked on exception path**: now written anew\n")
    for later in (1, 95, 190, 195):
        life.lived(day + later * DAY)
    assert life.states()["Lock fd leaked on exception path"] == "archived"
    text = life.archive.read_text()
    assert text.count("**Lock fd leaked on exception path**") == 2
    life.says(day + 196 * DAY, "again the Lock fd leaked on exception path bug")
    life.lived(day + 196 * DAY)
    assert "now written anew" in life.live.read_text()
    assert "what to do about it (2025-01-01)" in life.archive.read_text()
    assert "now written anew" not in life.archive.read_text()


def test_block_moved_to_the_archive_by_hand_sleeps_until_cited_anew(life: Life) -> None:
    start = date(2026, 1, 1)
    life.live.write_text(entry("Cited only yesterday indeed", "2025-12-01"))
    life.says(start - DAY, "the lesson Cited only yesterday indeed helped")
    life.lived(start)
    life.archive.write_bytes(life.live.read_bytes())
    life.live.write_text("")
    life.lived(start + DAY)
    assert life.states() == {"Cited only yesterday indeed": "archived"}
    life.lived(start + 2 * DAY)
    assert life.states() == {"Cited only yesterday indeed": "archived"}
    life.says(start + 3 * DAY, "the lesson Cited only yesterday indeed helped")
    life.lived(start + 3 * DAY)
    assert life.states() == {"Cited only yesterday indeed": "active"}
    assert "Cited only yesterday" in life.live.read_text()


def test_state_set_archived_by_hand_moves_the_block(life: Life) -> None:
    start = date(2026, 1, 1)
    comment = "ref:1 | last:2025-12-02 | decay:active"
    life.live.write_text(entry("Not needed any longer here", "2025-12-01", comment=comment))
    life.lived(start)
    life.live.write_text(life.live.read_text().replace("decay:active", "decay:archived"))
    life.lived(start + DAY)
    assert life.states() == {"Not needed any longer here": "archived"}
    assert "Not needed" not in life.live.read_text()
    assert "decay:archived" in life.archive.read_text()


def test_two_entries_of_one_title_are_archived_both(life: Life) -> None:
    same = entry("Same title in two places here", "2025-01-01", comment="ref:0 | last:none | decay:active")
    start = date(2026, 1, 1)
    life.live.write_text(f"# A\n\n{same}\n# B\n\n{same}\n# C\n\n{same}")
    for later in (0, 1, 31, 32):
        life.lived(start + later * DAY)
    assert life.live.read_text().count("Same title") == 0
    assert life.archive.read_text().count("Same title") == 3


def test_first_reading_takes_an_archived_namesake_for_no_entry(life: Life) -> None:
    life.live.write_text(OLD)
    life.archive.write_text(OLD.replace("active", "archived"))
    life.lived(date(2026, 1, 1))
    assert life.states() == {"Lock fd leaked on exception path": "active"}
    assert life.rows()["Lock fd leaked on exception path"].file == str(life.live)


def test_live_block_that_says_archived_is_taken_in_as_dormant(life: Life) -> None:
    life.live.write_text(OLD.replace("decay:active", "decay:archived"))
    life.lived(date(2026, 1, 1))
    assert life.states() == {"Lock fd leaked on exception path": "dormant"}
    assert not life.archive.exists()
    assert "decay:dormant" in life.live.read_text()


def test_move_waits_while_git_is_at_work_and_the_entry_stays_matched(life: Life) -> None:
    (life.root / ".git").mkdir()
    (life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    start = date(2026, 1, 1)
    life.live.write_text(NET)
    life.lived(start)
    life.lived(start + DAY)
    (life.root / ".git" / "index.lock").write_text("")
    report = life.lived(start + 31 * DAY)
    assert "write_deferred" in {problem.code for problem in report.problems}
    assert not life.archive.exists()
    assert life.states()["Lock fd leaked on exception path"] == "archived"
    (life.root / ".git" / "index.lock").unlink()
    life.lived(start + 32 * DAY)
    assert "Lock fd leaked" in life.archive.read_text()


def test_entry_cited_while_its_move_waits_stays_where_it_is(life: Life) -> None:
    (life.root / ".git").mkdir()
    (life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    start = date(2026, 1, 1)
    life.live.write_text(NET)
    life.lived(start)
    life.lived(start + DAY)
    (life.root / ".git" / "index.lock").write_text("")
    life.lived(start + 31 * DAY)
    life.says(start + 32 * DAY, "again the Lock fd leaked on exception path bug")
    life.lived(start + 32 * DAY)
    (life.root / ".git" / "index.lock").unlink()
    life.lived(start + 33 * DAY)
    assert not life.archive.exists()
    assert life.live.read_text().count("Lock fd leaked") == 1
    assert "⚠️" not in life.live.read_text()
    assert life.rows()["Lock fd leaked on exception path"].moving is None


def test_file_in_an_editors_hands_is_not_moved_from(life: Life) -> None:
    day = faded(life, NET) + DAY
    life.live.write_text(entry("Old one that nobody cites now", "2025-01-01", comment="ref:2 | decay:dormant"))
    saved = noon(day).timestamp() - 2
    os.utime(life.live, (saved, saved))
    report = life.lived(day, immediate=False)
    assert [p.what for p in report.problems if p.code == "write_deferred"][:1] == ["changed 2 s ago"]
    assert life.states()["Old one that nobody cites now"] == "archived"
    assert "Old one that nobody" in life.live.read_text()
    life.lived(day + DAY, immediate=False)
    assert "Old one that nobody" in life.archive.read_text()
    assert "Old one that nobody" not in life.live.read_text()


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard", "symbolic"])
@pytest.mark.parametrize("name", ["lessons.md", "other.md"])
def test_an_archive_that_is_a_live_file_by_a_link_takes_no_block(
    life: Life, link: Callable[[Path, Path], None], name: str
) -> None:
    life.live.write_text(NET)
    other = life.live.with_name(name)
    other.touch()
    life.lived(date(2026, 1, 1))
    life.close()
    link(other, life.archive)
    before = life.live.read_bytes()
    assert (
        life.kbd("set", "Lock fd leaked on exception path", "--state", "archived", now=date(2026, 1, 1)).exit_code == 0
    )
    told = {problem.code: problem.where for problem in life.lived(date(2026, 1, 2)).problems}
    assert (life.live.read_bytes(), other.stat().st_size) == (before, len(before) if other == life.live else 0)
    assert told["move_failed"] == str(life.live)
    assert told["knowledge_unreadable"] == str(life.archive)
    life.archive.unlink()
    assert not life.lived(date(2026, 1, 3)).problems
    assert "Lock fd leaked" in life.archive.read_text()
    assert "Lock fd leaked" not in life.live.read_text()
