"""What is noted of a knowledge file is of the content that was read, whoever wrote since."""

from __future__ import annotations

from pathlib import Path

from kbd.store.base_files import NoteFile, describe, read_base
from kbd.store.ledger.lessons import NoteRow


def row_of(file: NoteFile) -> NoteRow:
    return NoteRow(file.path, 1, file.archive, file.sha, file.size, file.mtime_ns, file.ino, None, None)


def read_again(folder: Path, noted: NoteFile) -> bytes | None:
    files, _ = read_base([str(folder / "*.md")], {noted.path: row_of(noted)})
    return files[0].data if files else None


def test_file_that_is_as_it_was_described_is_not_read_again(tmp_path: Path) -> None:
    note = tmp_path / "lessons.md"
    note.write_bytes(b"ref:7\n")
    assert read_again(tmp_path, describe(str(note), b"ref:7\n")) is None


def test_file_that_another_wrote_before_it_was_described_is_read_again(tmp_path: Path) -> None:
    note = tmp_path / "lessons.md"
    note.write_bytes(b"ref:6\n")  # the same size, and no write after the description
    assert read_again(tmp_path, describe(str(note), b"ref:7\n")) == b"ref:6\n"


def test_file_that_went_before_it_was_described_is_gone_at_the_next_look(tmp_path: Path) -> None:
    noted = describe(str(tmp_path / "lessons.md"), b"ref:7\n")
    assert noted.data == b"ref:7\n"
    assert read_again(tmp_path, noted) is None
    (tmp_path / "lessons.md").write_bytes(b"ref:7\n")
    assert read_again(tmp_path, noted) == b"ref:7\n"


def test_unchanged_file_is_read_when_that_is_asked_for(tmp_path: Path) -> None:
    note = tmp_path / "lessons.md"
    note.write_bytes(b"ref:7\n")
    noted = row_of(describe(str(note), b"ref:7\n"))
    files, _ = read_base([str(note)], {noted.path: noted}, anew={noted.path})
    assert files[0].data == b"ref:7\n"
