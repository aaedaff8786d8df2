"""Entries: behaviours a compatible reader keeps, spans, sections, conflicts."""

from __future__ import annotations

from datetime import date

import pytest

from kbd.core.entries import parse
from kbd.core.model import Metadata, State
from kbd.core.splice import set_metadata

SAMPLE = """\
# Lessons

intro

## Locks

- [pitfall] **Lock fd leaked on exception path** — close it in finally (2026-05-16, run_x)
  more lines, indented

  after a blank line
  - [x] nested item
  <!-- ref:3 | last:2026-05-18 | decay:active -->
- [guideline] **Atomic commits** — one change (2026-05-19)
  <!-- ref:0 | last:none | decay:dormant | sessions:4 -->

### Deep

- **Untyped entry title** — text

## Choices #2 ##
* [decision] **Chose httpx over aiohttp**
+ [Process] **Release steps**: build
"""


def test_sample_is_read_in_document_order_with_sections() -> None:
    parsed = parse(SAMPLE.encode())
    assert [(entry.title, entry.type, entry.section, entry.line) for entry in parsed.entries] == [
        ("Lock fd leaked on exception path", "pitfall", "Lessons / Locks", 7),
        ("Atomic commits", "guideline", "Lessons / Locks", 13),
        ("Untyped entry title", None, "Lessons / Locks / Deep", 18),
        ("Chose httpx over aiohttp", "decision", "Lessons / Choices #2", 21),
        ("Release steps", "process", "Lessons / Choices #2", 22),
    ]
    assert parsed.problems == ()
    assert [entry.meta for entry in parsed.entries] == [
        Metadata(3, date(2026, 5, 18), True, State.ACTIVE),
        Metadata(0, None, True, State.DORMANT, (("sessions", "4"),)),
        None,
        None,
        None,
    ]


def test_block_runs_from_the_bullet_to_the_end_of_the_last_line() -> None:
    data = SAMPLE.encode()
    blocks = [data[entry.block.start : entry.block.end].decode() for entry in parse(data).entries]
    assert blocks[0].startswith("- [pitfall]")
    assert blocks[0].endswith("decay:active -->\n")
    assert blocks[1:] == [
        "- [guideline] **Atomic commits** — one change (2026-05-19)\n"
        "  <!-- ref:0 | last:none | decay:dormant | sessions:4 -->\n",
        "- **Untyped entry title** — text\n",
        "* [decision] **Chose httpx over aiohttp**\n",
        "+ [Process] **Release steps**: build\n",
    ]


@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbf", b"\n\n", b"text\n", b"# Only a heading", b"\r\n", b"-", b"- ", b"\xff\xfe\x00"]
)
def test_document_without_entries_gives_none(data: bytes) -> None:
    parsed = parse(data)
    assert (parsed.entries, parsed.problems, parsed.has_conflict) == ((), (), False)


def test_entry_before_any_heading_has_no_section() -> None:
    assert parse(b"- **Some title**\n# A").entries[0].section == ""


@pytest.mark.parametrize(
    ("headings", "section"),
    [
        ("# A\n## B\n### C\n", "A / B / C"),
        ("# A\n### C\n## B\n", "A / B"),
        ("## B\n# A\n", "A"),
        ("# A\n###### F ######\n", "A / F"),
        ("# A\n #B\n#C\n", "A"),
        ("   # A\n", "A"),
        ("    # A\n", ""),
        ("# A [model] <!-- x -->\n", "A [model]"),
        ("# A\n##\n", "A"),
        ("# A\n```\n# B\n```\n", "A"),
        ("# A\n- x\n  # nested\n", "A"),
        ("# A\n- x\n # B\n", "B"),
    ],
)
def test_section_is_the_path_of_headings(headings: str, section: str) -> None:
    assert parse(f"{headings}- **Some title**\n".encode()).entries[-1].section == section


@pytest.mark.parametrize(
    ("after", "belongs"),
    [
        ("  indented", True),
        ("lazy", True),
        ("\n  indented after a blank", True),
        ("\n\n\ttabbed after blanks", True),
        ("\n<!-- ref:1 | last:none | decay:active -->", True),
        ("<!-- ref:1 | last:none | decay:active -->", True),
        ("  ---", True),
        ("  # nested heading", True),
        ("  ```\n\n\n  code\n  ```", True),
        ("\ntext", False),
        ("\n<!-- a comment -->", False),
        ("\n```\ncode\n```", False),
        ("---", False),
        ("# H", False),
        ("- next", False),
        ("1. next", False),
        ("<!-- MEMORY_INDEX_START -->\n- x\n<!-- MEMORY_INDEX_END -->", False),
    ],
)
def test_block_ends_before(after: str, belongs: bool) -> None:
    data = f"- **Some title**\n{after}\n\n\n".encode()
    block = parse(data).entries[0].block
    assert block.end == (len(data) - 2 if belongs else len("- **Some title**\n"))


