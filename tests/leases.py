"""Whether the file system tells who has a file open for writing; where it does not, what rests on that is not asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbd.store.leases import is_being_written


def need_leases(folder: Path) -> None:
    """Skip the test where there are none (some sandboxes and network file systems)."""
    probe = folder / "lease-probe"
    probe.touch()
    fd = os.open(probe, os.O_RDONLY)
    told = is_being_written(fd)
    os.close(fd)
    probe.unlink()
    if told is None:
        pytest.skip("no leases on this file system")
