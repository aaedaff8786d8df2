"""`kbd doctor` and `kbd sources` as commands: shapes, exit codes, and what a broken installation still tells."""

import json

import pytest

from kbd.store.locks import InstanceLock

ENTRY = "- **A lesson worth keeping**: text\n"


@pytest.fixture
def sound(world):
    world.env = {"PATH": "/nonexistent", "XDG_CONFIG_HOME": None, "CLAUDE_CONFIG_DIR": None, "CODEX_HOME": None}
    world.note("lessons.md", ENTRY)
    (world.root / "logs/a.log").write_text("x\n")
    return world


def found(answer):
    return {check["name"] for check in answer["checks"] if check["verdict"] == "finding"}


def test_checks_come_as_json_with_their_remedies(sound):
    answer = sound.answer("doctor")
    assert set(answer) == {"version", "checks", "findings"}
    assert all(set(check) == {"name", "verdict", "where", "what", "remedy"} for check in answer["checks"])
    assert {"config", "state", "file_system", "ledger", "daemon", "knowledge", "sources", "service", "versions"} <= {
        check["name"] for check in answer["checks"]
    }
    assert answer["findings"] == len([check for check in answer["checks"] if check["verdict"] == "finding"]) == 1
    assert found(answer) == {"daemon"}


def test_exit_tells_whether_there_are_findings(sound):
    assert sound.run("doctor").exit_code == 1
    with InstanceLock(sound.state):
        result = sound.run("doctor")
    assert result.exit_code == 0, result.stdout
    assert "all well" in result.stdout


def test_broken_configuration_is_a_finding_and_the_rest_is_checked(sound):
    (sound.root / "config.yaml").write_text("bases: []\nnonsense: 1\n")
    result = sound.run("doctor", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    faults = [check["what"] for check in answer["checks"] if check["name"] == "config"]
    assert any("nonsense" in fault for fault in faults)
    assert any("no base" in fault for fault in faults)
    assert "versions" in {check["name"] for check in answer["checks"]}


def test_doctor_makes_no_state(sound):
    sound.state.rmdir()
    sound.run("doctor")
    assert not sound.state.exists()


def test_outgrown_unit_is_a_finding(sound):
    unit = sound.root / "home/.config/systemd/user/kbd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/old/kbd run\n")
    assert "service" in found(sound.answer("doctor"))


def test_sources_tell_what_is_read_and_which_agents_are_not(sound):
    claude = sound.root / "home/.claude/projects/-w"
    claude.mkdir(parents=True)
    (claude / "0b3ad1c5-59a6-4c55-a4a0-000000000001.jsonl").write_text("{}\n")
    answer = sound.answer("sources")
    assert set(answer) == {"version", "watching", "sources"}
    logs, agent = answer["sources"]
    assert (logs["name"], logs["root"], logs["files"], logs["configured"]) == (
        "logs",
        str(sound.root / "logs"),
        1,
        True,
    )
    assert (agent["agent"], agent["files"], agent["configured"], agent["watched"]) == ("claude-code", 1, False, False)
    shown = sound.run("sources").stdout
    assert "~/.claude" in shown
    assert "not read: add `- agent: claude-code`" in shown


def test_source_is_watched_while_a_daemon_runs(sound):
    assert not sound.answer("sources")["sources"][0]["watched"]
    with InstanceLock(sound.state):
        assert sound.answer("sources")["sources"][0]["watched"]


def test_a_typed_graph_is_checked_with_its_schema(sound):
    config = sound.root / "config.yaml"
    config.write_text(config.read_text().replace("sources:", "    graph: {log: g.jsonl, schema: s.yaml}\nsources:"))
    assert [one["what"] for one in sound.answer("doctor")["checks"] if one["name"] == "graph"] == ["not there yet"]
    sound.state.mkdir(exist_ok=True)
    line = {"op": "create", "entity": {"id": "a", "type": "T", "properties": {}}, "timestamp": "2026-01-01"}
    (sound.root / "g.jsonl").write_text(json.dumps(line) + "\n")
    (sound.root / "s.yaml").write_text("types: {T: {open: true}}\n")
    (check,) = [one for one in sound.answer("doctor")["checks"] if one["name"] == "graph"]
    assert (check["verdict"], check["what"][:10]) == ("ok", "1 entity, ")
    (sound.root / "g.jsonl").write_bytes(b"\x7fELF\n")
    assert "graph" in found(sound.answer("doctor"))
    (sound.root / "g.jsonl").write_text("")
    assert "graph" not in found(sound.answer("doctor"))
    (sound.root / "s.yaml").write_text("types: {T: {opne: true}}\n")
    assert "graph" in found(sound.answer("doctor"))
