"""A counter that was written without reading the rest of its file leaves the ledger as if all had been read anew."""

from __future__ import annotations

import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import pytest

from kbd.core.alone import another_follows, entry_alone, line_starts
from kbd.core.entries import parse
from tests.service.life import Life

DAY = timedelta(days=1)
TODAY = date(2026, 1, 2)
TITLES = [
    "First lesson about sockets",
    "Second lesson of `retries`",
    "Third lesson on caching",
    "重试要带抖动的原因很多",
]
BETWEEN = [
    "# Head\n", "## Sub\n", "\n", "prose\n", "---\n", "```\n- [pitfall] **Within a fence, lesson** x\n```\n",
    "<!-- note -->\n", "<!--\nopen\n-->\n", "1. number\n", "- plain item\n", "\ttab\n", "    code\n",
    "[pitfall] stray\n", "\u2028 sep\n", "> quote\n", "<!-- never closed\n", "~~~\n",
    "<!-- KBD:INDEX START -->\n- x\n<!-- KBD:INDEX END -->\n",
]  # fmt: skip
WITHIN = [
    "  more\n", "  - nested\n", "  ```py\n  code\n  ```\n", "\n  after a blank\n", "\ttab\n", "lazy line\n", "  \n",
    "  ~~~\n  left open\n", "  <!-- note -->\n", "  <!--\n  two lines\n  -->\n", "  stray <!-- opener\n",
    "  <!-- ref:2 | last:2025-12-01 | decay:active | source:manual -->\n",
    "  <!-- ref:9 | last:2027-01-01 | decay:active -->\n", "  <!-- ref:99 | last:2025-12-01 | decay:active -->\n",
    "  text <!-- ref:1 | last:none --> tail\n", "<!-- ref:4 | last:2025-11-01 | decay:dormant -->\n",
]  # fmt: skip


def written(seed: int) -> bytes:
    """Return a knowledge file of all that may stand in one."""
    dice = random.Random(seed)
    parts = []
    for title in dice.sample(TITLES, dice.randint(1, 4)) + dice.sample(TITLES, dice.random() < 0.2):
        parts += dice.choices(BETWEEN, k=dice.randint(0, 2))
        lead = dice.choice(["- ", "* ", "-   ", "- [pitfall] ", "- ⚠️ [model] "])
        parts.append(f"{lead}**{title}** — words (2025-12-01)\n")
        parts += dice.choices(WITHIN, k=dice.randint(0, 3))
    parts += dice.choices(BETWEEN, k=dice.randint(0, 1))
    data = "".join(parts).encode()
    data = data.replace(b"\n", b"\r\n") if dice.random() < 0.2 else data
    data = b"\xef\xbb\xbf" + data if dice.random() < 0.2 else data
    return data.rstrip(b"\r\n") if dice.random() < 0.2 else data


def known(life: Life) -> list[tuple[object, ...]]:
    """Return all that the ledger says of entries and files, the files' stamps aside."""
    db = sqlite3.connect(life.state / "ledger.db")
    try:
        rows = db.execute("SELECT * FROM entries ORDER BY id").fetchall()
        return rows + db.execute("SELECT path, sha, size, tokens, problems FROM notes ORDER BY path").fetchall()
    finally:
        db.close()


def read_anew(life: Life, day: date) -> None:
    """Run a pass that finds all files changed."""
    assert life.opened is not None
    with life.opened.frame.ledger.transaction() as db:
        db.execute("UPDATE notes SET mtime_ns=-1")
    life.lived(day)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(6, 106))]
)
def test_reading_all_anew_changes_nothing_after_a_write(tmp_path: Path, seed: int) -> None:
    life, dice = Life(tmp_path), random.Random(seed)
    life.live.write_bytes(written(seed))
    life.lived(TODAY)
    for step in range(1, 5):
        cited = dice.sample(TITLES, dice.randint(1, 2))
        life.says(TODAY + step * DAY, " and ".join(title.replace("`", "") for title in cited) + " helped")
        if dice.random() < 0.3:
            life.kbd("set", dice.choice(TITLES), "--state", dice.choice(["dormant", "active"]), now=TODAY + step * DAY)
        life.lived(TODAY + step * DAY)
        at_once = known(life)
        read_anew(life, TODAY + step * DAY)
        assert known(life) == at_once, life.live.read_bytes()
    life.close()


@pytest.mark.parametrize("seed", range(200))
def test_an_entry_by_itself_is_that_of_its_file_or_is_not_told(seed: int) -> None:
    data = written(seed)
    starts = line_starts(data)
    for entry in parse(data).entries:
        last = entry.line + data[entry.block.start : entry.block.end].rstrip(b"\n").count(b"\n")
        alone = entry_alone(data, starts, entry.line, last, frozenset({"pitfall", "model"}), "⚠️")
        if alone is not None:
            told = (alone.title, alone.body, alone.meta, alone.comments, alone.block, alone.marker, alone.created)
            assert told == (
                entry.title, entry.body, entry.meta, entry.comments, entry.block, entry.marker, entry.created
            )  # fmt: skip


def test_lines_are_those_of_the_whole_file() -> None:
    for data in (b"", b"\n", b"a", b"a\n", b"\xef\xbb\xbfa\r\nb", b"a\n\nb\n"):
        lines = parse(data).outline.lines
        assert line_starts(data)[: len(lines)] == [line.start for line in lines]
        assert not lines or line_starts(data)[len(lines)] == lines[-1].end


def test_text_after_an_entry_is_seen() -> None:
    assert another_follows(b"- a\n\n- b\n", line_starts(b"- a\n\n- b\n"), 1)
    assert another_follows(b"- a\n\n# b\n", line_starts(b"- a\n\n# b\n"), 1)
    assert another_follows(b"- a\n\n", line_starts(b"- a\n\n"), 1)
    assert not another_follows(b"- a\n\n  \nb\n", line_starts(b"- a\n\n  \nb\n"), 1)
    assert not another_follows(b"- a\n\n-b\n", line_starts(b"- a\n\n-b\n"), 1)


def test_one_counter_of_many_is_written_without_reading_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    life.live.write_text(
        "# L\n\n" + "".join(f"- [model] **Lesson number {i} here** x (2025-12-01)\n" for i in range(50))
    )
    life.lived(TODAY)
    whole: list[int] = []
    monkeypatch.setattr("kbd.service.project.markdown.parse", lambda data, *_: whole.append(len(data)))
    for step in (1, 2):
        life.says(TODAY + step * DAY, "Lesson number 7 here and Lesson number 9 here helped")
        assert life.lived(TODAY + step * DAY).written == 2
    assert whole == []
    assert life.live.read_text().count("ref:2 | last:2026-01-04") == 2
    life.close()
