"""Dates go into entries and nothing else changes."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.dating import insert_dates, undated
from kbd.core.entries import parse
from kbd.core.model import Span

DAY = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"- **A title**\n", b"- **A title** (2026-01-02)\n"),
        (b"- **A title**: text", b"- **A title**: text (2026-01-02)"),
        (b"- **A title**  \r\n  more\r\n", b"- **A title** (2026-01-02)  \r\n  more\r\n"),
        (b"- **A title that\n  goes on** - x\n", b"- **A title that\n  goes on** - x (2026-01-02)\n"),
        (b"- **A title** <!-- ref:1 -->\n", b"- **A title** (2026-01-02) <!-- ref:1 -->\n"),
        (b"- **A title** x <!-- y --> <!-- ref:1 --> \n", b"- **A title** x (2026-01-02) <!-- y --> <!-- ref:1 --> \n"),
        (b"- **A title** x <!-- in\n  more -->\n", b"- **A title** x (2026-01-02) <!-- in\n  more -->\n"),
        (b"- [pitfall] Never do that\n", b"- [pitfall] Never do that (2026-01-02)\n"),
        (b"- **\xff\xfe title** x\n", b"- **\xff\xfe title** x (2026-01-02)\n"),
        (b"\xef\xbb\xbf- **A title**\n", b"\xef\xbb\xbf- **A title** (2026-01-02)\n"),
    ],
)
def test_date_stands_at_the_end_of_the_first_line_that_can_take_it(before, after):
    assert insert_dates(before, {1: DAY}, parse).data == after


def test_entry_with_a_date_is_left_alone():
    data = b"- **A title** (2025-05-05)\n- **Another title**\n"
    dated = insert_dates(data, {1: DAY}, parse)
    assert dated == replace(dated, data=data, lines=(), refused=())


def test_lines_that_begin_no_entry_are_passed_over():
    data = b"# Head\n\n- **A title**\n  more\n"
    assert insert_dates(data, {1: DAY, 4: DAY, 99: DAY}, parse).data == data


def test_undated_are_those_that_neither_were_cited_nor_say_when_they_were_made():
    data = (
        b"- **Never dated**\n- **Dated one** (2026-01-01)\n"
        b"- **Cited one**\n  <!-- ref:1 | last:2026-01-01 | decay:active -->\n"
        b"- **Counted only**\n  <!-- ref:0 | last:none | decay:active -->\n"
    )
    assert [entry.title for entry in undated(parse(data).entries)] == ["Never dated", "Counted only"]


LINES = st.lists(
    st.sampled_from(
        [
            b"# Head",
            b"",
            b"- **Some title**",
            b"- **Some title**: text",
            b"- **A (title",
            b"  goes) on** x",
            b"  more (",
            b"  <!-- ref:1 | last:none | decay:active -->",
            b"- [pitfall] plain words",
            b"```",
            b"<!--",
            b"-->",
            b"  - **in**",
            b"- `code",
            b"  span` y",
            b"- **T** (2026-13-40)",
            b"- **Dated one** (2020-02-02)",
            b"  \xff text  ",
            b"- \xe2\x9a\xa0 **Mm**",
            b"text",
            b"* **Star title** <!-- x --> <!-- ref:2 -->",
            b"(2020-01-01",
        ]
    ),
    max_size=12,
)


@given(LINES, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_only_dates_come_in_and_entries_stay_who_they_are(lines, newline, ends):
    data = newline.join(lines) + (newline if ends else b"")
    before = parse(data).entries
    dated = insert_dates(data, {entry.line: DAY for entry in before}, parse)
    assert dated.data.replace(b" (2026-01-02)", b"") == data
    after = parse(dated.data).entries
    bare = {"block": Span(0, 0), "comments": (), "created": None, "body": ""}
    assert [replace(entry, **bare) for entry in before] == [replace(entry, **bare) for entry in after]
    assert all(entry.created == DAY for entry in after if entry.line in dated.lines)
    assert {entry.line for entry in before if entry.created is None} == {*dated.lines, *dated.refused}
