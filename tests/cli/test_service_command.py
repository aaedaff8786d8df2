"""`kbd service` without a manager behind it; tests/e2e/test_systemd.py runs it under a real one."""

import getpass
import json
import os
import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from kbd.cli.service_file import place_of, wanted_files
from kbd.cli.session import Session
from kbd.errors import UsageError
from kbd.service_commands import launchd_place

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these are of systemd")

UNIT = "home/.config/systemd/user/kbd.service"


@pytest.fixture
def alone(world):
    """A system on which no service manager answers."""
    world.env = {"PATH": "/nonexistent", "XDG_CONFIG_HOME": None}
    return world


def settings(text, name):
    return [line.strip().partition("=")[2] for line in text.splitlines() if line.strip().startswith(f"{name}=")]


def test_dry_run_shows_the_file_and_the_commands_and_writes_nothing(alone):
    before = sorted(alone.root.rglob("*"))
    result = alone.run("service", "install", "--dry-run")
    assert result.exit_code == 0
    assert f"{alone.root / UNIT}: new" in result.stdout
    assert "$ systemctl --user enable kbd.service" in result.stdout
    assert sorted(alone.root.rglob("*")) == before


def test_unit_starts_this_interpreter_with_this_configuration(alone):
    shown = alone.run("service", "install", "--dry-run").stdout
    options = ["--config", f"{alone.root}/config.yaml", "--state-dir", str(alone.state)]
    (command,) = settings(shown, "ExecStart")
    assert shlex.split(command) == [sys.executable, "-P", "-m", "kbd", *options, "run"]
    assert settings(shown, "ReadWritePaths") == [f"-{alone.state}", f"-{alone.root}/kb"]


def test_variables_that_say_where_an_agent_writes_are_handed_on_and_no_others(alone):
    (alone.root / "config.yaml").write_text("bases: [{name: l, files: [kb/*.md]}]\nsources: [{agent: claude-code}]\n")
    alone.env |= {"CLAUDE_CONFIG_DIR": "/srv/claude", "ANTHROPIC_API_KEY": "secret"}
    shown = alone.run("service", "install", "--dry-run").stdout
    given = [line for line in settings(shown, "Environment") if not line.startswith("TMPDIR=")]
    assert given == ["CLAUDE_CONFIG_DIR=/srv/claude"]
    assert "secret" not in shown


def test_nothing_is_written_where_no_manager_answers(alone):
    result = alone.run("service", "install")
    assert result.exit_code == 2
    assert "does not answer" in result.stderr
    assert not (alone.root / UNIT).exists()


def test_broken_configuration_is_refused_before_anything_is_written(alone):
    (alone.root / "config.yaml").write_text("bases: []\n")
    assert alone.run("service", "install").exit_code == 2
    assert not (alone.root / UNIT).exists()


def test_status_of_what_is_not_installed(alone):
    result = alone.run("service", "status", "--json")
    assert result.exit_code == 3
    said = json.loads(result.stdout)["service"]
    assert (said["installed"], said["current"], said["enabled"], said["pid"]) == (False, False, False, None)
    assert "no: `kbd service install`" in alone.run("service", "status").stdout


def test_status_knows_a_unit_that_the_configuration_has_outgrown(alone):
    shown = alone.run("service", "install", "--dry-run").stdout
    unit = "".join(f"{line[2:]}\n" for line in shown.splitlines()[1:] if not line.startswith("$"))
    (alone.root / UNIT).parent.mkdir(parents=True)
    (alone.root / UNIT).write_text(unit)
    assert json.loads(alone.run("service", "status", "--json").stdout)["service"]["current"]
    (alone.root / "config.yaml").write_text("bases: [{name: l, files: [kb/*.md, other/*.md]}]\n")
    assert not json.loads(alone.run("service", "status", "--json").stdout)["service"]["current"]
    shown = alone.run("service", "install", "--dry-run").stdout
    assert f"+ReadWritePaths=-{alone.root}/other" in shown


def test_uninstalling_nothing_is_no_fault(alone):
    result = alone.run("service", "uninstall")
    assert (result.exit_code, "not installed" in result.stdout) == (0, True)


def test_system_wide_unit_runs_as_a_user(alone):
    shown = alone.run("service", "install", "--system", "--dry-run").stdout
    assert settings(shown, "User") == [getpass.getuser()]
    assert "/etc/systemd/system/kbd.service" in shown
    assert "$ systemctl enable kbd.service" in shown


def test_system_wide_unit_of_a_user_who_does_not_exist_is_refused(alone):
    assert alone.run("service", "install", "--system", "--user", "no-such-user", "--dry-run").exit_code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install for others")
def test_system_wide_unit_of_another_user_needs_that_user_s_state(alone):
    result = alone.run("service", "install", "--system", "--user", "nobody", "--dry-run")
    assert result.exit_code == 2
    assert "chown" in result.stderr
    alone.state.rmdir()
    missing = alone.run("service", "install", "--system", "--user", "nobody", "--dry-run")
    assert missing.exit_code == 2
    assert f"`install -d -m 700 -o nobody {alone.state}`" in missing.stderr and not alone.state.exists()
    alone.state.mkdir(mode=0o700)
    os.chown(alone.state, 65534, 65534)
    assert settings(alone.run("service", "install", "--system", "--user", "nobody", "--dry-run").stdout, "User") == [
        "nobody"
    ]


def test_agent_of_launchd_is_made_of_the_same_values(alone):
    session = Session(str(alone.root / "config.yaml"), str(alone.state), None, {"HOME": "/Users/ada"})
    (text,) = wanted_files(session, session.config, launchd_place(session.home, 501))
    agent = plistlib.loads(text)
    assert agent["ProgramArguments"][:4] == [sys.executable, "-P", "-m", "kbd"]
    assert agent["ProgramArguments"][-1] == "run"
    assert agent["StandardErrorPath"] == str(alone.state / "kbd.log")


def test_places_follow_the_system(monkeypatch, tmp_path):
    session = Session(None, None, None, {"HOME": "/h", "XDG_CONFIG_HOME": "/x"})
    assert place_of(session, system=False, user=None).path == "/x/systemd/user/kbd.service"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Path(place_of(session, system=False, user=None).path).parent == Path("/h/Library/LaunchAgents")
    with pytest.raises(UsageError):
        place_of(session, system=True, user=None)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError):
        place_of(session, system=False, user=None)
