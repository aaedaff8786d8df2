"""Floods of files: none is missed when events are lost, memory stays bounded, and idling costs next to nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.process import Daemon, Kbd
from tests.e2e.test_watching import RARELY_SCANNED, watching
from tests.e2e.world import World
from tests.torture.crowd import make_crowd, peak_mib
from tests.torture.record import note

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory and processor time are read from /proc"),
]
PATIENCE_SECONDS = 7200.0
MOST_MIB = 150
"""For a daemon, however many files it knows."""
IDLE_SECONDS = 30.0
REST_SECONDS = 3.0


def make_world(tmp_path: Path, seed: int) -> World:
    return World(tmp_path / "world", seed, datetime.now(UTC).date(), RARELY_SCANNED)


def until_counted(daemon: Daemon, world: World) -> float:
    """Wait until ledger and files are what the oracle says; return the seconds."""
    began = time.monotonic()
    daemon.until((world.state / "heartbeat.json").exists)
    daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()), PATIENCE_SECONDS)
    return time.monotonic() - began


def test_events_lost_while_the_daemon_was_stopped_cost_no_citation(tmp_path: Path) -> None:
    world = make_world(tmp_path, 41)
    kbd, projects = Kbd(world), world.root / "claude" / "projects"
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with kbd.daemon() as daemon:
        until_counted(daemon, world)
        daemon.process.send_signal(signal.SIGSTOP)
        for i in range(max(20_000, queue + 4000)):
            (projects / f"n{i}.txt").touch()  # of no interest, so that only their number tells that something was lost
        world.work(60)  # in new folders, too
        world.settle()
        daemon.process.send_signal(signal.SIGCONT)
        seconds = until_counted(daemon, world)
        daemon.until(lambda: "events were lost" in watching(kbd), lambda: watching(kbd))
    note("overflow", files=max(20_000, queue + 4000), seconds=round(seconds, 1), lost_bytes=0, wrong_counts=0)


def idle_share(daemon: Daemon) -> float:
    """Return the part of a core that the daemon uses while nothing happens, once it has looked at all that did."""
    while True:
        began, used = time.monotonic(), daemon.cpu_seconds()
        daemon.until(lambda began=began: time.monotonic() - began > REST_SECONDS)
        if daemon.cpu_seconds() - used < 0.02:
            break
    began, used = time.monotonic(), daemon.cpu_seconds()
    daemon.until(lambda: time.monotonic() - began > IDLE_SECONDS, patience_seconds=IDLE_SECONDS + 30)
    return (daemon.cpu_seconds() - used) / (time.monotonic() - began)


def flood(world: World, files: int, citing_every: int, name: str) -> None:
    """Let files appear beside a running daemon; note what it took."""
    kbd = Kbd(world)
    with kbd.daemon() as daemon:
        until_counted(daemon, world)
        make_crowd(world, files, citing_every)
        seconds, used = until_counted(daemon, world), daemon.cpu_seconds()
        share, peak = idle_share(daemon), peak_mib(daemon.process.pid)
        status = kbd.json("status")
        assert sum(s["records"] for s in status["sources"]) == files
        assert not [r for r in status["reasons"] if r["code"] != "watch_degraded"], status["reasons"]
    assert not world.faults()
    assert peak < MOST_MIB, f"{peak:.0f} MiB"
    note(
        name,
        files=files,
        seconds=round(seconds),
        processor_seconds=round(used),
        peak_mib=round(peak),
        idle_percent=round(share * 100, 2),
        wrong_counts=0,
    )


def test_a_hundred_thousand_small_files_are_all_found_in_bounded_memory(tmp_path: Path) -> None:
    flood(make_world(tmp_path, 42), 100_000, 10, "crowd")


@pytest.mark.skipif("KBD_MILLION" not in os.environ, reason="takes 4 GB of disk and half an hour: KBD_MILLION=1")
def test_a_million_small_files_are_all_found_in_bounded_memory(tmp_path: Path) -> None:
    flood(make_world(tmp_path, 43), 1_000_000, 100, "million")
