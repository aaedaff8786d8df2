"""`kbd classify`: types from words, and tags put in without touching another byte."""

from __future__ import annotations

import json
import sqlite3
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.entries import parse
from kbd.core.headline import DEFAULT_MARKER, DEFAULT_TYPES
from kbd.core.splice import apply
from kbd.core.tagging import tag_edit
from tests.service.life import Life

TODAY = date(2026, 1, 2)
SHAPES = {
    "bold": (b"- **Race condition in the cache**: text", b"- [pitfall] **Race condition in the cache**: text"),
    "star": (b"* **Race condition in the cache**: text", b"* [pitfall] **Race condition in the cache**: text"),
    "wide": (b"-   **Race condition in the cache**: x", b"-   [pitfall] **Race condition in the cache**: x"),
    "marker": ("- ⚠️ **Race condition in it**: x".encode(), "- ⚠️ [pitfall] **Race condition in it**: x".encode()),
    "id": (b"- [KD07] **Race condition in it** x", b"- [KD07] [pitfall] **Race condition in it** x"),
    "id without bold": (b"- [KD07] Race condition in it: x", b"- [KD07] [pitfall] Race condition in it: x"),
    "date": (b"- 2026-01-01 **Race condition in it** x", b"- [pitfall] 2026-01-01 **Race condition in it** x"),
    "wrapped": (b"- **Race condition\n  in the cache**: x", b"- [pitfall] **Race condition\n  in the cache**: x"),
    "no utf-8": (b"- **Race condition \xff\xfe in it**: x", b"- [pitfall] **Race condition \xff\xfe in it**: x"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""], ids=["lf", "crlf", "no newline"])
def test_tag_stands_after_bullet_marker_and_id(shape: str, newline: bytes) -> None:
    before, after = (text.replace(b"\n", newline or b"\n") + newline for text in SHAPES[shape])
    (entry,) = parse(before).entries
    edit = tag_edit(before, entry, "pitfall", DEFAULT_TYPES, DEFAULT_MARKER)
    assert edit is not None
    assert apply(before, [edit]) == after


@pytest.mark.parametrize("text", [b"- [model] **Has a tag already here** x", b"- [wat] **Has an unknown tag here** x"])
def test_entry_with_a_tag_gets_no_second_one(text: bytes) -> None:
    assert tag_edit(text, parse(text).entries[0], "pitfall", DEFAULT_TYPES, DEFAULT_MARKER) is None


PARTS = [*"-*+[]() #`\n\t<!>:.", "**", "⚠️ ", "[KD07]", "word", "2026-01-01", "-->"]


@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_tagging_changes_nothing_but_the_type(parts: list[str]) -> None:
    data = ("- " + "".join(parts)).encode()
    for entry in parse(data).entries:
        edit = tag_edit(data, entry, "model", DEFAULT_TYPES, DEFAULT_MARKER)
        if edit is not None:
            tagged = next(e for e in parse(apply(data, [edit])).entries if e.line == entry.line)
            assert (tagged.norm, tagged.type, tagged.body) == (entry.norm, "model", entry.body)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path)
    life.live.write_text(
        "# Lessons\n\n- **Race condition in the cache**: text\n- **Plain words without any sign**: text\n"
        "- [model] **Session states are four of them**: text\n- [pitfal] **Unknown tag stays as it is**: text\n"
    )
    life.archive.write_text("- **Deadlock in the old archive**: text\n")
    return life


def test_classify_shows_type_and_phrase_and_writes_nothing(life: Life) -> None:
    before = life.live.read_bytes()
    shown = json.loads(life.kbd("classify", "--json", now=TODAY).stdout)
    assert shown["version"] == 1
    assert [(e["title"], e["type"], e["type_source"], e["signal"], e["line"]) for e in shown["entries"]] == [
        ("Race condition in the cache", "pitfall", "signal", "race condition", 3),
        ("Plain words without any sign", "guideline", "default", None, 4),
    ]
    assert life.kbd("classify", "--write", "--dry-run", now=TODAY).exit_code == 0
    assert life.live.read_bytes() == before


def test_classify_writes_tags_once_and_leaves_the_rest(life: Life) -> None:
    archive = life.archive.read_bytes()
    result = life.kbd("classify", "--write", now=TODAY)
    assert result.exit_code == 0
    assert life.live.read_text() == (
        "# Lessons\n\n- [pitfall] **Race condition in the cache**: text\n"
        "- [guideline] **Plain words without any sign**: text\n"
        "- [model] **Session states are four of them**: text\n- [pitfal] **Unknown tag stays as it is**: text\n"
    )
    assert life.archive.read_bytes() == archive
    written = life.live.read_bytes()
    assert life.kbd("classify", "--write", now=TODAY).exit_code == 0
    assert life.live.read_bytes() == written


@pytest.mark.parametrize("command", [("classify", "--write"), ("adopt", "kb/plain.md", "--yes")])
def test_what_is_written_is_no_failure_when_the_ledger_cannot_take_it(life: Life, command: tuple[str, ...]) -> None:
    life.lived(TODAY)
    life.close()
    plain = life.root / "kb" / "plain.md"
    plain.write_text("# Notes\n\n- Never retry without a limit, it hides faults\n")
    before = life.live.read_bytes(), plain.read_bytes()
    with sqlite3.connect(life.state / "ledger.db") as ledger:
        ledger.execute("PRAGMA user_version=99")
    result = life.kbd(*(word.replace("kb/", f"{plain.parent}/") for word in command), now=TODAY)
    assert (result.exit_code, (life.live.read_bytes(), plain.read_bytes()) == before) == (0, False), result.output
    assert "written, but `kbd undo` does not know of it: " in result.stderr


def test_list_knows_the_tags_at_once(life: Life) -> None:
    life.lived(TODAY)
    life.close()
    life.kbd("classify", "--write", now=TODAY)
    row = life.rows()["Race condition in the cache"]
    assert (row.type, row.type_source) == ("pitfall", "tag")


def test_classify_refuses_to_write_while_git_is_at_work(life: Life) -> None:
    (life.root / ".git").mkdir()
    (life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (life.root / ".git" / "MERGE_HEAD").write_text("")
    before = life.live.read_bytes()
    assert life.kbd("classify", "--write", now=TODAY).exit_code == 6
    assert life.live.read_bytes() == before
