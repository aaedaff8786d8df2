"""Properties of reading and editing, over documents made of everything that goes wrong."""

from __future__ import annotations

from datetime import date
from os.path import commonprefix

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbd.core.entries import Parsed, parse
from kbd.core.model import Entry, State
from kbd.core.splice import apply, cut, edits_for, heading_lines, insert, set_metadata

PIECES = [
    "- [pitfall] **Lock fd leaked** — why (2026-05-19)",
    "- **Atomic commits here**: x",
    "* [guideline] Plain lesson. More",
    "+ ⚠️ [KD01] **Sleeping one**",
    "- [zz] **Odd tag title** `<!--`",
    "- plain",
    "- [x] **Done thing**",
    "-",
    "- ",
    "- **Wrapped",
    "  title here** x",
    "- **Never closed",
    "  more",
    "lazy text",
    "\tmore",
    "  - [pitfall] **Nested**",
    "  <!-- ref:3 | last:2026-05-19 | decay:active -->",
    "<!-- ref:1 | last:none | decay:dormant | k:v -->",
    "    <!-- last:2026-01-02 | ref:7 | word -->  ",
    "  <!-- ref:-1 | last:x | decay:y -->",
    "  <!-- maturity: seed -->",
    "  text <!-- ref:2 | last:none --> more",
    "<!-- ref:4 | last:none",
    "  <!-- open",
    "x <!-- open",
    "-->",
    "  --> y",
    "# A",
    "## B",
    "### C ###",
    "#",
    "## A",
    "- x\n  # deep",
    "",
    "",
    "",
    "---",
    "***",
    "===",
    "1. one",
    "> quote",
    "```",
    "  ```",
    "~~~~",
    "````md",
    "    ```",
    "<!-- MEMORY_INDEX_START -->",
    "<!-- MEMORY_INDEX_END -->",
    "<<<<<<< HEAD",
    "=======",
    "\u2028",
    "\x0c",
    "\x85",
    "| a | b |",
    "[pitfall] stray",
    "`",
    "(",
    ") 2026-02-30",
    "\ufeff",
]
lines = st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", "\n", "\n", "\r\n"]))
documents = st.builds(
    lambda bom, lines, tail: bom + "".join(a + b for a, b in lines).encode() + tail,
    st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"---\n", b"---\nk: v\n---\n"]),
    st.lists(lines, max_size=25),
    st.sampled_from([b"", b"", b"- **Last title**", b"  end", b"\xff\xfe", b"\r", b"  <!-- ref:1 | last:none -->"]),
)
values = st.tuples(st.integers(0, 999), st.none() | st.dates(date(2020, 1, 1)), st.sampled_from(State))


def blocks(parsed: Parsed, data: bytes) -> list[tuple[str, str, bytes]]:
    return [(entry.title, entry.section, data[entry.block.start : entry.block.end]) for entry in parsed.entries]


def without_metadata(entry: Entry) -> tuple[object, ...]:
    return (
        entry.title,
        entry.type,
        entry.tag,
        entry.ident,
        entry.section,
        entry.created,
        entry.body,
        entry.derived_title,
    )


@given(documents)
def test_reading_is_total_and_spans_are_in_order(data: bytes) -> None:
    parsed = parse(data)
    end = 0
    for entry in parsed.entries:
        assert end <= entry.block.start < entry.block.end <= len(data)
        assert data[entry.block.start : entry.block.start + 1] in (b"-", b"*", b"+")
        assert data[: entry.block.start].count(b"\n") == entry.line - 1
        spans = [(span.start, span.end) for span in entry.comments]
        assert spans == sorted(spans)
        assert all(entry.block.start < start < stop <= entry.block.end for start, stop in spans)
        assert (entry.meta is None) == (not entry.comments)
        assert entry.title
        assert entry.norm
        end = entry.block.end


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    assert parse(data).newline in (b"\n", b"\r\n")


