"""Temporaries of killed writers go, and what a person had saved when they were killed stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kbd.store.displaced import Displaced
from kbd.store.sweeping import sweep_state, sweep_temporaries
from kbd.store.temporary import content_mark, target_mark
from tests.store.desk import NEW, OLD, names, without_locks

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


def planted(note: Path, target: str, text: bytes) -> Path:
    """Leave what a writer leaves who was killed after a person's text had come out of an exchange."""
    left = note.parent / f".kbd-{'0' * 16}-{target_mark(target)}-{content_mark(OLD)}-{content_mark(NEW)}.tmp"
    left.write_bytes(text)
    left.chmod(0o600)
    return left


def test_rescued_text_keeps_its_own_mode(note: Path, nameless: Displaced) -> None:
    note.chmod(0o644)
    planted(note, "lessons.md", b"theirs")
    assert sweep_temporaries(note.parent) == 1
    [told] = nameless.take_saved()
    assert os.stat(told.copy).st_mode & 0o777 == 0o600


def test_text_that_stands_in_the_file_again_gets_no_copy(note: Path, nameless: Displaced) -> None:
    planted(note, "lessons.md", b"theirs")
    note.write_bytes(b"theirs")
    assert (sweep_temporaries(note.parent), names(note.parent), nameless.take_saved()) == (1, ["lessons.md"], [])


@pytest.mark.parametrize("target", ["folder", "\udcff.md"])
def test_name_that_no_knowledge_file_can_have_hinders_no_sweep(note: Path, nameless: Displaced, target: str) -> None:
    if target == "folder":
        (note.parent / target).mkdir()
    else:
        (note.parent / target).touch()
    planted(note, target, b"theirs")
    assert sweep_temporaries(note.parent) == 1
    [told] = nameless.take_saved()
    assert Path(told.copy).read_bytes() == b"theirs"
    told.copy.encode()


def test_sweep_goes_on_where_files_cannot_be_locked(
    note: Path, nameless: Displaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    planted(note, "lessons.md", b"theirs")
    assert sweep_temporaries(note.parent) == 1
    assert [Path(told.copy).read_bytes() for told in nameless.take_saved()] == [b"theirs"]


def test_copy_of_a_store_that_a_killed_daemon_left_in_its_state_is_removed(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        left = Path(tempfile.mkdtemp(prefix="kbd-"))
    (left / "copy.db").write_bytes(b"words")
    (tmp_path / "kbd.log").touch()
    (tmp_path / "kbd-elsewhr").symlink_to(tmp_path)
    assert sweep_state(tmp_path) == 1
    assert sorted(os.listdir(tmp_path)) == ["kbd-elsewhr", "kbd.log"]
