"""The two halves of a patch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert len(patch.written.split("\n")) + len(patch.copied.split("\n")) <= len(lines) + 2
