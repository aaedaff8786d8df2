"""Reading and replacing people's files on a real disk."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, KbdError
from kbd.store import files
from kbd.store.files import create_file, read_regular, read_with_stat
from kbd.store.replacing import replace_file

NOBODY = 65534
OLD, NEW = b"ref:7\n", b"ref:8\n"


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "kb" / "lessons.md"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@pytest.fixture
def open_note() -> Iterator[Path]:
    """A note that every user can reach, unlike what pytest makes."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    path = folder / "lessons.md"
    path.write_bytes(OLD)
    yield path
    folder.chmod(0o777)
    shutil.rmtree(folder)


# --- reading -------------------------------------------------------------------------------------------------


def test_regular_file_is_read_whole_and_through_a_link(note: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(note)
    data, status = read_with_stat(link, 100)
    assert data == OLD
    assert status.st_ino == note.stat().st_ino


def test_absent_file_is_its_own_answer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none.md", 100)


def test_fifo_socket_directory_and_device_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.md"))
        (tmp_path / "dir.md").mkdir()
        for path in (tmp_path / "fifo.md", tmp_path / "socket.md", tmp_path / "dir.md", Path("/dev/zero")):
            with pytest.raises(FileUnreadable, match="not a regular file"):
                read_regular(path, 100)


def test_links_to_nothing_and_to_themselves_are_unreadable_not_absent(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "none")
    (tmp_path / "b.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "a.md", tmp_path / "b.md", tmp_path / "file" / "below.md"):
        with pytest.raises(FileUnreadable):
            read_regular(path, 100)


def test_size_is_bounded_and_the_bound_itself_fits(note: Path) -> None:
    assert read_regular(note, len(OLD)) == OLD
    with pytest.raises(FileUnreadable, match="larger than"):
        read_regular(note, len(OLD) - 1)


# --- replacing -----------------------------------------------------------------------------------------------


def test_content_is_replaced_and_nothing_else_is_left(note: Path) -> None:
    done = replace_file(note, OLD, NEW)
    assert note.read_bytes() == NEW
    assert names(note.parent) == ["lessons.md"]
    assert done.real == str(note)
    assert done.mtime_ns == note.stat().st_mtime_ns


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o664, 0o755, 0o4755])
def test_mode_is_kept(note: Path, mode: int) -> None:
    note.chmod(mode)
    replace_file(note, OLD, NEW)
    assert stat.S_IMODE(note.stat().st_mode) == mode


def test_user_attributes_are_kept(note: Path) -> None:
    os.setxattr(note, "user.tag", b"mine")
    replace_file(note, OLD, NEW)
    assert os.getxattr(note, "user.tag") == b"mine"


