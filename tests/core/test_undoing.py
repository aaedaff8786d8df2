"""Changes of a write, and taking them back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.entries import parse
from kbd.core.model import State
from kbd.core.splice import apply, cut, edits_for
from kbd.core.undoing import between, moved, of_edits, revert
from kbd.errors import Refused

LINES = st.lists(st.sampled_from(["- **First title here** x\n", "- [pitfall] **Second one** y\n", "  more\n", "\n",
    "## Head\n", "  <!-- ref:1 | last:none | decay:active -->\n", "prose\r\n", "- ⚠️ **Third title here**\n", "```\n"]),
    max_size=14)  # fmt: skip


@given(LINES, st.integers(0, 9), st.sampled_from(list(State)))
def test_reverting_what_was_written_gives_the_bytes_before(lines: list[str], ref: int, state: State) -> None:
    before = "".join(lines).encode()
    edits = [
        (entry.norm, edit) for entry in parse(before).entries for edit in edits_for(before, entry, ref, None, state)
    ]
    after = apply(before, [edit for _, edit in edits])
    changes = of_edits(before, after, edits)
    titles = [entry.norm for entry in parse(after).entries]
    if len(set(titles)) == len(titles) == len(parse(before).entries):
        assert revert(after, changes, parse, "f") == before


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_changes_between_two_contents_lead_back(before: bytes, after: bytes) -> None:
    assert revert(after, between(before, after, lambda data: parse(b"")), parse, "f") == before


@given(LINES, st.integers(0, 20))
def test_block_cut_out_goes_back_to_its_place(lines: list[str], which: int) -> None:
    before = "".join(lines).encode()
    entries = parse(before).entries
    if not entries:
        return
    entry = entries[which % len(entries)]
    _, after = cut(before, entry)
    assert revert(after, moved(before, after, entry, parse), parse, "f") == before


def test_changed_bytes_are_refused_and_a_like_place_elsewhere_is_not_taken() -> None:
    comment = b"  <!-- ref:%d | last:none | decay:active -->\n"
    before = b"- **First title here** x\n" + comment % 1 + b"- **Second title here** x\n" + comment % 2
    entries = parse(before).entries
    edits = [(entries[0].norm, edit) for edit in edits_for(before, entries[0], 2, None, State.ACTIVE)]
    after = apply(before, [edit for _, edit in edits])
    changes = of_edits(before, after, edits)
    person = after.replace(b"ref:2", b"ref:7", 1)
    with pytest.raises(Refused):
        revert(person, changes, parse, "f")
