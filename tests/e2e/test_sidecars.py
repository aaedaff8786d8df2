"""`write.counters: sidecar`: values stand in NAME.kbd.yaml, no byte of the Markdown changes but by moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kbd.core import sidecar
from kbd.core.model import Metadata, Pair, State
from kbd.core.normal import normalise
from tests.service.life import CONFIG, Life, entry

DAY = timedelta(days=1)
TODAY = date(2026, 1, 2)
USED = "Cited only yesterday indeed"
OLD = "Old one that nobody cites now"
TEXT = (
    "# Lessons\r\n\r\n"
    + entry(USED, "2025-12-01", comment="ref:4 | last:2025-12-20 | decay:active")
    + entry(OLD, "2025-01-01")
    + "\n## Later\n\nprose"
)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG + "write: {counters: sidecar}\n")
    life.live.write_bytes(TEXT.encode())
    life.lived(TODAY - DAY)
    yield life
    life.close()


def beside(life: Life, name: str = "lessons") -> dict[str, dict[str, object]]:
    return yaml.safe_load((life.root / "kb" / f"{name}.kbd.yaml").read_text()) or {}


def test_counters_stand_beside_and_the_markdown_keeps_every_byte(life: Life) -> None:
    for i in range(5):
        life.says(TODAY + i * DAY, f"the lesson {USED} helped")
        life.lived(TODAY + i * DAY)
        assert life.live.read_bytes() == TEXT.encode()
    assert beside(life)[USED] == {
        "ref": 9, "last": TODAY + 4 * DAY, "decay": "active", "handle": life.rows()[USED].handle
    }  # fmt: skip
    assert beside(life)[OLD]["decay"] == "dormant"
    before = (life.root / "kb" / "lessons.kbd.yaml").stat()
    life.lived(TODAY + 4 * DAY)
    assert (life.root / "kb" / "lessons.kbd.yaml").stat() == before


def test_person_s_edit_beside_counts_as_in_a_comment(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    path = life.root / "kb" / "lessons.kbd.yaml"
    path.write_text(path.read_text().replace("ref: 5,", "ref: 50, source: me,"))
    life.says(TODAY + DAY, f"the lesson {USED} helped")
    life.lived(TODAY + DAY)
    assert (beside(life)[USED]["ref"], beside(life)[USED]["source"]) == (51, "me")
    path.write_text(path.read_text().replace("decay: active", "decay: dormant"))
    life.lived(TODAY + DAY)
    assert life.states()[USED] == "dormant"
    assert [title for _, title, _ in life.events("person_edit")] == [USED]


def test_stale_copy_of_the_file_beside_is_written_over(life: Life) -> None:
    path = life.root / "kb" / "lessons.kbd.yaml"
    copies = []
    for i in range(3):
        life.says(TODAY + i * DAY, f"the lesson {USED} helped")
        life.lived(TODAY + i * DAY)
        copies.append(path.read_bytes())
    path.write_bytes(copies[0])
    life.lived(TODAY + 2 * DAY)
    assert beside(life)[USED]["ref"] == 7
    path.unlink()
    life.lived(TODAY + 2 * DAY)
    assert (beside(life)[USED]["ref"], life.rows()[USED].ref) == (7, 7)


def test_ledger_made_anew_takes_the_numbers_from_beside(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    life.close()
    for path in sorted(life.state.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    life.lived(TODAY)
    assert life.rows()[USED].ref == beside(life)[USED]["ref"] == 5


def test_archived_block_moves_as_it_is_and_comes_back(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    life.close()
    block = entry(OLD, "2025-01-01")
    assert life.kbd("set", OLD, "--state", "archived", now=TODAY).exit_code == 0
    assert life.live.read_bytes() == TEXT.replace(block, "").encode()
    assert block in life.archive.read_text()
    life.lived(TODAY + DAY)
    assert beside(life, "lessons-archive")[OLD]["decay"] == "archived"
    life.close()
    assert life.kbd("restore", OLD, now=TODAY + DAY).exit_code == 0
    assert block in life.live.read_text() and OLD not in life.archive.read_text()
    life.lived(TODAY + 2 * DAY)
    life.lived(TODAY + 3 * DAY)
    assert life.states()[OLD] == "active"
    assert beside(life)[OLD]["decay"] == "active"
    assert OLD not in beside(life, "lessons-archive") or life.states()[OLD] == "active"


def test_undone_archive_move_keeps_the_counters(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    life.close()
    life.kbd("set", USED, "--state", "archived", now=TODAY)
    assert life.kbd("undo", USED, now=TODAY).exit_code == 0
    assert life.live.read_bytes() == TEXT.encode()
    life.lived(TODAY + DAY)
    assert (life.rows()[USED].ref, life.states()[USED]) == (5, "active")
    assert life.live.read_bytes() == TEXT.encode()


def test_broken_file_beside_is_never_taken_for_empty(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    path = life.root / "kb" / "lessons.kbd.yaml"
    path.write_text("{: [broken")
    life.says(TODAY + DAY, f"the lesson {USED} helped")
    report = life.lived(TODAY + DAY)
    assert "knowledge_unreadable" in {problem.code for problem in report.problems}
    assert path.read_text() == "{: [broken"
    path.unlink()
    life.lived(TODAY + DAY)
    assert beside(life)[USED]["ref"] == 6


def test_detach_removes_the_files_beside(life: Life) -> None:
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    life.close()
    assert life.kbd("detach", "--yes", now=TODAY).exit_code == 0
    assert not (life.root / "kb" / "lessons.kbd.yaml").exists()


def test_equal_titles_have_lines_of_their_own(life: Life) -> None:
    life.live.write_text(entry(USED, "2025-12-01", comment="ref:1 | decay:active") + entry(USED, "2025-12-02"))
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    before = (life.root / "kb" / "lessons.kbd.yaml").read_bytes()
    assert set(beside(life)) >= {USED, f"{USED} #2"}
    life.lived(TODAY)
    assert (life.root / "kb" / "lessons.kbd.yaml").read_bytes() == before


TITLES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda t: normalise(t))


@given(st.dictionaries(TITLES, st.tuples(st.integers(0, 999), st.dates(), st.sampled_from(State)), max_size=6))
def test_what_is_rendered_is_read_back(entries: dict[str, tuple[int, date, State]]) -> None:
    by_key = {normalise(title): (title, *said) for title, said in entries.items()}
    more = (("a: b", "c"),)
    lines = [sidecar.Line(t, Pair(ref, last), state, "k-0", more) for t, ref, last, state in by_key.values()]
    wanted = {key: Metadata(ref, last, True, state, more) for key, (_, ref, last, state) in by_key.items()}
    assert sidecar.parse(sidecar.render(lines), "f") == wanted
