"""Edits: only the metadata comment and the marker change, whatever the rest of the file looks like."""

from __future__ import annotations

from datetime import date

import pytest

from kbd.core.entries import parse
from kbd.core.model import Span, State
from kbd.core.splice import Edit, apply, cut, edits_for, heading_lines, insert, set_metadata

DAY = date(2026, 6, 10)
OLD = "<!-- ref:0 | last:none | decay:active -->"
NEW = "<!-- ref:1 | last:2026-06-10 | decay:active -->"


def written(data: bytes, state: State = State.ACTIVE, marker: str = "⚠️", at: int = 0) -> bytes:
    """Set ref 1, the day and a state on the entry with index `at`."""
    return set_metadata(data, parse(data, marker=marker).entries[at], 1, DAY, state, marker)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"- **Some title** x\n  {OLD}\n", f"- **Some title** x\n  {NEW}\n"),
        (f"- **Some title** x\n\t{OLD} \t\n  more", f"- **Some title** x\n\t{NEW} \t\n  more"),
        (
            f"\ufeff- **Some title** x  \r\n  {OLD}\r\nlazy\r\n\r\n",
            f"\ufeff- **Some title** x  \r\n  {NEW}\r\nlazy\r\n\r\n",
        ),
        (f"- **Some title** x\n{OLD}", f"- **Some title** x\n{NEW}"),
        (f"- **Some title** {OLD} x", f"- **Some title** {NEW} x"),
        (f"- **Some\u2028title** \x0c\x85 x\n  {OLD}\n", f"- **Some\u2028title** \x0c\x85 x\n  {NEW}\n"),
        (
            "- **Some title** x\n  <!--decay:active|sessions: 4|ref:0 | last:none|word-->\n",
            "- **Some title** x\n  <!-- ref:1 | last:2026-06-10 | decay:active | sessions:4 | word -->\n",
        ),
        ("- **Some title** x\n  <!-- ref:-1 | last:x | decay:y -->\n", f"- **Some title** x\n  {NEW}\n"),
        ("- **Some title** x\n", f"- **Some title** x\n  {NEW}\n"),
        ("- **Some title** x", f"- **Some title** x\n  {NEW}"),
        ("# A\r\n- **Some title** x", f"# A\r\n- **Some title** x\r\n  {NEW}"),
        ("- **Some title** x\r\n\r\n\r\n# A", f"- **Some title** x\r\n  {NEW}\r\n\r\n\r\n# A"),
        ("- **Some title** x\n\n  more\n\n- next", f"- **Some title** x\n\n  more\n  {NEW}\n\n- next"),
        ("- **Some title** x\n  ```\n  code\n\n- next", f"- **Some title** x\n  {NEW}\n  ```\n  code\n\n- next"),
        ("- **Some title** x\n  ```\n  code\n  ```\n", f"- **Some title** x\n  ```\n  code\n  ```\n  {NEW}\n"),
        ("- **Some title** x\n```\ncode", f"- **Some title** x\n  {NEW}\n```\ncode"),
        ("- **Some title** x\n  <!-- open\n- next", f"- **Some title** x\n  {NEW}\n  <!-- open\n- next"),
        ("- **Some title** never write <!-- so\n", f"- **Some title** never write <!-- so\n  {NEW}\n"),
        ("- **Some title** x\n\t- [pitfall] **Nested**\n", f"- **Some title** x\n\t- [pitfall] **Nested**\n  {NEW}\n"),
        ("- **Some title** `x\n", f"- **Some title** `x\n  {NEW}\n"),
        (f"- **Some title**\n  {OLD}\n  body\n  {OLD}\n  end\n", f"- **Some title**\n  {NEW}\n  body\n  end\n"),
        (f"- **Some title**\n  {OLD}\n  {OLD}\n{OLD}", f"- **Some title**\n  {NEW}"),
        (f"- **Some title**\r\n  {OLD}\r\n  body\r\n  {OLD}", f"- **Some title**\r\n  {NEW}\r\n  body"),
        (f"- **Some title** {OLD} and {OLD} end\n", f"- **Some title** {NEW} and  end\n"),
        (
            "- **Some title**\n  <!-- ref:0 | last:none | a:1 -->\n\n<!-- ref:9 | last:2026-01-01 | b:2 -->\n",
            "- **Some title**\n  <!-- ref:1 | last:2026-06-10 | decay:active | a:1 | b:2 -->\n\n",
        ),
    ],
)
def test_only_the_comment_changes(before: str, after: str) -> None:
    assert written(before.encode()).decode() == after
    assert written(after.encode()).decode() == after


