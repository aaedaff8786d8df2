"""A pass worth interrupting: counters of all files, blocks on their way to the archive and back, new relations."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.killing import run
from tests.e2e.world import World

FADING = (
    "decay: {grace_days: 0, dormant_days: 2, archive_days: 4, dwell_days: 1, change_fraction: 1.0, change_min: 50}\n"
)
MEMORY = Path("/dev/shm")


@contextmanager
def folder() -> Iterator[Path]:
    """Hold a folder in memory where there is one: a campaign syncs some hundred thousand times."""
    with tempfile.TemporaryDirectory(prefix="kbd-torture-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def lines_of(world: World) -> Counter[bytes]:
    """Return what people wrote into the knowledge files, archives included, line by line."""
    lines = (line.strip() for text in world.prose().values() for line in text.splitlines())
    return Counter(line for line in lines if line)


class Scenario:
    """A world before the pass, which can be laid out again and again.

    Transcripts stay as they are: kbd never writes them, and logs without times are known by their inodes.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.world = World(root / "world", seed, datetime.now(UTC).date(), FADING)
        self.aside = root / "aside"
        for _ in range(6):
            self.world.work(3)
            self.world.settle()
            run(self.world)
            self.world.note_seen()
            self.world.next_day()
        self.world.work(14)
        self.world.settle()
        for name in ("state", "kb"):
            shutil.copytree(self.world.root / name, self.aside / name)
        self.lines = lines_of(self.world)

    def lay_out(self) -> None:
        """Bring state and knowledge back to what they were before the pass."""
        for name in ("state", "kb"):
            shutil.rmtree(self.world.root / name)
            shutil.copytree(self.aside / name, self.world.root / name)

    def lost(self) -> list[str]:
        """Return the lines of people that are gone."""
        return [f"lost: {line!r}" for line in self.lines - lines_of(self.world)]

    def faults(self) -> list[str]:
        """Return what is wrong once a pass has ended well."""
        return self.lost() + self.world.faults()
