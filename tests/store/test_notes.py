"""Which files the globs of a base mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbd.store.notes import archive_of, conflict_copies, is_archive, knowledge_files


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def found(root: Path, *patterns: str) -> list[str]:
    return [os.path.relpath(path, root) for path in knowledge_files(patterns, str(root)).files]


def test_globs_find_regular_files_sorted_and_once(tmp_path: Path) -> None:
    make(tmp_path, "kb/b.md", "kb/a.md", "kb/deep/c.md", "kb/x.txt")
    assert found(tmp_path, "kb/*.md", "kb/a.md", "kb/?.md") == ["kb/a.md", "kb/b.md"]
    assert found(tmp_path, "kb/**/*.md") == ["kb/a.md", "kb/b.md", "kb/deep/c.md"]
    assert found(tmp_path, "kb/**") == ["kb/a.md", "kb/b.md", "kb/deep/c.md", "kb/x.txt"]
    assert found(tmp_path, "*/[ab].md", "kb/[!a].md") == ["kb/a.md", "kb/b.md"]
    assert found(tmp_path, str(tmp_path / "kb" / "*.txt")) == ["kb/x.txt"]


def test_root_is_no_pattern(tmp_path: Path) -> None:
    make(tmp_path, "odd [x]/kb/a.md")
    assert found(tmp_path / "odd [x]", "kb/a.md", "./kb/*.md", "kb/../kb/a.md") == ["kb/a.md"]
    assert found(tmp_path / "odd [x]" / "kb", "../kb/*.md", "../../odd*/kb/a.md", "..", "/", "") == ["a.md"]


@pytest.mark.parametrize(
    "name",
    [
        "lessons-archive.md",
        "Lessons-ARCHIVE.MD",
        ".hidden.md",
        ".kbd-" + "0" * 32 + ".tmp",
        "lessons (conflict 2026-06-10).md",
        "lessons (Ann's conflicted copy 2026-06-10).md",
        "lessons (Case Conflict).md",
        "lessons.sync-conflict-20260610-100000-ABCDEFG.md",
        "lessons.kbd-conflict.md",
        "lessons.2.kbd-conflict.md",
        "NOTES.kbd-conflict",
        "lessons.kbd.yaml",
    ],
)
def test_some_files_are_never_taken_whatever_the_glob_says(tmp_path: Path, name: str) -> None:
    make(tmp_path, f"kb/{name}", "kb/conflicts (how to solve).md")
    assert found(tmp_path, "kb/*", "kb/.*", "**/*", f"kb/{name}") == ["kb/conflicts (how to solve).md"]


def test_what_is_no_regular_file_is_not_taken(tmp_path: Path) -> None:
    make(tmp_path, "kb/a.md")
    os.mkfifo(tmp_path / "kb" / "fifo.md")
    (tmp_path / "kb" / "dir.md").mkdir()
    (tmp_path / "kb" / "null.md").symlink_to("/dev/null")
    assert found(tmp_path, "kb/*.md") == ["kb/a.md"]


def test_one_real_file_is_taken_once_by_the_name_that_is_no_link(tmp_path: Path) -> None:
    make(tmp_path, "kb/m.md", "far/only.md")
    (tmp_path / "kb" / "a.md").symlink_to("m.md")
    os.link(tmp_path / "kb" / "m.md", tmp_path / "kb" / "z.md")
    (tmp_path / "kb" / "linked.md").symlink_to("../far/only.md")
    assert found(tmp_path, "kb/*.md") == ["kb/linked.md", "kb/m.md"]


def test_a_link_to_an_archive_is_none_of_the_files_whose_entries_live(tmp_path: Path) -> None:
    make(tmp_path, "kb/m.md", "kb/m-archive.md")
    (tmp_path / "kb" / "old.md").symlink_to("m-archive.md")
    assert found(tmp_path, "kb/*.md") == ["kb/m.md"]


def test_link_to_nothing_is_taken_so_that_reading_it_says_so(tmp_path: Path) -> None:
    make(tmp_path, "kb/a.md")
    (tmp_path / "kb" / "gone.md").symlink_to("../unmounted/gone.md")
    assert found(tmp_path, "kb/*.md") == ["kb/a.md", "kb/gone.md"]


def test_stars_pass_over_hidden_folders_and_two_over_linked_ones(tmp_path: Path) -> None:
    make(tmp_path, "kb/.git/a.md", "kb/sub/b.md")
    (tmp_path / "kb" / "sub" / "loop").symlink_to("..")
    assert found(tmp_path, "kb/**/*.md") == ["kb/sub/b.md"]
    assert found(tmp_path, "kb/*/*.md") == ["kb/sub/b.md"]
    assert found(tmp_path, "kb/.git/*.md") == ["kb/.git/a.md"]


def test_missing_folder_is_told_from_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make(tmp_path, "file")
    patterns = ["none/*.md", "none/deep/**/*.md", "empty/*.md", "empty/x.md", "gone/x.md", "*/notes/*.md", "file/*.md"]
    listing = knowledge_files(patterns, str(tmp_path))
    assert listing.files == ()
    expected = [str(tmp_path / name) for name in ("none", "none/deep", "gone", "file")]
    assert list(listing.unlisted) == expected
    assert [problem.where for problem in listing.problems] == expected
    assert {problem.code for problem in listing.problems} == {"knowledge_unreadable"}


def test_archive_stands_beside_its_file() -> None:
    assert archive_of("/kb/lessons.md") == "/kb/lessons-archive.md"
    assert is_archive(archive_of("/kb/a.b.markdown"))
    assert not is_archive("/kb-archive/lessons.md")


def test_texts_that_editors_wrote_over_kbd_are_told_by_file_until_they_are_gone(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "a.kbd-conflict.md", "a.2.kbd-conflict.md", "gone.kbd-conflict.md", "kbd-conflict.md")
    make(tmp_path, "x.yaml", "x.kbd-conflict.yaml", "NOTES.kbd-conflict")
    (tmp_path / "linked").symlink_to(tmp_path)
    paths = [str(tmp_path / "a.md"), str(tmp_path / "linked" / "x.yaml"), str(tmp_path / "none" / "b.md")]
    told = {os.path.basename(problem.where): problem.what for problem in conflict_copies(paths)}
    assert told == {
        "a.md": "an editor wrote over kbd; its text is in a.2.kbd-conflict.md and 1 more beside it",
        "gone.md": "an editor wrote over kbd; its text is in gone.kbd-conflict.md, beside it",
        "x.yaml": "an editor wrote over kbd; its text is in x.kbd-conflict.yaml, beside it",
        "NOTES": "an editor wrote over kbd; its text is in NOTES.kbd-conflict, beside it",
    }
    for copy in tmp_path.glob("*.kbd-conflict*"):
        copy.unlink()
    assert conflict_copies(paths) == []
