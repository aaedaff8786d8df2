"""A ledger that went back in time while transcripts were deleted, rotated, packed and brought back: no number moves."""

from __future__ import annotations

import gzip
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.e2e.killing import run
from tests.e2e.process import Kbd
from tests.e2e.test_restore import History
from tests.e2e.world import Shown, World


def tidy_up(world: World, draw: random.Random, trash: Path) -> list[tuple[Path, Path]]:
    """Do to transcripts what agents and log rotation do; return where each deleted one is kept, and where it was."""
    deleted = []
    for number, path in enumerate(
        sorted([*(world.root / "claude").rglob("*.jsonl"), *world.logs.folder.glob("*.log")])
    ):
        how = draw.choice(("keep", "delete", "delete", "cut", "rotate", "pack", "rewrite"))
        if how == "delete":
            deleted.append((trash / str(number), path))
            shutil.move(path, trash / str(number))
        elif how == "cut" and path.suffix == ".jsonl":
            data = path.read_bytes()
            os.truncate(path, data.rfind(b"\n", 0, max(len(data) // 2, 1)) + 1)
        elif how == "rotate" and path.suffix == ".log":
            path.rename(path.with_name(path.name + ".1"))
        elif how == "pack" and path.suffix == ".log":
            packed, seen = path.with_name(path.name + ".1.gz"), path.stat()
            packed.write_bytes(gzip.compress(path.read_bytes()))
            os.utime(packed, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            path.unlink()
        elif how == "rewrite":
            copy = shutil.copy2(path, path.with_name("copy.tmp"))
            os.replace(copy, path)
    return deleted


def no_number_moves(root: Path, seed: int, days_ago: int, loss: str) -> None:
    history = History(root, seed, days_ago + 2)
    world, trash = history.world, root / "trash"
    trash.mkdir()
    before = world.shown()
    deleted = tidy_up(world, random.Random(seed), trash)
    history.put_back(days_ago) if loss == "put back" else history.lose() if loss == "lost" else history.lose_all()
    for _ in range(2):
        run(world)
        assert not moved(before, world.shown())
    assert "ledger_restored" in Kbd(world).reasons()
    world.next_day()
    for kept, path in deleted:
        if loss == "lost with its backups" and path.suffix == ".log":
            continue  # nobody knows any more that its lines, which carry no time, were ever read
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(kept, path)
    run(world)
    assert not moved(before, world.shown()), "those that came back count once more"


def moved(before: dict[str, Shown], after: dict[str, Shown]) -> list[str]:
    return [f"{title}: {one}, now {after.get(title)}" for title, one in before.items() if after.get(title) != one]


@pytest.mark.parametrize("loss", ["put back", "lost", "lost with its backups"])
def test_transcripts_that_went_while_the_ledger_did_move_no_number(tmp_path: Path, loss: str) -> None:
    no_number_moves(tmp_path, 11, 3, loss)


@pytest.mark.torture
@pytest.mark.parametrize("days_ago", [1, 3, 30])
@pytest.mark.parametrize("seed", range(20, 26))
def test_transcripts_that_went_while_the_ledger_did_move_no_number_ever(
    tmp_path: Path, seed: int, days_ago: int
) -> None:
    no_number_moves(tmp_path, seed, days_ago, ("put back", "lost", "lost with its backups")[seed % 3])
