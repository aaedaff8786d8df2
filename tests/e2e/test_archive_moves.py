"""The archive move under SIGKILL: before and after each of its steps, the block is whole once another pass has run.

A child process runs a pass and kills itself at the k-th step, as a power cut would; this process then runs the next
pass and compares with a move that nothing disturbed, byte for byte.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from kbd.service import moves
from kbd.store.ledger import Ledger, lessons
from tests.service.life import Life, entry

DAY = timedelta(days=1)
START = date(2026, 1, 1)
FALLS = START + 31 * DAY
TITLE = "Lock fd leaked on exception path"
NEIGHBOURS = "# Lessons\r\n\r\n## Net\r\n\r\n- **Timeouts add up along the way**: sum them (2025-12-30)\r\n"
BLOCK = (
    f"- [pitfall] **{TITLE}** — close it in finally \t \r\n  with a second line,\r\n\r\n  and a third (2025-01-01)\r\n"
    "  <!-- ref:2 | last:2025-05-01 | decay:active | source:manual -->\r\n"
)
AFTER = "\r\n## Build\r\n\r\n- **Build cache must be warm**: fill it (2025-12-30)\r\n"
MOST_STEPS = 60


@contextmanager
def killed_at(step: int, *, before: bool) -> Iterator[None]:
    """Kill this process at the step-th call that changes or reads something during a move."""
    count = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            mine = count
            if mine == step and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **kwargs)
            if mine == step and not before:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in ("create_file", "replace_file", "describe"):
            patch.setattr(moves, name, counted(getattr(moves, name)))
        for name in ("confirm_written", "update_entry", "add_pair"):
            patch.setattr(lessons, name, counted(getattr(lessons, name)))
        patch.setattr(Ledger, "transaction", counted(Ledger.transaction))
        original = moves.Mover.settle
        patch.setattr(moves.Mover, "settle", lambda *args: [_reset(), original(*args)][1])

        def _reset() -> None:
            nonlocal count
            count = 0

        yield


def dies(life: Life, day: date, step: int, *, before: bool) -> bool:
    """Run a pass in a child that kills itself at a step; False if it ended before that step."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with killed_at(step, before=before):
                life.lived(day)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def laid(root: Path) -> Life:
    """Return a base with one dormant entry that the next pass archives."""
    root.mkdir()
    life = Life(root)
    life.live.write_bytes((NEIGHBOURS + BLOCK + AFTER).encode())
    life.lived(START)
    life.lived(START + DAY)
    life.close()
    return life


def woken(root: Path) -> Life:
    """Return a base with one archived entry that the next pass brings back."""
    life = laid(root)
    life.lived(FALLS)
    life.close()
    life.says(FALLS + DAY, f"again the {TITLE} bug")
    return life


def snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def put_back(root: Path, files: dict[Path, bytes]) -> None:
    for path in [path for path in root.rglob("*") if path.is_file() and path not in files]:
        path.unlink()
    for path, data in files.items():
        path.write_bytes(data)


def outcome(life: Life) -> tuple[bytes, bytes, dict[str, tuple[str, int, str, str | None]]]:
    rows = {t: (r.state.value, r.ref, Path(r.file).name, r.moving) for t, r in life.rows().items()}
    return life.live.read_bytes(), life.archive.read_bytes(), rows


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("lay, day", [(laid, FALLS), (woken, FALLS + DAY)], ids=["archive", "restore"])
def test_block_is_whole_once_after_a_kill_at_any_step(
    lay: Callable[[Path], Life], day: date, before: bool, tmp_path: Path
) -> None:
    life = lay(tmp_path / "life")
    life.works_until(day)
    start = snapshot(life.root)
    life.lived(day)
    life.close()
    expected = outcome(life)
    assert sum(data.count(TITLE.encode()) for data in expected[:2]) == 1
    kills = 0
    for step in range(1, MOST_STEPS):
        put_back(life.root, start)
        died = dies(life, day, step, before=before)
        life.lived(day)
        life.close()
        assert outcome(life) == expected, f"killed at step {step}"
        if not died:
            break
        kills += 1
    assert kills >= 10, "the move has fewer steps than it should"
    assert kills < MOST_STEPS - 1


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("close it in finally", "close it at once"),
        ("close it in finally", "Close it in `finally`"),  # alike once normalised
        ("  and a third (2025-01-01)\r\n", "  and a third (2025-01-02)\r\n"),
        ("  and a third", "  <!-- ask the net team -->\r\n  and a third"),
        ("[pitfall]", "[model]"),
        ("source:manual", "source:agent"),
    ],
)
def test_words_changed_between_crash_and_next_pass_keep_the_live_block(tmp_path: Path, was: str, now: str) -> None:
    life = laid(tmp_path / "life")
    life.works_until(FALLS)
    start = snapshot(life.root)
    for step in range(1, MOST_STEPS):
        put_back(life.root, start)
        assert dies(life, FALLS, step, before=True)
        if life.archive.exists() and TITLE in life.live.read_text():
            break
    life.live.write_bytes(life.live.read_bytes().replace(was.encode(), now.encode()))
    report = life.lived(FALLS)
    life.close()
    assert "move_conflict" in {problem.code for problem in report.problems}
    assert now.encode() in life.live.read_bytes()
    assert was.encode() in life.archive.read_bytes()
    assert life.rows()[TITLE].state.value == "dormant"
    assert life.rows()[TITLE].file == str(life.live)


def test_of_two_equal_entries_none_is_taken_for_the_copy_of_the_other(tmp_path: Path) -> None:
    root = tmp_path / "life"
    root.mkdir()
    life = Life(root)
    same = entry("Same title and same words here", "2025-01-01", comment="ref:0 | last:none | decay:dormant")
    life.live.write_text(same + same)
    life.lived(START)
    life.lived(START + DAY)
    life.close()
    assert life.archive.read_text().count("Same title") == 2
    assert life.live.read_text() == ""
