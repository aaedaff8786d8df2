"""What others write while a file is replaced: nothing of it is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath, FileUnwritable
from kbd.store import replacing
from kbd.store.descriptors import open_regular
from kbd.store.displaced import Displaced
from kbd.store.replacing import replace_file
from kbd.store.sweeping import sweep_temporaries
from tests.e2e.privileges import with_private_mounts
from tests.leases import need_leases
from tests.store.desk import NEW, OLD, copies, names, saved_by_rename, without_locks


def test_late_write_in_place_is_put_back(note: Path, race: list[object]) -> None:
    race.append(lambda: note.write_bytes(b"edited in place\n"))
    inode = note.stat().st_ino
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert (note.read_bytes(), note.stat().st_ino) == (b"edited in place\n", inode)
    assert names(note.parent) == ["lessons.md"]


def test_late_replacement_is_put_back(note: Path, race: list[object]) -> None:
    race.append(lambda: saved_by_rename(note, b"saved by rename\n"))
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


def test_write_on_top_of_the_new_content_stays_and_the_earlier_is_saved(note: Path, race: list[object]) -> None:
    race += [lambda: note.write_bytes(b"first\n"), lambda: note.write_bytes(NEW + b"second\n")]
    replace_file(note, OLD, NEW)
    assert note.read_bytes() == NEW + b"second\n"
    assert copies(note.parent) == [b"first\n"]
    assert names(note.parent) == ["lessons.kbd-conflict.md", "lessons.md"]


def test_editor_that_opened_the_new_file_before_it_was_taken_back_loses_nothing(
    note: Path, race: list[object], nameless: Displaced
) -> None:
    opened: list[int] = []
    race += [
        lambda: saved_by_rename(note, b"saved by rename\n"),
        lambda: opened.append(os.open(note, os.O_RDWR)),
    ]
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    os.pwrite(opened[0], b"written into the new file later\n", 0)
    os.close(opened[0])
    nameless.look()
    assert note.read_bytes() == b"saved by rename\n"
    assert copies(note.parent) == [b"written into the new file later\n"]


def test_each_text_saved_between_the_exchanges_is_kept(note: Path, race: list[object]) -> None:
    race += [lambda n=n: saved_by_rename(note, b"text %d\n" % n) for n in range(5)]  # type: ignore[misc]
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert note.read_bytes() == b"text 4\n"
    assert sorted(copies(note.parent)) == [b"text %d\n" % n for n in range(4)]
    assert [name for name in names(note.parent) if name.endswith(".tmp")] == []


def test_who_never_ceases_to_save_keeps_all_that_was_saved(note: Path, race: list[object]) -> None:
    race += [lambda n=n: saved_by_rename(note, b"text %d\n" % n) for n in range(20)]  # type: ignore[misc]
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    done = 20 - len(race)
    assert sorted({note.read_bytes(), *copies(note.parent)}) == sorted(b"text %d\n" % n for n in range(done))


def test_text_saved_before_the_name_was_removed_is_kept(note: Path, race: list[object]) -> None:
    race += [lambda: saved_by_rename(note, b"theirs\n"), note.unlink]
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert copies(note.parent) == [b"theirs\n"]
    assert names(note.parent) == ["lessons.kbd-conflict.md"]


def test_file_that_the_system_would_not_replace_is_not_looked_at_again(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, dir_fd: int) -> bool:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(replacing, "exchange", refused)
    with pytest.raises(FileUnwritable):
        replace_file(note, OLD, NEW)
    note.write_bytes(b"edited later\n")
    nameless.look()
    assert (names(note.parent), note.read_bytes()) == (["lessons.md"], b"edited later\n")


def test_same_text_saved_anew_at_the_last_instant_is_replaced_and_its_inode_looked_at(
    note: Path, race: list[object], nameless: Displaced
) -> None:
    race.append(lambda: saved_by_rename(note, OLD))
    replace_file(note, OLD, NEW)
    assert (note.read_bytes(), copies(note.parent), len(nameless)) == (NEW, [], 2)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EMFILE, errno.EIO])
def test_newer_text_that_cannot_be_read_gets_its_name_back(
    note: Path, race: list[object], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    unreadable: list[int] = []

    def opened(name: str, *, dir_fd: int) -> int:
        fd = open_regular(name, dir_fd=dir_fd)
        if os.fstat(fd).st_ino in unreadable:
            os.close(fd)
            raise OSError(code, os.strerror(code), name)
        return fd

    def saved_by_root() -> None:
        saved_by_rename(note, b"root's\n")
        unreadable.append(note.stat().st_ino)

    monkeypatch.setattr(replacing, "open_regular", opened)
    race.append(saved_by_root)
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert (note.read_bytes(), names(note.parent)) == (b"root's\n", ["lessons.md"])


def test_file_that_another_program_has_locked_is_left_to_it(note: Path, nameless: Displaced) -> None:
    with note.open("r+b", buffering=0) as agent:
        fcntl.flock(agent, fcntl.LOCK_EX)
        with pytest.raises(ChangedUnderneath, match="locked"):
            replace_file(note, OLD, NEW)
        agent.write(b"REF")
    assert (note.read_bytes(), names(note.parent), len(nameless)) == (b"REF:7\n", ["lessons.md"], 0)
    replace_file(note, b"REF:7\n", NEW)
    assert note.read_bytes() == NEW


def test_file_is_replaced_where_files_cannot_be_locked(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    replace_file(note, OLD, NEW)
    assert (note.read_bytes(), names(note.parent)) == (NEW, ["lessons.md"])


def test_text_is_kept_when_kbd_is_interrupted_before_it_looked_at_it(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = replacing.exchange

    def interrupted(one: str, other: str, *, dir_fd: int) -> bool:
        saved_by_rename(note, b"saved by rename\n")
        exchange(one, other, dir_fd=dir_fd)
        raise KeyboardInterrupt

    monkeypatch.setattr(replacing, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(note, OLD, NEW)
    sweep_temporaries(note.parent)
    assert (note.read_bytes(), copies(note.parent)) == (NEW, [b"saved by rename\n"])


def test_unreadable_text_whose_name_was_taken_again_is_not_removed(
    note: Path, race: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable: list[int] = []

    def opened(name: str, *, dir_fd: int) -> int:
        fd = open_regular(name, dir_fd=dir_fd)
        if os.fstat(fd).st_ino in unreadable:
            os.close(fd)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return fd

    def saved_by_root() -> None:
        saved_by_rename(note, b"root's\n")
        unreadable.append(note.stat().st_ino)

    monkeypatch.setattr(replacing, "open_regular", opened)
    race += [saved_by_root, note.unlink]
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert [path.read_bytes() for path in note.parent.iterdir()] == [b"root's\n"]


def test_temporary_that_was_swept_in_the_midst_of_an_exchange_is_no_reason_to_write_twice(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = replacing.exchange

    def swept(one: str, other: str, *, dir_fd: int) -> bool:
        done = exchange(one, other, dir_fd=dir_fd)
        (note.parent / one).unlink()
        return done

    monkeypatch.setattr(replacing, "exchange", swept)
    replace_file(note, OLD, NEW)
    assert (note.read_bytes(), names(note.parent)) == (NEW, ["lessons.md"])


def test_file_that_is_mounted_on_its_own_is_written_in_place(note: Path, tmp_path: Path) -> None:
    def body() -> None:
        subprocess.run(["mount", "--bind", str(note), str(note)], check=True)
        inode = note.stat().st_ino
        replace_file(note, OLD, NEW)
        assert (note.read_bytes(), note.stat().st_ino, names(note.parent)) == (NEW, inode, ["lessons.md"])

    with_private_mounts(body, tmp_path / "log")


def test_file_written_in_place_waits_for_whoever_has_it_open_for_writing(note: Path) -> None:
    need_leases(note.parent)
    os.link(note, note.parent / "twin.md")
    with note.open("ab"), pytest.raises(ChangedUnderneath, match="open for writing"):
        replace_file(note, OLD, NEW)
    assert note.read_bytes() == OLD
    replace_file(note, OLD, NEW)
    assert note.read_bytes() == NEW


def test_who_opens_a_file_while_it_is_written_in_place_waits_and_adds_to_the_new_text(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_leases(note.parent)
    os.link(note, note.parent / "twin.md")
    step_mtime = replacing.step_mtime
    append = "import sys; print('here', flush=True); open(sys.argv[1], 'ab').write(b'appended\\n')"
    others: list[subprocess.Popen[bytes]] = []

    def appending(fd: int, before_ns: int) -> None:
        other = subprocess.Popen([sys.executable, "-c", append, str(note)], stdout=subprocess.PIPE)
        assert other.stdout is not None
        others.append(other)
        other.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=0.3)
        os.ftruncate(fd, len(NEW))
        step_mtime(fd, before_ns)

    monkeypatch.setattr(replacing, "step_mtime", appending)
    replace_file(note, OLD, NEW)
    assert others[0].wait(timeout=30) == 0
    others[0].communicate()
    assert note.read_bytes() == NEW + b"appended\n"


def test_file_replaced_while_it_is_written_in_place_is_not_told_as_written(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(note, note.parent / "twin.md")
    monkeypatch.setattr(replacing, "step_mtime", lambda *_: saved_by_rename(note, b"saved by rename\n"))
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    assert note.read_bytes() == b"saved by rename\n"


def test_without_exchange_a_late_write_in_place_is_saved(
    note: Path, monkeypatch: pytest.MonkeyPatch, nameless: Displaced
) -> None:
    def unsupported(*_: object, dir_fd: int) -> bool:
        note.write_bytes(b"edited in place\n")
        return False

    monkeypatch.setattr(replacing, "exchange", unsupported)
    replace_file(note, OLD, NEW)
    assert (note.read_bytes(), copies(note.parent)) == (NEW, [b"edited in place\n"])


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
    # What the agent replaced in the middle of an exchange is kept as well.
    assert [name for name in names(note.parent) if ".kbd-conflict" not in name] == ["lessons.md"]


@pytest.mark.parametrize("links", [1, 2])
def test_git_that_begins_to_work_at_the_last_instant_is_left_alone(
    note: Path, links: int, monkeypatch: pytest.MonkeyPatch, nameless: Displaced
) -> None:
    subprocess.run(["git", "init", "-q", str(note.parent)], check=True)
    if links == 2:
        os.link(note, note.parent / "twin.md")
    lock, slow = note.parent / ".git" / "index.lock", replacing.temporary

    def temporary(*args: object, **options: object) -> object:
        lock.touch()
        return slow(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(replacing, "temporary", temporary)
    monkeypatch.setattr(os.path, "commonprefix", lambda texts: (lock.touch(), "")[1])
    with pytest.raises(ChangedUnderneath, match="git began to work"):
        replace_file(note, OLD, NEW)
    assert note.read_bytes() == OLD
    assert [name for name in names(note.parent) if "kbd" in name] == []
