"""What others write while a file is replaced, and after: nothing of it is lost, whoever is killed."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbd.errors import ChangedUnderneath, FileUnwritable
from kbd.store import displaced, replacing, sweeping
from kbd.store.displaced import Displaced, KeptFile
from kbd.store.replacing import replace_file
from kbd.store.sweeping import sweep_temporaries
from tests.leases import need_leases

OLD, NEW = b"ref:7\n", b"ref:8\n"


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "kb" / "lessons.md"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


# --- what others write meanwhile -----------------------------------------------------------------------------


class Watch:
    """A clock that goes when somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch, watch: Watch) -> Iterator[Displaced]:
    """The inodes that lose their names."""
    made = Displaced(watch, watch.wait)
    for module in (replacing, sweeping):
        monkeypatch.setattr(module, "DISPLACED", made)
    yield made
    monkeypatch.setattr(displaced, "LINGER_SECONDS", 0.0)
    made.finish()


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch, nameless: Displaced) -> list[object]:
    """Actions that others do right before each exchange of names, in order."""
    actions: list[object] = []
    exchange = replacing.exchange

    def racing(one: str, other: str, *, dir_fd: int) -> bool:
        action = actions.pop(0) if actions else None
        if callable(action):
            action()
        return exchange(one, other, dir_fd=dir_fd)

    monkeypatch.setattr(replacing, "exchange", racing)
    return actions


def copies(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.kbd-conflict.md"))]


def saved_by_rename(note: Path, text: bytes) -> None:
    (note.parent / "theirs").write_bytes(text)
    (note.parent / "theirs").rename(note)


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


def test_without_exchange_a_late_write_in_place_is_saved(
    note: Path, monkeypatch: pytest.MonkeyPatch, nameless: Displaced
) -> None:
    def unsupported(*_: object, dir_fd: int) -> bool:
        note.write_bytes(b"edited in place\n")
        return False

    monkeypatch.setattr(replacing, "exchange", unsupported)
    replace_file(note, OLD, NEW)
    assert (note.read_bytes(), copies(note.parent)) == (NEW, [b"edited in place\n"])


def test_write_into_the_old_inode_is_seen_once_each(note: Path) -> None:
    kept = KeptFile(os.open(note, os.O_RDONLY), [OLD])
    with note.open("r+b", buffering=0) as editor:
        assert kept.late_bytes() is None
        editor.write(b"REF")
        assert kept.late_bytes() == b"REF:7\n"
        assert kept.late_bytes() == b"REF:7\n", "what was not accepted is told again"
        kept.accept(b"REF:7\n")
        assert kept.late_bytes() is None
        editor.truncate(0)
        assert kept.late_bytes() == b""
    kept.close()
    kept.close()


# --- inodes without a name -----------------------------------------------------------------------------------


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


def test_inode_that_is_open_for_writing_is_let_go_after_ten_minutes(
    note: Path, nameless: Displaced, watch: Watch
) -> None:
    with note.open("r+b"):
        replace_file(note, OLD, NEW)
        watch.wait(599)
        nameless.look()
        assert len(nameless) == 1
        watch.wait(2)
        nameless.look()
        assert len(nameless) == 0


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
        assert nameless.finish() == [str(note)]
    assert 5 <= watch.seconds < 5.2
    assert len(nameless) == 0


def test_text_that_cannot_be_saved_is_tried_again(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    def full(path: object, data: object) -> str:
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


def test_few_inodes_stay_open_where_few_files_may_be(nameless: Displaced) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(128, before[1]), before[1]))
    try:
        assert displaced.most_open() == 32
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# --- temporaries ---------------------------------------------------------------------------------------------

STOPPED_WRITER = """
import os, sys, time
from kbd.store import displaced, files, replacing
real = replacing.exchange
def stop(one, other, *, dir_fd):
    if sys.argv[2] == "after":
        real(one, other, dir_fd=dir_fd)
    print("here", flush=True)
    time.sleep(60)
replacing.exchange = stop
replacing.replace_file(sys.argv[1], b"ref:7\\n", b"ref:8\\n")
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


@pytest.mark.parametrize("has_file", [True, False])
def test_text_that_came_out_of_an_exchange_when_the_writer_was_killed_is_kept(
    note: Path, nameless: Displaced, has_file: bool
) -> None:
    editing = STOPPED_WRITER.replace("    if", "    open(sys.argv[1], 'w').write('theirs')\n    if")
    command = [sys.executable, "-c", editing, str(note), "after"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    if not has_file:
        note.unlink()
    assert sweep_temporaries(note.parent) == 1
    [told] = nameless.take_saved()
    assert Path(told.copy).read_bytes() == b"theirs"
    expected = ["lessons.kbd-conflict.md", "lessons.md"] if has_file else ["recovered.kbd-conflict.md"]
    assert names(note.parent) == expected


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
