"""Two kbds on one base: one transcript tree seen twice lets one of them rest, separate trees add up when shared."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbd.config import load_config
from kbd.engine import Clock, Engine, PassReport
from kbd.store import writers
from tests.service.life import entry

TITLE = "Lock fd leaked on exception path"
TODAY = date(2026, 1, 2)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CONFIG = """\
bases:
  - {{name: lessons, files: ["{root}/kb/*.md"], relations: "{root}/kb/.knowledge-graph.yaml"}}
sources:
  - {{name: logs, path: "{logs}", format: text}}
{more}
"""
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Host:
    """One kbd with its own state directory; the base is shared."""

    def __init__(self, root: Path, name: str, logs: Path, more: str = "") -> None:
        self.root, self.state = root, root / name
        self.state.mkdir(mode=0o700)
        self.config = root / f"{name}.yaml"
        self.config.write_text(CONFIG.format(root=root, logs=logs, more=more))

    def run(self, at: datetime) -> PassReport:
        engine = Engine(load_config(self.config), self.state, {}, str(self.root), at)
        try:
            return engine.run_pass(Clock(at, at.timestamp(), UTC), immediate=True)
        finally:
            engine.close()

    def codes(self, at: datetime) -> set[str]:
        return {problem.code for problem in self.run(at).problems}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("kb", "logs", "logs-b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kb" / "lessons.md").write_text(entry(TITLE, "2025-12-30", comment="ref:2 | decay:active"))
    return tmp_path


def says(folder: Path, day: date, session: str) -> None:
    with (folder / f"{session}.log").open("a") as log:
        log.write(f"{day} 10:00 the lesson {TITLE} helped\n\n")


def text(root: Path) -> str:
    return (root / "kb" / "lessons.md").read_text()


def test_one_transcript_tree_seen_twice_counts_once_and_the_second_does_not_write(root: Path) -> None:
    a, b = Host(root, "a", root / "logs"), Host(root, "b", root / "logs")
    says(root / "logs", TODAY, "s1")
    assert a.codes(NOON) == set()
    assert "ref:3 |" in text(root)
    assert "two_writers" in b.codes(NOON + MINUTE)
    for i in range(2, 6):
        says(root / "logs", TODAY, f"s{i}")
        at = NOON + 5 * i * MINUTE
        assert "two_writers" in b.codes(at)
        assert "two_writers" not in a.codes(at + MINUTE)
        assert f"ref:{2 + i} |" in text(root)
    assert "two_writers" in b.codes(NOON + 32 * MINUTE)


def test_second_kbd_takes_over_what_the_first_left_and_nothing_counts_twice(root: Path) -> None:
    a, b = Host(root, "a", root / "logs"), Host(root, "b", root / "logs")
    says(root / "logs", TODAY, "s1")
    a.run(NOON)
    b.run(NOON + MINUTE)
    says(root / "logs", TODAY + DAY, "s2")
    later = NOON + DAY
    assert b.codes(later) == set()
    assert "ref:4 |" in text(root)
    assert "two_writers" in a.codes(later + MINUTE)
    assert "ref:4 |" in text(root)
    says(root / "logs", TODAY + 2 * DAY, "s3")
    a.run(NOON + 2 * DAY)
    assert "ref:5 |" in text(root)
    b.run(NOON + 2 * DAY + MINUTE)
    assert "ref:5 |" in text(root)


def test_separate_trees_add_up_when_shared(root: Path) -> None:
    shared = "write: {shared: true}"
    a, b = Host(root, "a", root / "logs", shared), Host(root, "b", root / "logs-b", shared)
    a.run(NOON)
    b.run(NOON + MINUTE)
    for i in range(1, 5):
        says(root / "logs", TODAY, f"a{i}")
        says(root / "logs-b", TODAY, f"b{i}")
        at = NOON + 2 * i * MINUTE
        assert a.codes(at) == set()
        assert b.codes(at + MINUTE) == set()
        assert f"ref:{2 + 2 * i} |" in text(root)
    a.run(NOON + 20 * MINUTE)
    assert "ref:10 |" in text(root)
    names = json.loads((root / "kb" / ".kbd-writer").read_text())["writers"]
    assert len(names) == 2


def test_nothing_is_stamped_while_nothing_is_written_and_seldom_otherwise(root: Path) -> None:
    a = Host(root, "a", root / "logs")
    path = root / "kb" / ".kbd-writer"
    (root / "kb" / "lessons.md").write_text(entry(TITLE, "2025-12-30"))
    a.run(NOON)
    assert not path.exists()
    says(root / "logs", TODAY, "s1")
    a.run(NOON + MINUTE)
    first = path.read_bytes(), path.stat().st_ino
    for i in range(2, 10):
        a.run(NOON + i * MINUTE)
    assert (path.read_bytes(), path.stat().st_ino) == first
    a.run(NOON + 12 * MINUTE)
    assert path.read_bytes() != first[0]


def test_ledger_made_anew_in_the_same_place_is_the_same_writer(root: Path) -> None:
    a = Host(root, "a", root / "logs")
    says(root / "logs", TODAY, "s1")
    a.run(NOON)
    for path in sorted(a.state.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    says(root / "logs", TODAY + timedelta(days=1), "s2")
    assert "two_writers" not in a.codes(NOON + timedelta(days=1))
    assert "ref:4 |" in text(root)


def test_damaged_file_stops_writing_until_it_is_old(root: Path) -> None:
    a = Host(root, "a", root / "logs")
    says(root / "logs", TODAY, "s1")
    path = root / "kb" / ".kbd-writer"
    path.write_bytes(b"\xff\0 nothing that kbd writes")
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    before = text(root)
    assert "two_writers" in a.codes(at + MINUTE)
    assert text(root) == before
    assert "two_writers" not in a.codes(at + 31 * MINUTE)
    assert "ref:3 |" in text(root)


def test_clock_of_another_host_that_runs_behind_or_ahead_is_alive_as_long_as_it_moves(tmp_path: Path) -> None:
    path = str(tmp_path / ".kbd-writer")
    me, other = writers.Writer("1", "a", "here"), writers.Writer("2", "b", "there")
    now = NOON.timestamp()
    for skew in (-86_400.0, 86_400.0):
        seen: writers.Sightings = {}
        for i in range(4):
            (tmp_path / ".kbd-writer").unlink(missing_ok=True)
            writers.claim(path, other, {}, now + skew + 600 * i, shared=False)
            standing = writers.look(path, me, seen, now + 600 * i)
            seen = standing.sightings
            assert bool(standing.others) is (i > 0 or skew > 0)
        assert writers.look(path, me, seen, now + 1800 + 1800 - 1).others
        assert not writers.look(path, me, seen, now + 1800 + 1801).others


def test_two_that_claim_at_once_see_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / ".kbd-writer")
    me, other = writers.Writer("1", "a", "here"), writers.Writer("2", "b", "there")
    real, now = writers.create_file, NOON.timestamp()

    def first_comes_the_other(target: str, data: bytes) -> str:
        monkeypatch.setattr(writers, "create_file", real)
        writers.claim(path, other, {}, now, shared=False)
        return real(target, data)

    monkeypatch.setattr(writers, "create_file", first_comes_the_other)
    assert [one.id for one in writers.claim(path, me, {}, now, shared=False).others] == ["2"]
    assert b'"1"' not in (tmp_path / ".kbd-writer").read_bytes()
