"""Conflict copies: each text once, under a name that is free, whatever else stands there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath
from kbd.store.conflicts import extend_conflict, save_conflict
from tests.store.desk import OLD, copies, names


@pytest.fixture
def found(tmp_path: Path) -> Iterator[int]:
    """The open file in which a text was found."""
    (tmp_path / "old").write_bytes(b"theirs\n")
    (tmp_path / "old").chmod(0o600)
    fd = os.open(tmp_path / "old", os.O_RDONLY)
    yield fd
    os.close(fd)


def test_late_content_is_saved_beside_under_a_free_name(note: Path, found: int) -> None:
    first = save_conflict(note, b"theirs\n", found)
    assert first == str(note.parent / "lessons.kbd-conflict.md")
    assert save_conflict(note, b"theirs\n", found) == first
    assert save_conflict(note, b"other\n", found) == str(note.parent / "lessons.2.kbd-conflict.md")
    assert Path(first).read_bytes() == b"theirs\n"


def test_copy_has_the_mode_of_the_file_in_which_its_text_was_found(note: Path, found: int) -> None:
    note.chmod(0o644)
    assert Path(save_conflict(note, b"theirs\n", found)).stat().st_mode & 0o777 == 0o600


def to_nothing(copy: Path) -> None:
    copy.symlink_to("nowhere")


def to_a_secret(copy: Path) -> None:
    (copy.parent.parent / "secret").write_bytes(b"secret\n")
    copy.symlink_to(copy.parent.parent / "secret")


@pytest.mark.parametrize("planted", [Path.mkdir, os.mkfifo, to_nothing, to_a_secret])
def test_whatever_has_the_name_of_a_copy_is_passed_over(
    note: Path, found: int, planted: Callable[[Path], None]
) -> None:
    planted(note.parent / "lessons.kbd-conflict.md")
    assert save_conflict(note, b"theirs\n", found) == str(note.parent / "lessons.2.kbd-conflict.md")
    assert (note.parent / "lessons.2.kbd-conflict.md").read_bytes() == b"theirs\n"


def test_many_copies_cost_no_file_each(note: Path, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(50):
        save_conflict(note, b"text %d\n" % n, found)
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), fsync(fd)))
    save_conflict(note, b"one more\n", found)
    assert (len(copies(note.parent)), len(synced)) == (51, 2)


@pytest.mark.parametrize("stem", ["x" * 252, "经" * 84])
def test_long_name_is_cut_for_its_copies(tmp_path: Path, found: int, stem: str) -> None:
    note = tmp_path / f"{stem}.md"
    note.write_bytes(OLD)
    assert [save_conflict(note, text, found) for text in (b"one", b"two")] == [
        str(path) for path in sorted(tmp_path.glob("*.kbd-conflict.md"), key=lambda path: path.read_bytes())
    ]


def test_copy_in_a_folder_that_went_is_no_endless_search(note: Path, found: int) -> None:
    note.unlink()
    note.parent.rmdir()
    with pytest.raises(ChangedUnderneath):
        save_conflict(note, b"theirs\n", found)


def test_text_that_the_file_says_or_that_is_blank_gets_no_copy(note: Path, found: int) -> None:
    assert (save_conflict(note, OLD, found), save_conflict(note, b" \r\n", found)) == (str(note), str(note))
    assert names(note.parent) == ["lessons.md"]


def test_copy_grows_only_while_it_says_what_was_saved(note: Path, found: int) -> None:
    copy = save_conflict(note, b"one\n", found)
    assert extend_conflict(copy, b"one\n", b"one\ntwo\n")
    assert not extend_conflict(copy, b"one\n", b"one\nthree\n")
    assert not extend_conflict(copy, b"one\ntwo\n", b"else\n")
    assert not extend_conflict(copy + "x", b"one\n", b"one\ntwo\n")
    assert Path(copy).read_bytes() == b"one\ntwo\n"
    Path(copy).rename(note.parent / "merged.md")
    Path(copy).symlink_to("merged.md")
    assert not extend_conflict(copy, b"one\ntwo\n", b"one\ntwo\nthree\n")
