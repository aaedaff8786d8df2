"""What agents append to a typed graph's log is validated by the passes, and shown by status and lint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbd.cli.main import main

SCHEMA = """
types:
  Task: {required: [title], properties: {title: string}}
relations:
  blocks: {from_types: [Task], to_types: [Task]}
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for name in ("kb", "logs", "ontology"):
        (tmp_path / name).mkdir()
    (tmp_path / "kb/a.md").write_text("- [pitfall] **Lock fd leaked on exception path** — x (2026-01-01)\n")
    (tmp_path / "logs/a.log").write_text("2026-06-10 hello\n")
    (tmp_path / "ontology/schema.yaml").write_text(SCHEMA)
    (tmp_path / "config.yaml").write_text(
        "bases:\n"
        '  - {name: b, files: ["kb/*.md"], graph: {log: ontology/graph.jsonl, schema: ontology/schema.yaml}}\n'
        "sources: [{name: logs, path: logs, format: text}]\n"
    )
    return tmp_path


def kbd(world: Path, *arguments: str) -> str:
    options = ["--config", str(world / "config.yaml"), "--state-dir", str(world / "state"), "--now", "2026-06-10"]
    return CliRunner().invoke(main, [*options, *arguments]).stdout


def append(world: Path, ident: str, **properties: str) -> None:
    entity = {"id": ident, "type": "Task", "properties": properties}
    line = {"op": "create", "entity": entity, "timestamp": "2026-06-10T09:00:00+00:00"}
    with open(world / "ontology/graph.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def shown(world: Path) -> list[str]:
    kbd(world, "run", "--once")
    log = str(world / "ontology/graph.jsonl")
    return [p["where"] for p in json.loads(kbd(world, "status", "--json"))["problems"] if p["where"].startswith(log)]


def test_a_violation_appended_by_an_agent_is_shown_with_its_line_until_it_is_mended(world: Path) -> None:
    append(world, "t1", title="a task")
    assert shown(world) == []
    append(world, "t2")
    (where,) = shown(world)
    assert where.startswith(str(world / "ontology/graph.jsonl:2"))
    findings = [p["where"] for p in json.loads(kbd(world, "lint", "--json"))["problems"]]
    assert any(str(world / "ontology") in where for where in findings)
    update = {"op": "update", "id": "t2", "properties": {"title": "named"}, "timestamp": "2026-06-10T10:00:00+00:00"}
    with open(world / "ontology/graph.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps(update) + "\n")
    assert shown(world) == []


def test_a_broken_schema_stops_no_pass(world: Path) -> None:
    append(world, "t1", title="a task")
    (world / "ontology/schema.yaml").write_text("types: [1, 2")
    (world / "logs/a.log").write_text("2026-06-10 Lock fd leaked on exception path\n")
    assert "schema.yaml" in " ".join(
        p["where"] for p in json.loads((kbd(world, "run", "--once"), kbd(world, "status", "--json"))[1])["problems"]
    )
    assert json.loads(kbd(world, "list", "--json"))["entries"][0]["ref"] == 1
