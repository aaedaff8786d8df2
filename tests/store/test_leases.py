"""Leases: kbd asks whoever has one on a file, and waits for it a little."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbd.errors import FileUnreadable
from kbd.store import descriptors, leases
from kbd.store.files import read_regular
from kbd.store.leases import has_writer, is_being_written, others_waiting
from tests.leases import need_leases
from tests.store.desk import OLD


@pytest.fixture
def leased(note: Path) -> Iterator[int]:
    """The file as a file server has it open that lends it to a client."""
    need_leases(note.parent)
    fd = os.open(note, os.O_RDWR)
    yield fd
    os.close(fd)


def test_file_that_a_file_server_has_lent_is_read_when_it_was_given_back(note: Path, leased: int) -> None:
    asked = threading.Event()
    before = signal.signal(signal.SIGURG, lambda *_: asked.set())
    try:
        with ThreadPoolExecutor(1) as pool:
            with others_waiting(leased):
                reading = pool.submit(read_regular, note, 100)
                assert asked.wait(30)
            assert reading.result(30) == OLD
    finally:
        signal.signal(signal.SIGURG, before)


def test_file_that_is_never_given_back_is_unreadable_and_hangs_nobody(
    note: Path, leased: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "_LEASE_POLLS", 2)
    with others_waiting(leased), pytest.raises(FileUnreadable, match="temporarily unavailable"):
        read_regular(note, 100)


def test_writer_is_known_and_a_reader_is_none(note: Path) -> None:
    need_leases(note.parent)
    with note.open("rb") as reader:
        assert (is_being_written(reader.fileno()), has_writer(note)) == (False, False)
        with note.open("ab"):
            assert (is_being_written(reader.fileno()), has_writer(note)) == (True, True)
    assert not has_writer(note.parent / "none.md")


def test_lease_that_is_not_given_says_nothing_on_a_network_file_system(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_leases(note.parent)
    asked: list[str] = []
    monkeypatch.setattr(leases, "network_file_system", lambda path: asked.append(path) or "nfs4")
    with note.open("rb") as reader, note.open("ab"):
        assert (is_being_written(reader.fileno()), has_writer(note)) == (None, False)
    assert asked == [str(note)] * 2