def test_symbolic_link_is_kept_and_its_target_replaced_in_its_own_folder(note: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.md").symlink_to("../kb/lessons.md")
    (other / "two.md").symlink_to("one.md")
    done = replace_file(other / "two.md", OLD, NEW)
    assert os.readlink(other / "two.md") == "one.md"
    assert os.readlink(other / "one.md") == "../kb/lessons.md"
    assert note.read_bytes() == NEW
    assert done.real == str(note)
    assert names(other) == ["one.md", "two.md"]


@pytest.mark.parametrize("new", [NEW, b"ref:7\nlonger by far\n", b"r", b"", b"quite different and longer\n"])
def test_hard_link_is_kept(note: Path, new: bytes) -> None:
    twin = note.parent / "twin.md"
    os.link(note, twin)
    inode, before = note.stat().st_ino, note.stat().st_mtime_ns
    done = replace_file(note, OLD, new)
    assert (note.read_bytes(), twin.read_bytes()) == (new, new)
    assert (note.stat().st_ino, twin.stat().st_ino) == (inode, inode)
    assert done.mtime_ns == note.stat().st_mtime_ns != before
    assert names(note.parent) == ["lessons.md", "twin.md"]


@pytest.mark.parametrize("linked", [False, True])
def test_modification_time_changes_however_fast_the_rewrites(note: Path, linked: bool) -> None:
    if linked:
        os.link(note, note.parent / "twin.md")
    seen = {note.stat().st_mtime_ns // 1_000_000}
    for before, after in [(OLD, NEW), (NEW, OLD)] * 10:
        replace_file(note, before, after)
        stamp = note.stat().st_mtime_ns // 1_000_000
        assert stamp not in seen
        seen = {stamp}


def test_other_content_is_not_overwritten(note: Path) -> None:
    for foreign in (b"ref:9\n", OLD + b"more", b"ref", b""):
        note.write_bytes(foreign)
        with pytest.raises(ChangedUnderneath):
            replace_file(note, OLD, NEW)
        assert note.read_bytes() == foreign
    assert names(note.parent) == ["lessons.md"]


def test_removed_file_is_not_made_again(note: Path) -> None:
    note.unlink()
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert names(note.parent) == []


def test_read_only_file_is_left_alone(open_note: Path) -> None:
    open_note.chmod(0o444)
    assert unprivileged(lambda: replace_file(open_note, OLD, NEW)) == "FileUnwritable"
    assert open_note.read_bytes() == OLD


def test_read_only_folder_is_an_error_that_leaves_no_trace(open_note: Path) -> None:
    open_note.chmod(0o666)
    open_note.parent.chmod(0o555)
    assert unprivileged(lambda: read_regular(open_note, 100)) == "done"
    assert unprivileged(lambda: replace_file(open_note, OLD, NEW)) == "FileUnwritable"
    assert unprivileged(lambda: create_file(open_note.parent / "new.md", NEW)) == "FileUnwritable"
    assert open_note.read_bytes() == OLD
    assert names(open_note.parent) == ["lessons.md"]


def test_file_without_permission_is_unreadable(open_note: Path) -> None:
    open_note.chmod(0)
    assert unprivileged(lambda: read_regular(open_note, 100)) == "FileUnreadable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another owner")
def test_owner_that_cannot_be_given_away_keeps_its_file(open_note: Path) -> None:
    open_note.chmod(0o666)
    inode = open_note.stat().st_ino
    assert unprivileged(lambda: replace_file(open_note, OLD, NEW)) == "done"
    assert (open_note.read_bytes(), open_note.stat().st_ino, open_note.stat().st_uid) == (NEW, inode, 0)
    assert names(open_note.parent) == ["lessons.md"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_owner_is_kept_where_it_can_be_given(note: Path) -> None:
    os.chown(note, 65534, 65533)
    replace_file(note, OLD, NEW)
    assert (note.stat().st_uid, note.stat().st_gid) == (65534, 65533)


@pytest.mark.parametrize("linked", [False, True])
def test_full_disk_leaves_the_old_content_and_no_trace(note: Path, linked: bool) -> None:
    old = b"x" * 6000
    note.write_bytes(old)
    if linked:
        os.link(note, note.parent / "twin.md")
    before = names(note.parent)
    code = (
        "import sys, resource\n"
        "from kbd.store.replacing import replace_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
        "replace_file(sys.argv[1], b'x' * 6000, b'y' * 20000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(note)], capture_output=True, text=True, check=False)
    assert "FileUnwritable" in done.stderr
    assert "File too large" in done.stderr
    assert note.read_bytes() == old
    assert names(note.parent) == before


# --- new files -----------------------------------------------------------------------------------------------


def test_new_file_is_whole_and_takes_the_pattern_of_another(note: Path) -> None:
    note.chmod(0o640)
    path = create_file(note.parent / "lessons-archive.md", b"x\n", like=note)
    assert path == str(note.parent / "lessons-archive.md")
    assert (Path(path).read_bytes(), stat.S_IMODE(os.stat(path).st_mode)) == (b"x\n", 0o640)
    assert names(note.parent) == ["lessons-archive.md", "lessons.md"]


@pytest.mark.parametrize("supported", [True, False])
def test_name_that_is_taken_is_not_written(note: Path, monkeypatch: pytest.MonkeyPatch, supported: bool) -> None:
    if not supported:
        monkeypatch.setattr(files, "rename_new", lambda *_, dir_fd: False)
    (note.parent / "link.md").symlink_to("nowhere")
    for name in ("lessons.md", "link.md"):
        with pytest.raises(ChangedUnderneath):
            create_file(note.parent / name, NEW)
    assert note.read_bytes() == OLD
    assert create_file(note.parent / "new.md", NEW) == str(note.parent / "new.md")
    assert names(note.parent) == ["lessons.md", "link.md", "new.md"]


def unprivileged(action: Callable[[], object]) -> str:
    """Run an action in a forked child that is not root; return `done` or the name of its exception."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        said = "something unforeseen"
        try:
            action()
            said = "done"
        except KbdError as error:
            said = type(error).__name__
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    said = os.read(read, 200).decode()
    os.close(read)
    return said


@pytest.mark.parametrize("target", ["rc", ".bashrc", "run.sh", "lessons.md.txt"])
def test_nothing_is_written_through_a_link_to_a_file_of_another_kind(tmp_path: Path, target: str) -> None:
    (tmp_path / target).write_bytes(OLD)
    (tmp_path / "lessons.md").symlink_to(target)
    with pytest.raises(FileUnwritable, match="another kind"):
        replace_file(tmp_path / "lessons.md", OLD, NEW)
    assert (tmp_path / target).read_bytes() == OLD
