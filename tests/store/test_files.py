"""Reading and replacing people's files on a real disk."""

from __future__ import annotations

import os
import re
import shutil
import signal
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
from kbd.store.files import create_file, read_regular, read_with_stat, replace_file
from kbd.store.temporary import sweep_temporaries

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
    assert (done.real, done.late) == (str(note), None)
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
    assert done.kept is None
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
        "from kbd.store.files import replace_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
        "replace_file(sys.argv[1], b'x' * 6000, b'y' * 20000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(note)], capture_output=True, text=True, check=False)
    assert "FileUnwritable" in done.stderr
    assert "File too large" in done.stderr
    assert note.read_bytes() == old
    assert names(note.parent) == before


# --- what others write meanwhile -----------------------------------------------------------------------------


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Actions that others do right before each exchange of names, in order."""
    actions: list[object] = []
    exchange = files.exchange

    def racing(one: str, other: str, *, dir_fd: int) -> bool:
        action = actions.pop(0) if actions else None
        if callable(action):
            action()
        return exchange(one, other, dir_fd=dir_fd)

    monkeypatch.setattr(files, "exchange", racing)
    return actions


def test_late_write_in_place_is_put_back(note: Path, race: list[object]) -> None:
    race.append(lambda: note.write_bytes(b"edited in place\n"))
    inode = note.stat().st_ino
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert (note.read_bytes(), note.stat().st_ino) == (b"edited in place\n", inode)
    assert names(note.parent) == ["lessons.md"]


def test_late_replacement_is_put_back(note: Path, race: list[object]) -> None:
    def saved() -> None:
        (note.parent / "theirs").write_bytes(b"saved by rename\n")
        (note.parent / "theirs").rename(note)

    race.append(saved)
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert note.read_bytes() == b"saved by rename\n"
    assert names(note.parent) == ["lessons.md"]


def test_link_put_in_place_late_is_put_back(note: Path, race: list[object]) -> None:
    def linked() -> None:
        note.unlink()
        note.symlink_to("elsewhere")

    race.append(linked)
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert os.readlink(note) == "elsewhere"
    assert names(note.parent) == ["lessons.md"]


def test_late_removal_is_not_undone(note: Path, race: list[object]) -> None:
    race.append(note.unlink)
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert names(note.parent) == []


def test_write_on_top_of_the_new_content_stays_the_earlier_is_handed_over(note: Path, race: list[object]) -> None:
    race += [lambda: note.write_bytes(b"first\n"), lambda: note.write_bytes(NEW + b"second\n")]
    done = replace_file(note, OLD, NEW)
    assert note.read_bytes() == NEW + b"second\n"
    assert done.late == b"first\n"
    assert names(note.parent) == ["lessons.md"]


def test_without_exchange_a_late_write_in_place_is_handed_over(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object, dir_fd: int) -> bool:
        note.write_bytes(b"edited in place\n")
        return False

    monkeypatch.setattr(files, "exchange", unsupported)
    done = replace_file(note, OLD, NEW)
    assert (note.read_bytes(), done.late) == (NEW, b"edited in place\n")
    assert names(note.parent) == ["lessons.md"]


def test_write_into_the_old_inode_is_seen_once_each(note: Path) -> None:
    with note.open("r+b", buffering=0) as editor:
        done = replace_file(note, OLD, NEW)
        assert done.kept is not None
        assert done.kept.late_bytes() is None
        editor.write(b"REF")
        assert done.kept.late_bytes() == b"REF:7\n"
        assert done.kept.late_bytes() == b"REF:7\n", "what was not accepted is told again"
        done.kept.accept(b"REF:7\n")
        assert done.kept.late_bytes() is None
        editor.truncate(0)
        assert done.kept.late_bytes() == b""
    done.kept.close()
    done.kept.close()
    assert note.read_bytes() == NEW


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


# --- temporaries ---------------------------------------------------------------------------------------------

STOPPED_WRITER = """
import os, sys, time
from kbd.store import files
real = files.exchange
def stop(one, other, *, dir_fd):
    if sys.argv[2] == "after":
        real(one, other, dir_fd=dir_fd)
    print("here", flush=True)
    time.sleep(60)
files.exchange = stop
files.replace_file(sys.argv[1], b"ref:7\\n", b"ref:8\\n")
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_temporary_of_a_killed_writer_is_swept_and_that_of_a_live_one_is_not(note: Path, moment: str) -> None:
    command = [sys.executable, "-c", STOPPED_WRITER, str(note), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert len(names(note.parent)) == 2
        assert sweep_temporaries(note.parent) == 0
        writer.send_signal(signal.SIGKILL)
    [left] = [name for name in names(note.parent) if name != "lessons.md"]
    assert left.startswith(".kbd-")
    assert sweep_temporaries(note.parent) == 1
    assert names(note.parent) == ["lessons.md"]
    assert note.read_bytes() == (NEW if moment == "after" else OLD)


def test_sweep_takes_nothing_but_its_own_kind(tmp_path: Path) -> None:
    own = ".kbd-" + "0" * 32 + ".tmp"
    others = [".kbd-mine.tmp", "kbd-" + "0" * 32 + ".tmp", own + "~", "lessons.md"]
    for name in [own, *others]:
        (tmp_path / name).write_bytes(b"")
    link = ".kbd-" + "1" * 32 + ".tmp"
    (tmp_path / link).symlink_to("lessons.md")
    os.mkfifo(tmp_path / (".kbd-" + "2" * 32 + ".tmp"))
    assert sweep_temporaries(tmp_path) == 1
    assert names(tmp_path) == sorted([link, ".kbd-" + "2" * 32 + ".tmp", *others])
    assert sweep_temporaries(tmp_path / "none") == 0


def test_no_write_of_an_agent_that_locks_nothing_is_undone(note: Path) -> None:
    rounds = 200
    note.write_bytes(b"kbd:0000\nagent:0000\n")
    agent = (
        "import os, re, sys\n"
        "path = sys.argv[1]\n"
        "for n in range(1, int(sys.argv[2]) + 1):\n"
        "    while True:\n"
        "        seen = os.stat(path).st_ino\n"
        "        text = open(path, 'rb').read()\n"
        "        new = re.sub(rb'agent:\\d+', b'agent:%04d' % n, text)\n"
        "        open(path + '.agent', 'wb').write(new)\n"
        "        if open(path, 'rb').read() == text:\n"
        "            os.rename(path + '.agent', path)\n"
        "            break\n"
    )
    with subprocess.Popen([sys.executable, "-c", agent, str(note), str(rounds)]) as other:
        for n in range(1, rounds + 1):
            written = False
            while not written:
                text = note.read_bytes()
                try:
                    replace_file(note, text, re.sub(rb"kbd:\d+", b"kbd:%04d" % n, text))
                    written = True
                except ChangedUnderneath:
                    written = False
        assert other.wait(timeout=30) == 0
    # The agent's rename may undo a write of kbd's; kbd's may undo none of the agent's.
    assert b"agent:%04d" % rounds in note.read_bytes()
    assert names(note.parent) == ["lessons.md"]


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
