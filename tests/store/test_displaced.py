"""What is written into a file that kbd took the name from: it is found beside the file, as long as kbd lives."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath, FileUnwritable
from kbd.store import displaced
from kbd.store.descriptors import read_fd
from kbd.store.displaced import Displaced, KeptFile
from kbd.store.replacing import replace_file
from tests.leases import need_leases
from tests.store.desk import NEW, OLD, Watch, copies, names, saved_by_rename


def test_write_into_the_old_inode_is_seen_once_each(note: Path) -> None:
    kept = KeptFile(os.open(note, os.O_RDONLY), [OLD])
    with note.open("r+b", buffering=0) as editor:
        assert kept.late_bytes() is None
        editor.write(b"REF")
        assert kept.late_bytes() == b"REF:7\n"
        assert kept.late_bytes() == b"REF:7\n", "what was not saved is told again"
        kept.save_beside(str(note.parent / "other.md"), b"REF:7\n")
        assert kept.late_bytes() is None
        editor.truncate(0)
        assert kept.late_bytes() == b""
    kept.close()
    kept.close()


def test_late_write_is_saved_when_it_is_looked_at_and_told_once(note: Path, nameless: Displaced) -> None:
    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.write(b"REF")
        nameless.look()
    [told] = nameless.take_saved()
    assert (told.path, Path(told.copy).read_bytes()) == (str(note), b"REF:7\n")
    nameless.look()
    assert (nameless.take_saved(), len(copies(note.parent))) == ([], 1)


def test_inode_that_nobody_has_open_for_writing_is_soon_let_go(note: Path, nameless: Displaced, watch: Watch) -> None:
    need_leases(note.parent)
    with note.open("r+b") as editor:
        replace_file(note, OLD, NEW)
        assert editor.fileno() > 0
        watch.wait(60)
        nameless.look()
        assert len(nameless) == 1
    nameless.look()
    assert len(nameless) == 0


def test_inode_is_let_go_after_ten_minutes_where_nobody_tells_who_writes(
    note: Path, nameless: Displaced, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displaced, "is_being_written", lambda fd: None)
    replace_file(note, OLD, NEW)
    watch.wait(599)
    nameless.look()
    assert len(nameless) == 1
    watch.wait(2)
    nameless.look()
    assert len(nameless) == 0


def test_text_that_grows_for_hours_in_the_old_inode_is_one_copy(note: Path, nameless: Displaced, watch: Watch) -> None:
    need_leases(note.parent)
    with note.open("ab", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        for n in range(5):
            editor.write(b"line %d\n" % n)
            watch.wait(3600)
            nameless.look()
    told = nameless.take_saved()
    assert copies(note.parent) == [OLD + b"".join(b"line %d\n" % n for n in range(5))]
    assert {saved.copy for saved in told} == {str(note.parent / "lessons.kbd-conflict.md")}


def test_copy_that_a_person_merged_and_removed_or_edited_is_made_anew(note: Path, nameless: Displaced) -> None:
    copy = note.parent / "lessons.kbd-conflict.md"
    with note.open("ab", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.write(b"one\n")
        nameless.look()
        copy.write_bytes(b"half merged\n")
        editor.write(b"two\n")
        nameless.look()
    assert sorted(copies(note.parent)) == [b"half merged\n", OLD + b"one\ntwo\n"]


def test_text_without_words_and_text_that_the_file_has_need_no_copy(note: Path, nameless: Displaced) -> None:
    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.truncate(0)
        nameless.look()
        editor.write(b"saved twice\n")
        note.write_bytes(b"saved twice\n")
        nameless.look()
    assert (names(note.parent), nameless.take_saved()) == (["lessons.md"], [])


def test_file_that_was_put_aside_and_has_its_name_again_is_not_looked_at(
    note: Path, race: list[object], nameless: Displaced
) -> None:
    def put_aside() -> None:
        note.rename(note.parent / "aside")
        saved_by_rename(note, b"for a while\n")

    race.append(put_aside)
    with pytest.raises(ChangedUnderneath):
        replace_file(note, OLD, NEW)
    (note.parent / "aside").rename(note)
    note.write_bytes(b"an ordinary edit\n")
    nameless.look()
    assert (names(note.parent), note.read_bytes()) == (["lessons.md"], b"an ordinary edit\n")


def test_end_waits_a_while_for_an_editor_that_still_writes(note: Path, nameless: Displaced, watch: Watch) -> None:
    need_leases(note.parent)
    editor = note.open("r+b", buffering=0)

    def wait(seconds: float) -> None:
        watch.wait(seconds)
        if watch.seconds > 1 and not editor.closed:
            editor.write(b"REF")
            editor.close()

    nameless.wait = wait
    replace_file(note, OLD, NEW)
    assert nameless.finish() == []
    assert (copies(note.parent), watch.seconds < 1.2) == ([b"REF:7\n"], True)


def test_end_tells_which_files_are_still_open_for_writing(note: Path, nameless: Displaced, watch: Watch) -> None:
    need_leases(note.parent)
    with note.open("r+b"):
        replace_file(note, OLD, NEW)
        [(path, what)] = nameless.finish()
    assert (path, "is lost" in what) == (str(note), True)
    assert 5 <= watch.seconds < 5.2
    assert len(nameless) == 0


def test_end_tells_which_text_could_not_be_saved(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise FileUnwritable("No space left on device")

    monkeypatch.setattr(displaced, "save_conflict", full)
    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.write(b"REF")
    assert nameless.finish() == [(str(note), "an editor's late text cannot be saved: No space left on device")]


def test_inode_that_cannot_be_read_keeps_no_other_from_being_looked_at(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = note.parent / "other.md"
    other.write_bytes(OLD)
    broken: list[int] = []

    def read(fd: int, max_bytes: int) -> bytes:
        if os.fstat(fd).st_ino in broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read_fd(fd, max_bytes)

    monkeypatch.setattr(displaced, "read_fd", read)
    with note.open("r+b", buffering=0) as one, other.open("r+b", buffering=0) as two:
        for path in (note, other):
            replace_file(path, OLD, NEW)
        broken.append(os.fstat(one.fileno()).st_ino)
        one.write(b"one")
        two.write(b"two")
        nameless.look()
    assert (copies(note.parent), [path for path, _ in nameless.faults()]) == ([b"two:7\n"], [str(note)])
    broken.clear()
    nameless.look()
    assert (copies(note.parent), nameless.faults()) == ([b"one:7\n", b"two:7\n"], [])


def test_text_too_large_to_save_is_told_for_ten_minutes(
    note: Path, nameless: Displaced, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displaced, "MAX_BYTES", 10)
    with note.open("ab", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.write(b"far too much\n")
        nameless.look()
        assert [fault.what for _, fault in nameless.faults()] == ["larger than 10 bytes"]
        watch.wait(601)
        nameless.look()
        assert len(nameless) == 0


def test_text_that_cannot_be_saved_is_tried_again(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    def full(path: object, *_: object) -> str:
        raise FileUnwritable("No space left on device", where=str(path))

    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, NEW)
        editor.write(b"REF")
    with monkeypatch.context() as context:
        context.setattr(displaced, "save_conflict", full)
        watch.wait(1000)
        nameless.look()
        assert [path for path, _ in nameless.faults()] == [str(note)]
    assert copies(note.parent) == []
    nameless.look()
    assert (copies(note.parent), nameless.faults(), len(nameless)) == ([b"REF:7\n"], [], 0)


def test_open_inodes_are_bounded_and_the_oldest_gets_a_last_look(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displaced, "KEPT_MOST", 3)
    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, b"0\n")
        editor.write(b"REF")
        for n in range(12):
            replace_file(note, b"%d\n" % n, b"%d\n" % (n + 1))
    assert len(nameless) == 8
    assert copies(note.parent) == [b"REF:7\n"]


def test_text_that_cannot_be_saved_does_not_keep_other_inodes_open(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise FileUnwritable("No space left on device")

    monkeypatch.setattr(displaced, "KEPT_MOST", 3)
    monkeypatch.setattr(displaced, "save_conflict", full)
    with note.open("r+b", buffering=0) as editor:
        replace_file(note, OLD, b"0\n")
        editor.write(b"REF")
        for n in range(12):
            replace_file(note, b"%d\n" % n, b"%d\n" % (n + 1))
    assert (len(nameless), len(nameless.faults())) == (8, 1)


def test_few_inodes_stay_open_where_few_files_may_be(nameless: Displaced) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(128, before[1]), before[1]))
    try:
        assert displaced.most_open() == 32
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
