"""Relations expire after a year without use, move to their archive after another, and revive when used."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbd.cli.main import main

LESSON = "- [pitfall] **Lock fd leaked on exception path** — close it in finally (2025-01-01)\n"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "kb/a.md").write_text(LESSON, encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        'bases: [{name: b, files: ["kb/*.md"]}]\nsources: [{name: logs, path: logs, format: text}]\n'
    )
    return tmp_path


def run(world: Path, day: str, log: str = "") -> None:
    if log:
        with open(world / "logs/a.log", "a", encoding="utf-8") as file:
            file.write(log + "\n")
    arguments = [
        "--config",
        str(world / "config.yaml"),
        "--state-dir",
        str(world / "state"),
        "--now",
        day,
        "run",
        "--once",
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 1), result.output


def text(world: Path, name: str) -> str:
    path = world / "kb" / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_a_relation_expires_is_archived_and_grows_again(world: Path) -> None:
    run(world, "2026-01-01", "2026-01-01 Lock fd leaked on exception path, so src/net.py closes it")
    assert "src/net.py" in text(world, ".knowledge-graph.yaml")
    run(world, "2026-12-26", "2026-12-26 nothing of note")
    assert "e:" not in text(world, ".knowledge-graph.yaml")
    run(world, "2026-12-27", "2026-12-27 nothing of note")
    assert f'e: "{date(2026, 12, 27)}"' in text(world, ".knowledge-graph.yaml")
    run(world, "2027-12-22", "2027-12-22 nothing of note")
    assert "src/net.py" not in text(world, ".knowledge-graph.yaml")
    assert "src/net.py" in text(world, ".knowledge-graph-archive.yaml")
    run(world, "2027-12-23", "2027-12-23 again Lock fd leaked on exception path in src/net.py")
    again = text(world, ".knowledge-graph.yaml")
    assert "src/net.py" in again
    assert "e:" not in again
