"""A ledger that is old, gone or damaged: numbers continue from the files, nothing counts twice, and status says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.killing import run
from tests.e2e.process import Kbd
from tests.e2e.world import World


class History:
    """A world in which kbd ran every day; what its ledger was on each of them."""

    def __init__(self, root: Path, seed: int, days: int) -> None:
        self.world = World(root / "world", seed, datetime.now(UTC).date())
        self.copies: list[Path] = []
        for i in range(days):
            self.world.next_day()
            self.day(actions=30 if i in (0, days // 2, days - 1) else 6)
            backup = self.world.state / "backups" / f"ledger-{self.world.today}.db"
            self.copies.append(shutil.copy(backup, root / f"day-{i}.db"))

    @property
    def ledger(self) -> Path:
        return self.world.state / "ledger.db"

    def day(self, actions: int) -> None:
        self.world.work(actions)
        self.world.settle()
        run(self.world)
        self.world.note_seen()

    def lose(self) -> None:
        for path in self.world.state.glob("ledger.db*"):
            path.unlink()

    def lose_all(self) -> None:
        self.lose()
        shutil.rmtree(self.world.state / "backups")

    def put_back(self, days_ago: int) -> None:
        self.lose()
        shutil.copy(self.copies[-1 - days_ago], self.ledger)

    def damage(self, data: Callable[[bytes], bytes]) -> None:
        whole = self.ledger.read_bytes()
        self.lose()
        self.ledger.write_bytes(data(whole))

    def faults(self) -> list[str]:
        """Compare with the oracle, the number of sessions aside.

        Where the file system tells no birth times, a copy that is found first after a loss holds what it copied.
        """
        wanted, counted, shown = self.world.oracle.numbers(), self.world.counted(), self.world.shown()
        faults = [
            f"{title}: ledger {counted.get(title)}, file {shown.get(title)}, oracle {number}"
            for title, number in wanted.items()
            if (c := counted.get(title)) is None
            or (c.ref, c.last, c.citations) != (number.ref, number.last, number.citations)
        ]
        return faults + self.world.markdown_faults(shown)


def recover(history: History) -> None:
    """Run kbd after the loss, then on the days after; the numbers must be the oracle's, and status loud."""
    world, before = history.world, history.world.shown()
    run(world)
    assert not (faults := history.faults()), "at once\n" + "\n".join(faults)
    assert world.shown() == before
    assert "ledger_restored" in Kbd(world).reasons()
    run(world)
    assert not (faults := history.faults()), "the second time\n" + "\n".join(faults)
    history.world.shared.past_days = 1  # a number that a file gave covers the days up to its `last`
    for _ in range(2):
        world.next_day()
        history.day(actions=25)
        assert not (faults := history.faults()), "later\n" + "\n".join(faults)


@pytest.mark.parametrize("days_ago", [1, 3, 30])
def test_backup_put_back_by_hand_counts_nothing_twice(days_ago: int, tmp_path: Path) -> None:
    history = History(tmp_path, days_ago, days_ago + 2)
    history.put_back(days_ago)
    recover(history)


@pytest.mark.parametrize("seed", [1, 2])
def test_lost_ledger_is_restored_from_the_newest_backup(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path, seed, 3)
    history.lose()
    recover(history)


@pytest.mark.parametrize("seed", [3, 4])
def test_lost_ledger_without_backups_continues_from_the_files(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path, seed, 3)
    history.lose_all()
    recover(history)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "cut inside a page": lambda data: data[: len(data) // 3 + 77],
    "all NULs": lambda data: bytes(len(data)),
    "a NUL-filled half": lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    "NULs at the head": lambda data: bytes(4096) + data[4096:],
    "text": lambda data: b"this is no database\n" * 400,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_ledger_is_set_aside_and_restored(damage: str, tmp_path: Path) -> None:
    history = History(tmp_path, len(damage), 2)
    history.damage(DAMAGES[damage])
    recover(history)
    assert list(history.world.state.glob("ledger.db.damaged-*"))


def test_damaged_backup_is_passed_over_for_an_older_one(tmp_path: Path) -> None:
    history = History(tmp_path, 7, 4)
    newest, older = sorted((history.world.state / "backups").iterdir(), reverse=True)[:2]
    newest.write_bytes(bytes(newest.stat().st_size))
    history.lose()
    recover(history)
    assert older.name in Kbd(history.world).reasons()["ledger_restored"]
