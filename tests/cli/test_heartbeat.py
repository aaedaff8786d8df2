"""The daemon's sign of life on disk."""

import os
from datetime import UTC, datetime

import pytest

from kbd.errors import FileUnreadable, FileUnwritable
from kbd.store.heartbeat import HEARTBEAT_NAME, Heartbeat, read_heartbeat, write_heartbeat

BEAT = Heartbeat(
    pid=12,
    since=datetime(2026, 6, 1, tzinfo=UTC),
    version="1",
    at=datetime(2026, 6, 2, 3, 4, 5, 6, tzinfo=UTC),
    watching="inotify",
    last_error="数据\x00",
    lag_bytes=7,
)


def test_what_was_written_is_read(tmp_path):
    write_heartbeat(tmp_path, BEAT)
    assert read_heartbeat(tmp_path) == BEAT


def test_without_a_heartbeat_there_is_none(tmp_path):
    assert read_heartbeat(tmp_path) is None


def test_a_new_heartbeat_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    write_heartbeat(tmp_path, BEAT)
    write_heartbeat(tmp_path, BEAT)
    assert os.listdir(tmp_path) == [HEARTBEAT_NAME]
    assert (tmp_path / HEARTBEAT_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}', "\udcff"])
def test_what_is_no_heartbeat_is_unreadable(tmp_path, text):
    (tmp_path / HEARTBEAT_NAME).write_text(text, errors="surrogateescape")
    with pytest.raises(FileUnreadable):
        read_heartbeat(tmp_path)


@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/etc/hostname"), lambda p: p.mkdir()])
def test_nothing_but_a_regular_file_is_read(tmp_path, make):
    make(tmp_path / HEARTBEAT_NAME)
    with pytest.raises(FileUnreadable):
        read_heartbeat(tmp_path)


def test_a_fifo_does_not_hang_the_reader(tmp_path):
    os.mkfifo(tmp_path / HEARTBEAT_NAME)
    with pytest.raises(FileUnreadable):
        read_heartbeat(tmp_path)


def test_a_state_directory_that_is_gone_is_said(tmp_path):
    with pytest.raises(FileUnwritable):
        write_heartbeat(tmp_path / "gone", BEAT)