def test_other_bytes_that_are_no_text_stay() -> None:
    data = b"- **Caf\xe9 title** \xff\x00\n  <!-- ref:0 | last:none | decay:active | k:\xe9 -->\xfe\n\xc3"
    assert written(data) == data.replace(b"ref:0 | last:none", b"ref:1 | last:2026-06-10")


@pytest.mark.parametrize(
    "comment",
    [
        NEW,
        "<!--last:'2026-06-10T08:00'|x:y|REF: 1|decay:Active-->",
        "<!-- ref:1 | last:2026-06-10 | decay:active | a:b | -->",
    ],
)
def test_values_that_stand_there_leave_the_bytes_identical(comment: str) -> None:
    data = f"- **Some title** x\n  {comment}\n".encode()
    assert edits_for(data, parse(data).entries[0], 1, DAY, State.ACTIVE) == ()


@pytest.mark.parametrize(
    ("before", "state", "marker", "after"),
    [
        ("- **T of it**", State.DORMANT, "⚠️", "- ⚠️ **T of it**"),
        ("-  \t[pitfall] **T of it**", State.DORMANT, "⚠️", "-  \t⚠️ [pitfall] **T of it**"),
        ("- ⚠️ **T of it**", State.DORMANT, "⚠️", "- ⚠️ **T of it**"),
        ("- ⚠️ **T of it**", State.ACTIVE, "⚠️", "- **T of it**"),
        ("- ⚠️ **T of it**", State.ARCHIVED, "⚠️", "- **T of it**"),
        ("- ⚠  **T of it**", State.ACTIVE, "⚠️", "-  **T of it**"),
        ("- ⚠️**T of it**", State.ACTIVE, "⚠️", "- **T of it**"),
        ("- ⚠️ **T of it**", State.ACTIVE, "", "- ⚠️ **T of it**"),
        ("- **T of it**", State.DORMANT, "", "- **T of it**"),
        ("- **T of it**", State.DORMANT, "[zz]", "- [zz] **T of it**"),
        ("- [zz] ⚠️ **T of it**", State.ACTIVE, "[zz]", "- **T of it**"),
        ("- ⚠️ **T of it**", State.DORMANT, "[zz]", "- ⚠️ **T of it**"),
    ],
)
def test_marker_stands_exactly_after_the_bullet_of_a_dormant_entry(
    before: str, state: State, marker: str, after: str
) -> None:
    comment = f"\n  <!-- ref:1 | last:2026-06-10 | decay:{state.value} -->\n"
    assert written((before + comment).encode(), state, marker).decode() == after + comment


def test_many_entries_change_in_one_go() -> None:
    text = f"- **First title**\n- **Second title** x\n  {OLD}\n# A\n- **Third title**"
    data = text.encode()
    edits = [edit for entry in parse(data).entries for edit in edits_for(data, entry, 2, None, State.DORMANT)]
    comment = "<!-- ref:2 | last:none | decay:dormant -->"
    assert apply(data, edits[::-1]).decode() == (
        f"- ⚠️ **First title**\n  {comment}\n- ⚠️ **Second title** x\n  {comment}\n# A\n- ⚠️ **Third title**\n  {comment}"
    )


@pytest.mark.parametrize("spans", [[(0, 3), (2, 4)], [(0, 9)], [(3, 2)], [(-1, 0)]])
def test_overlapping_or_outlying_edits_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="overlaps another or leaves the file"):
        apply(b"abcdef", [Edit(Span(*span), b"") for span in spans])


def test_touching_edits_are_made() -> None:
    assert apply(b"abc", [Edit(Span(1, 2), b"X"), Edit(Span(1, 1), b"<"), Edit(Span(2, 2), b">")]) == b"a<X>c"
    assert apply(b"abc", []) == b"abc"


def test_block_is_cut_whole() -> None:
    data = f"# A\n- **First title**\n\n  more\n  {OLD}\n\n- **Second title**".encode()
    first, second = parse(data).entries
    assert cut(data, first) == (f"- **First title**\n\n  more\n  {OLD}\n".encode(), b"# A\n\n- **Second title**")
    assert cut(data, second)[0] == b"- **Second title**"