@given(documents, values, st.data())
@example(b"- **Some title** x <!-- open\n", (1, None, State.ACTIVE), None)
def test_written_values_are_read_again_and_all_else_stays(
    data: bytes, wanted: tuple[int, date | None, State], draw: st.DataObject | None
) -> None:
    parsed = parse(data)
    if not parsed.entries:
        return
    at = draw.draw(st.integers(0, len(parsed.entries) - 1)) if draw else 0
    ref, last, state = wanted
    after = set_metadata(data, parsed.entries[at], ref, last, state)
    again = parse(after)
    entry = again.entries[at]
    assert entry.meta
    assert (entry.meta.ref, entry.meta.last, entry.meta.state, len(entry.comments)) == (ref, last, state, 1)
    assert without_metadata(entry) == without_metadata(parsed.entries[at])
    others, others_again = blocks(parsed, data), blocks(again, after)
    assert others[:at] + others[at + 1 :] == others_again[:at] + others_again[at + 1 :]
    before = parsed.entries[at].meta
    assert {key for key, _ in entry.meta.extra} == {key for key, _ in (before.extra if before else ())}
    assert set_metadata(after, entry, ref, last, state) == after
    # Where a stacked comment ended the file, what stood before it ends it now.
    assert len(parsed.entries[at].comments) > 1 or data.endswith(b"\n") == after.endswith(b"\n")


@given(documents)
def test_writing_what_is_read_changes_nothing_once_settled(data: bytes) -> None:
    for _ in range(2):
        edits = [
            edit
            for entry in parse(data).entries
            for edit in edits_for(
                data,
                entry,
                (entry.meta and entry.meta.ref) or 0,
                entry.meta and entry.meta.last,
                (entry.meta and entry.meta.state) or State.ACTIVE,
            )
        ]
        settled, data = data, apply(data, edits)
    assert data == settled


@given(documents, documents, st.data())
def test_moving_a_block_keeps_all_other_bytes(source: bytes, target: bytes, draw: st.DataObject) -> None:
    parsed = parse(source)
    if not parsed.entries:
        return
    entry = draw.draw(st.sampled_from(parsed.entries))
    block, rest = cut(source, entry)
    assert rest[: entry.block.start] + block + rest[entry.block.start :] == source
    moved = insert(target, block, entry.section, heading_lines(parsed.outline, entry))
    kept = len(commonprefix([moved, target]))
    assert moved.endswith(target[kept:])
    assert block in moved
    was = blocks(parse(target), target)
    now = blocks(parse(moved), moved)
    new = [one for one in now if one[:2] == (entry.title, entry.section)]
    assert any(one[2].rstrip(b"\r\n") == block.rstrip(b"\r\n") for one in new)
    assert len(now) == len(was) + 1


@pytest.mark.parametrize(
    "text",
    [
        "- [pitfall] **" + "a " * 500_000 + "**",
        "- **" + "**a " * 250_000,
        "- **x** " + "`" * 1_000_000,
        "- **x** " + "<!--" * 250_000,
        "- **x** " + "(" * 300_000 + "2026-01-01)" * 60_000,
        "- " + "[a] " * 250_000,
        "- **a " + "` `` ``` " * 110_000,
        "# " + " #" * 500_000,
        "- **t** (" + "\n (2026-01-01" * 70_000,
        "\n".join(["<!-- MEMORY_INDEX_START -->"] * 20_000),
        "- **t** <!-- ref:1 |" + "a:b|" * 250_000 + "-->",
        "- **t**\n" + "  <!-- ref:1 | last:none | x:y -->\n" * 10_000,
        "- x <!-- a\n" * 20_000,
    ],
)
def test_hostile_megabyte_is_read_in_linear_time(text: str) -> None:
    assert len(parse(text.encode()).entries) <= 1


def test_five_megabytes_are_read_and_written() -> None:
    block = (
        "- [pitfall] **Lesson number {}** — "
        + "text " * 800
        + "(2026-05-19)\n  <!-- ref:3 | last:none | decay:active -->\n"
    )
    data = "".join(block.format(at) for at in range(1_300)).encode()
    entries = parse(data).entries
    edits = [edit for entry in entries for edit in edits_for(data, entry, 4, None, State.ACTIVE)]
    assert len(data) > 5_000_000
    assert len(entries) == 1_300
    assert apply(data, edits) == data.replace(b"ref:3", b"ref:4")
