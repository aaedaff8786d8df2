"""Network file systems, by real mounts of their kind: no ledger lies on one, and folders on one are polled."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e import fuse
from tests.e2e.privileges import with_private_mounts
from tests.e2e.process import Kbd
from tests.e2e.test_watching import OFTEN_SCANNED, watching
from tests.e2e.world import World

pytestmark = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no FUSE, so no mount of a network's kind"
)


def test_ledger_on_a_network_file_system_is_refused_by_what_writes_it(tmp_path: Path) -> None:
    def body() -> None:
        world = World(tmp_path / "world", 71, datetime.now(UTC).date())
        kbd, prose = Kbd(world), world.prose()
        world.state.mkdir(mode=0o700)
        fuse.mount(world.state, "fuse.sshfs")
        for command in (["run"], ["run", "--once"], ["rescan"], ["add", "a title of enough words"]):
            done = kbd(*command)
            assert done.returncode == 2, (command, done.stderr)
            assert str(world.state) in done.stderr
            assert "network file system (fuse.sshfs)" in done.stderr
            assert "--state-dir" in done.stderr
        assert world.prose() == prose
        assert "network file system" in kbd("doctor").stdout

    with_private_mounts(body, tmp_path / "failure.txt")


def test_source_on_a_network_file_system_is_polled_and_the_rest_is_watched(tmp_path: Path) -> None:
    def body() -> None:
        world = World(tmp_path / "world", 72, datetime.now(UTC).date(), OFTEN_SCANNED)
        kbd = Kbd(world)
        config = world.root / "config.yaml"
        far = world.root / "far"
        far.mkdir()
        fuse.mount(far, "fuse.sshfs")
        text = config.read_text().replace("sources:\n", f"sources:\n  - {{name: far, path: {far}, format: text}}\n")
        config.write_text(text)
        with kbd.daemon() as daemon:
            world.work(10)
            world.settle()
            daemon.until((world.state / "heartbeat.json").exists)
            daemon.until(lambda: not world.faults(), lambda: "\n".join(world.faults()))
            assert "network file system (fuse.sshfs)" in kbd.reasons()["watch_degraded"]
            assert watching(kbd).startswith("polling: ")

    with_private_mounts(body, tmp_path / "failure.txt")
