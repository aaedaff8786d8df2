"""Hooks put into agents' settings by `kbd init`, and taken out by `kbd detach`."""

from __future__ import annotations

import json

import pytest

from kbd.core.hooking import with_hooks, without_hooks

OURS = {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "kbd hook session-start"}]}]}
SETTINGS = b'{\n    "model": "opus",\n    "hooks": {\n        "SessionStart": [\n            {}\n        ]\n    }\n}\n'

ODD = [b"[]", b"{// comment\n}", b'{"hooks": []}', b'{"hooks": {"SessionStart": 1}}', b"\xff"]


def test_hooks_come_after_those_that_are_there_and_go_without_a_trace():
    after = with_hooks(SETTINGS, OURS)
    assert json.loads(after)["hooks"]["SessionStart"] == [{}, *OURS["SessionStart"]]
    assert with_hooks(after, OURS) == after
    assert without_hooks(after) == SETTINGS


def test_new_settings_are_made_and_emptied():
    assert json.loads(without_hooks(with_hooks(b"", OURS))) == {}


@pytest.mark.parametrize("odd", ODD)
def test_settings_of_another_form_are_left_alone(odd):
    assert with_hooks(odd, OURS) is None


def test_matcher_that_runs_other_commands_too_is_the_users_own():
    mixed = {"hooks": {"Stop": [{"hooks": [{"command": "kbd hook prompt"}, {"command": "mine"}]}]}}
    settings = json.dumps(mixed).encode()
    assert without_hooks(settings) == settings


def test_init_writes_hooks_only_when_told_and_detach_takes_them_out(world):
    folder = world.root / "home" / ".claude"
    folder.mkdir()
    path = folder / "settings.json"
    path.write_bytes(SETTINGS)
    shown = world.run("init", "--dry-run")
    assert "kbd hook session-start" in shown.stdout
    assert "/plugin install kbd@kbd" in shown.stdout
    world.run("init", "--yes", "--force")
    assert path.read_bytes() == SETTINGS
    world.run("init", "--yes", "--force", "--hooks")
    assert b"kbd hook session-start" in path.read_bytes()
    world.run("detach", "--yes")
    assert path.read_bytes() == SETTINGS


def test_settings_with_the_plugin_get_no_hooks(world):
    folder = world.root / "home" / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text('{"enabledPlugins": {"kbd@kbd": true}}')
    assert "settings.json: there already" in world.run("init", "--dry-run").stdout
