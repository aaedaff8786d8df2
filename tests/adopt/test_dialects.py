"""Files of each dialect become what is kept beside them; ADOPT_UPDATE=1 writes the expected files anew."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.adopt.dialects import BY_NAME, DIALECTS, recognise
from kbd.core.adopt.lesson import Reading, missing
from kbd.core.adopt.plan import Asked, Plan, in_place, into, plan
from kbd.core.entries import parse
from kbd.core.headline import DEFAULT_MARKER, DEFAULT_TYPES
from kbd.errors import Refused

FILES = sorted((Path(__file__).parent / "files").glob("*.md"))
READING = Reading(DEFAULT_TYPES, DEFAULT_MARKER)
TODAY = date(2026, 12, 1)
SPOKEN = {
    "ace": "ace", "basic-memory": "basic-memory", "bullets": "bullets", "bytes": "bullets", "claude-memory":
    "claude-memory", "crlf": "bullets", "dated": "bullets", "decisions": "bullets", "emoji": "bullets",
    "flow": "headings", "headings": "headings", "hostile": "bullets", "learnings": "learnings", "nested": "bullets",
}  # fmt: skip


def planned(data: bytes, name: str = "notes", dialect: str | None = None, **asked) -> Plan:
    said = Asked(READING, {}, asked.get("days", {}), asked.get("titles", ()), TODAY)
    spoken = BY_NAME[dialect] if dialect else recognise(parse(data), name)
    assert spoken is not None
    return plan(data, name, spoken, said)


def adopted(path: Path) -> tuple[Plan, bytes]:
    data = path.read_bytes()
    one = planned(data, path.stem, SPOKEN.get(path.stem, "serena"))
    only_into = BY_NAME[SPOKEN.get(path.stem, "serena")].only_into
    return one, into(one, b"# Lessons\n", READING) if only_into else in_place(one, READING)


def report(one: Plan, after: bytes) -> bytes:
    left = [f"left {left.at + 1}: {left.why}\n" for left in one.left]
    relations = [f"relation {r.s} | {r.p} | {r.o}\n" for r in one.relations]
    return after + b"\n=====\n" + "".join([*left, *relations]).encode()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_becomes_what_is_expected(path):
    expected = path.with_suffix(".expected")
    got = report(*adopted(path))
    if os.environ.get("ADOPT_UPDATE"):
        expected.write_bytes(got)
    assert got == expected.read_bytes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_dialect_is_recognised(path):
    spoken = recognise(parse(path.read_bytes()), path.stem)
    assert (spoken.name if spoken else None) == SPOKEN.get(path.stem)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_is_in_the_result_or_named(path):
    one, after = adopted(path)
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    result = after.decode("utf-8", "surrogateescape")
    carried = "helpful= harmful= description name type metadata Summary"
    named = {at for at, _ in one.unsaid()}
    for at, line in enumerate(lines):
        if at not in named or not BY_NAME[SPOKEN.get(path.stem, "serena")].only_into:
            assert missing(line, f"{result} {carried}") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_adopted_is_not_adopted_again(path):
    one, after = adopted(path)
    again = planned(after, path.stem, SPOKEN.get(path.stem, "serena"))
    assert one.taken
    assert not {taken.entry.norm for taken in again.taken} & {taken.entry.norm for taken in one.taken}


LINE = st.one_of(
    st.sampled_from([
        "- a plain lesson of some words", "- [convention] tables are named in the singular", "  more of it", "",
        "## 2026-02-12 manual [pitfall]", "### 2026-07-18: title of it (run_x, goal)", "# Heading", "```", "---",
        "[str-00001] helpful=5 harmful=0 :: check the totals twice", "- **2026-06-25** (s): words of a lesson",
        "<!--", "-->", "- [pitfall] **Existing entry here** (2026-01-01)",
        "  <!-- ref:2 | last:none | decay:active -->",
        "- 🟡 **bold words here** tail", "- relates_to [[Other]]", "- [tech] fact of the matter #tag (ctx)", "> quote",
        "**Logged**: 2026-03-05", "### Summary", "## [LRN-20260305-001] correction", "- [ ] task", "1. one", "\tcode",
        "<!-- MEMORY_INDEX_START -->", "<!-- MEMORY_INDEX_END -->", "Prose that stands alone.", "-", "- **",
        "- `x: y` z",
    ]),
    st.text(alphabet="ab *[]()`-#:—.é中\t\u2028", max_size=24),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(LINE, max_size=14), st.sampled_from([one.name for one in DIALECTS]), st.sampled_from(["\n", "\r\n"]))
def test_lines_are_conserved_and_entries_stay(lines, dialect, newline):
    data = newline.join(lines).encode()
    one = planned(data, dialect=dialect)
    try:
        after = in_place(one, READING)
    except Refused:
        return
    text = after.decode()
    carried = "helpful= harmful= Summary description name type metadata"
    assert [line for line in lines if missing(line, f"{text} {carried}")] == []
    assert len(parse(after).entries) >= len(parse(data).entries)
    grown = into(one, b"# Base\r\n\r\n- [pitfall] **Another entry of old**\r\n", READING)
    assert len(parse(grown).entries) == 1 + len(one.taken)


def test_git_dates_the_undated_only():
    data = b"- a lesson without any date here\n- another that has one (2026-01-01)\n"
    one = planned(data, days={1: date(2026, 3, 4), 2: date(2026, 3, 4)})
    assert [str(taken.entry.created) for taken in one.taken] == ["2026-03-04", "2026-01-01"]


def test_future_day_is_no_date():
    assert planned(b"- a lesson without any date here\n", days={1: date(2027, 1, 1)}).taken[0].entry.created is None


def test_title_that_is_there_is_left():
    one = planned(b"- a lesson without any date here\n", titles=("a lesson without any date here",))
    assert (one.taken, one.left[0].why) == ((), "an entry of this title is there already")


def test_helpful_count_covers_no_day():
    meta = planned(b"[str-00001] helpful=5 harmful=2 :: check the totals twice\n").taken[0].entry.meta
    assert (meta.ref, meta.last, meta.last_given, meta.extra) == (5, None, True, (("harmful", "2"),))


def test_large_file_is_read_in_linear_time():
    data = b"".join(b"- lesson number %d of a long list of lessons\n" % at for at in range(1500))
    assert len(planned(data).taken) == 1500
