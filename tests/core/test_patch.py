"""The two halves of a patch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import BREAK
from kbd.core.patch import Patch, is_patch, split_patch

ROWS = {
    "apply_patch": (
        "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@ def f\n ctx\n-old\n+new\n"
        "*** End Patch\nmine",
        {"new", "mine"},
        {"ctx", "old"},
        ("src/a.py", "src/b.py"),
    ),
    "apply_patch adds and deletes files": (
        "*** Begin Patch\n*** Add File: a\n+one\n*** Delete File: b\n*** End Patch",
        {"one"},
        set(),
        ("a", "b"),
    ),
    "unified diff": (
        "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n"
        "@@ -1,2 +1,3 @@ f\n ctx\n-old\n+new\n+-- two\nmine",
        {"new", "-- two", "mine"},
        {"ctx", "old"},
        ("x.py",),
    ),
    "unified diff whose lines look like headers": (
        "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n--- old\n+++ new\nmine",
        {"++ new", "mine"},
        {"-- old"},
        ("x",),
    ),
    "hunks with too few lines counted": (
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n ctx\n-old\n+new\n@@ -9 +9 @@\n-old two\n-old three\n+newer\n\n- mine",
        {"new", "newer", "- mine"},
        {"ctx", "old", "old two", "old three"},
        ("x",),
    ),
    "a hunk with too many lines counted": (
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-old\n+new\n@@ -20 +20 @@\n-old two\n+newer\n",
        {"new", "newer"},
        {"old", "old two"},
        ("x",),
    ),
    "hunks without numbers": (
        "--- a/x\n+++ b/x\n@@ ... @@\n ctx\n-old\n+new\n@@ f\n-old two\nmine",
        {"new", "mine"},
        {"ctx", "old", "old two"},
        ("x",),
    ),
    "a new file": ("--- /dev/null\n+++ b/n.md\n@@ -0,0 +1 @@\n+new\n", {"new"}, set(), ("n.md",)),
    "SEARCH/REPLACE": ("me\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\nI", {"me", "new", "I"}, {"old"}, ()),
    "Cline's dashes": ("------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE", {"new"}, {"old"}, ()),
    "SEARCH without an end": ("<<<<<<< SEARCH\nold", set(), {"old"}, ()),
    "CRLF": ("<<<<<<< SEARCH\r\nold\r\n=======\r\nnew\r\n>>>>>>> REPLACE\r\n", {"new"}, {"old"}, ()),
}


@pytest.mark.parametrize("name", ROWS)
def test_new_lines_are_written_and_old_ones_copied(name: str) -> None:
    text, written, copied, files = ROWS[name]
    patch = split_patch(text)
    assert is_patch(text)
    assert written <= set(patch.written.split("\n"))
    assert copied <= set(patch.copied.split("\n"))
    assert not copied & set(patch.written.split("\n"))
    assert patch.files == files


@pytest.mark.parametrize("text", ["", "a\n- b\n+ c", "---\ntitle: x\n---", "=======", "# SEARCH"])
def test_a_text_without_a_patch_is_all_written(text: str) -> None:
    assert not is_patch(text)
    assert split_patch(text) == Patch(text, "", ())


HEADS = ["*** Begin Patch", "*** End Patch", "@@ -1,2 +3,4 @@", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"]


@given(st.lists(st.sampled_from([*HEADS, "+a", "-b", " c"])))
def test_no_line_is_on_both_sides(lines: list[str]) -> None:
    patch = split_patch("\n".join(lines))
    halves = [half.replace(BREAK, "\n").split("\n") for half in (patch.written, patch.copied)]
    assert sum(map(len, halves)) <= len(lines) + 2


NEIGHBOURS = {
    "context between them": ("@@ -1 +1,3 @@\n+one\n c\n+two", False),
    "two hunks": ("@@ -0,0 +1 @@\n+one\n@@ -0,0 +9 @@\n+two", False),
    "two files": ("*** Begin Patch\n*** Add File: a\n+one\n*** Add File: b\n+two\n*** End Patch", False),
    "two replacements": ("<<<<<<< SEARCH\na\n=======\none\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nb\n=======\ntwo", False),
    "prose after a hunk": ("@@ -0,0 +1 @@\n+one\ntwo", False),
    "replaced lines": ("@@ -1,2 +1,2 @@\n-a\n+one\n-b\n+two", True),
    "new lines": ("*** Begin Patch\n*** Add File: a\n+one\n+two\n*** End Patch", True),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_written_lines_that_are_no_neighbours_are_no_one_text(name: str) -> None:
    text, are_one = NEIGHBOURS[name]
    assert ("one\ntwo" in split_patch(text).written) is are_one
    assert (f"one{BREAK}two" in split_patch(text).written) is not are_one