BLOCK = "- **New title**\n"


@pytest.mark.parametrize(
    ("before", "section", "after"),
    [
        ("", "", f"{BLOCK}"),
        ("", "A / B", f"# A\n\n## B\n\n{BLOCK}"),
        ("\ufeff", "A", f"\ufeff# A\n\n{BLOCK}"),
        ("# A\n- x\n\n# B\n- y\n", "A", f"# A\n- x\n{BLOCK}\n# B\n- y\n"),
        ("# A\n- x\n# B\n", "A", f"# A\n- x\n{BLOCK}\n# B\n"),
        ("# A\n- x\n# B\n", "B", f"# A\n- x\n# B\n\n{BLOCK}"),
        ("# A\n- x", "A", f"# A\n- x\n{BLOCK}"),
        ("# A\r\n- x", "A", f"# A\r\n- x\r\n{BLOCK}"),
        ("# A\ntext\n\n## B\n- y\n", "A", f"# A\ntext\n\n{BLOCK}\n## B\n- y\n"),
        ("# A\n## B\n- y\n# C\n", "A / D", f"# A\n## B\n- y\n\n## D\n\n{BLOCK}\n# C\n"),
        ("## A\n", "A / B", f"## A\n\n### B\n\n{BLOCK}"),
        ("- x\n# A\n", "", f"- x\n{BLOCK}\n# A\n"),
        ("# A\n", "", f"{BLOCK}\n# A\n"),
        ("---\nk: v\n---\n\n# A\n", "", f"---\nk: v\n---\n\n{BLOCK}\n# A\n"),
        ("# A\n- x\n\n```\nopen\n", "A", f"# A\n- x\n{BLOCK}\n```\nopen\n"),
        ("# A\n- x\n  ```\n  open\n", "A", f"# A\n- x\n  ```\n  open\n{BLOCK}"),
        (
            "# A\n<!-- MEMORY_INDEX_START -->\n- x\n# B\n",
            "A",
            f"# A\n\n{BLOCK}\n<!-- MEMORY_INDEX_START -->\n- x\n# B\n",
        ),
    ],
)
def test_block_goes_to_the_end_of_its_section(before: str, section: str, after: str) -> None:
    data = insert(before.encode(), BLOCK.encode(), section)
    assert data.decode() == after
    assert ("New title", section) in [(entry.title, entry.section) for entry in parse(data).entries]


def test_missing_headings_are_made_as_they_were_written() -> None:
    source = b"## Locks [model] ##\n\n#### Deep\n- **New title**\n"
    parsed = parse(source)
    headings = heading_lines(parsed.outline, parsed.entries[0])
    assert headings == (b"## Locks [model] ##", b"#### Deep")
    section = parsed.entries[0].section
    assert insert(b"", BLOCK.encode(), section, headings).decode() == (f"## Locks [model] ##\n\n#### Deep\n\n{BLOCK}")
    assert parse(insert(b"# Archive\n- x\n", BLOCK.encode(), section, headings)).entries[-1].section == section
    assert insert(b"## Locks [model]\n", BLOCK.encode(), section, headings).startswith(
        b"## Locks [model]\n\n#### Deep\n"
    )


def test_block_without_newline_gets_one_only_before_other_lines() -> None:
    assert insert(b"# A\n- x\n", b"- **New title**", "A") == b"# A\n- x\n- **New title**"
    assert insert(b"# A\n- x\n# B\n", b"- **New title**", "A") == b"# A\n- x\n- **New title**\n\n# B\n"


def test_indented_lines_after_the_place_are_kept_out_of_the_block() -> None:
    data = insert(b"# A\ntext\n   # B\n- **Old title**\n", b"- **New title**\n", "A")
    assert data == b"# A\ntext\n\n- **New title**\n\n<!-- -->\n   # B\n- **Old title**\n"
    assert [(entry.title, entry.section) for entry in parse(data).entries] == [("New title", "A"), ("Old title", "B")]


def test_fence_that_is_never_closed_is_no_part_of_a_block() -> None:
    data = b"- **Some title**\n  more\n```\nopen\n- x\n"
    assert cut(data, parse(data).entries[0]) == (b"- **Some title**\n  more\n", b"```\nopen\n- x\n")