@pytest.mark.parametrize(
    ("text", "conflict"),
    [
        ("<<<<<<< HEAD\n- **a**\n=======\n- **b**\n>>>>>>> x\n", True),
        ("- **Some title**\n<<<<<<< HEAD\r\n", True),
        (">>>>>>>\n", True),
        ("||||||| base\n", True),
        ("Lessons\n=======\n", False),
        ("```\n<<<<<<< HEAD\n```\n", False),
        ("  <<<<<<< HEAD\n", False),
        ("<<<<<<<< eight\n", False),
    ],
)
def test_conflict_markers_are_seen_outside_fences(text: str, conflict: bool) -> None:
    assert parse(text.encode()).has_conflict is conflict


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"a\nb\n", b"\n"), (b"a\r\nb\r\nc\n", b"\r\n"), (b"a\r\nb\n", b"\n"), (b"", b"\n"), (b"a\rb", b"\n")],
)
def test_newline_is_that_of_most_lines(data: bytes, newline: bytes) -> None:
    assert parse(data).newline == newline


@pytest.mark.parametrize("marker", ["⚠️", "", "zz"])
def test_marker_of_a_former_config_is_known_where_the_comment_says_dormant(marker: str) -> None:
    comment = "\n  <!-- ref:1 | last:2026-01-01 | decay:{} -->\n"
    data = "# Notes\n\n- 💤 [pitfall] **Sleeping title** — so" + comment.format("dormant")
    data += "- 🔥 **Emoji-led title** — so" + comment.format("active") + "- 💤 **Without a comment**\n"
    parsed = parse(data.encode(), marker=marker)
    assert [(entry.title, entry.marker) for entry in parsed.entries] == [("Sleeping title", True)]
    same = set_metadata(data.encode(), parsed.entries[0], 1, date(2026, 1, 1), State.DORMANT, marker)
    assert same == data.encode()
    awake = set_metadata(data.encode(), parsed.entries[0], 2, date(2026, 2, 1), State.ACTIVE, marker)
    assert b"- [pitfall] **Sleeping title** \xe2\x80\x94 so\n  <!-- ref:2 | last:2026-02-01 | decay:active -->" in awake


def test_marker_of_the_config_and_the_default_one_are_known() -> None:
    data = "- 💤 **Sleeping title**\n- ⚠️ [pitfall] **Warned title**\n- **Awake title**\n".encode()
    assert [(entry.title, entry.marker) for entry in parse(data, marker="💤").entries] == [
        ("Sleeping title", True),
        ("Warned title", True),
        ("Awake title", False),
    ]
    assert [entry.title for entry in parse(data, marker="").entries] == ["Warned title", "Awake title"]


def test_comment_spans_cover_the_line_or_the_comment_alone() -> None:
    text = "\ufeff- **Tïtle of it** x <!-- ref:1 | last:none | decay:active --> y\n\t<!-- last:none | ref:2 --> \r\n"
    data = text.encode()
    entry = parse(data).entries[0]
    assert [data[span.start : span.end] for span in entry.comments] == [
        b"<!-- ref:1 | last:none | decay:active -->",
        b"\t<!-- last:none | ref:2 --> \r\n",
    ]
    assert entry.body == "x y"


def test_problems_come_in_the_order_of_the_lines() -> None:
    text = "- **Short**\n  <!-- ref:-1 | last:none -->\n[pitfall] x\n- **short** (2026-13-01)\n"
    assert [(problem.where, problem.code) for problem in parse(text.encode()).problems] == [
        ("line 1", "unmatchable_title"),
        ("line 2", "bad_metadata"),
        ("line 3", "stray_tag_line"),
        ("line 4", "unmatchable_title"),
        ("line 4", "invalid_date"),
        ("line 4", "duplicate_title"),
    ]


def test_title_with_invalid_bytes_is_kept() -> None:
    entry = parse(b"- **Caf\xe9 title** x\n").entries[0]
    assert entry.title.encode("utf-8", "surrogateescape") == b"Caf\xe9 title"


@pytest.mark.parametrize("word", ["SPARC", "DECIDE", "K01", "ABCDEF01", "kd01", "KD1"])
def test_other_words_are_no_ids(word: str) -> None:
    assert parse(f"- [{word}] **Some title**".encode()).entries[0].ident is None


@pytest.mark.parametrize("word", ["KD07", "PIT012", "GUI01", "LL99", "RC10", "ABCDE123456"])
def test_ids_are_read(word: str) -> None:
    assert parse(f"- [{word}] **Some title**".encode()).entries[0].ident == word


def test_words_known_from_an_earlier_reading_are_read_as_at_first() -> None:
    at_first = parse(SAMPLE.encode())
    moved = parse(b"# Other\n\n" + SAMPLE.encode().replace(b"ref:3 | last:2026-05-18", b"ref:4 | last:2026-06-01"))
    assert [(e.title, e.body, e.created) for e in moved.entries] == [
        (e.title, e.body, e.created) for e in at_first.entries
    ]
    assert (moved.entries[0].line, moved.entries[0].section) == (at_first.entries[0].line + 2, "Lessons / Locks")
    assert moved.entries[0].meta == Metadata(4, date(2026, 6, 1), True, State.ACTIVE)
    assert parse(SAMPLE.encode(), types=frozenset({"other"})).entries[0].type is None
