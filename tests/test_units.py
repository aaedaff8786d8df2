"""The service files: right for hostile paths, accepted by systemd, equal to the samples in the project."""

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.config import parse_config
from kbd.service_units import (
    LAUNCHD_LABEL,
    UNIT_NAME,
    Service,
    render_launchd,
    render_systemd,
    writable_folders,
)

PROJECT = Path(__file__).parent.parent
SERVICE = Service(
    command=("/H/.local/bin/kbd",),
    writable=("/H/.local/share/kbd/knowledge", "/H/.local/state/kbd"),
    readable=("/H/.local/share/kbd/logs",),
)


def settings(unit: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in unit.split("\n") if line.startswith(f"{name}=")]


def samples() -> dict[str, bytes]:
    """Return project path → content. systemd fills in %h and %i, launchd has no such thing."""
    user = render_systemd(SERVICE).replace("/H/", "%h/")
    system = render_systemd(SERVICE, user="U").replace("/H/", "/home/%i/").replace("User=U", "User=%i")
    return {
        f"systemd/{UNIT_NAME}": user.encode(),
        f"systemd/{UNIT_NAME.replace('.', '@.')}": system.encode(),
        f"launchd/{LAUNCHD_LABEL}.plist": render_launchd(SERVICE, "/H/.local/state/kbd/kbd.log").replace(
            b"/H/", b"/Users/YOU/"
        ),
    }


@pytest.mark.parametrize("name", samples())
def test_sample_in_the_project_is_what_is_rendered(name):
    if os.environ.get("KBD_UPDATE_GOLD"):
        (PROJECT / name).write_bytes(samples()[name])
    assert (PROJECT / name).read_bytes() == samples()[name]


def test_unit_is_kept_alive_and_watched():
    unit = render_systemd(SERVICE)
    assert settings(unit, "Type") == ["notify"]
    assert settings(unit, "WatchdogSec") == ["120"]
    assert settings(unit, "Restart") == ["always"]
    assert settings(unit, "ExecStart") == ["/H/.local/bin/kbd run"]
    assert settings(unit, "WantedBy") == ["default.target"]


def test_system_unit_runs_as_its_user_once_the_folders_are_mounted():
    unit = render_systemd(SERVICE, user="ada")
    assert settings(unit, "User") == ["ada"]
    assert settings(unit, "WantedBy") == ["multi-user.target"]
    assert settings(unit, "RequiresMountsFor") == [" ".join(SERVICE.writable)]


def test_unit_without_namespaces_asks_for_none():
    unit = render_systemd(SERVICE, namespaces=False)
    assert not any(settings(unit, name) for name in ("PrivateUsers", "ProtectSystem", "PrivateTmp", "ReadWritePaths"))
    assert settings(unit, "CapabilityBoundingSet") == []
    assert settings(unit, "NoNewPrivileges") == ["yes"]


@pytest.mark.parametrize("path", ["/tmp/logs", "/var/tmp/kb"])
def test_unit_keeps_the_shared_tmp_if_transcripts_or_knowledge_lie_there(path):
    assert settings(render_systemd(SERVICE), "PrivateTmp") == ["yes"]
    assert settings(render_systemd(Service(("/k",), ("/s",), readable=(path,))), "PrivateTmp") == []
    assert settings(render_systemd(Service(("/k",), (path,))), "PrivateTmp") == []
    assert settings(render_systemd(Service(("/k",), ("/tmpfiles",))), "PrivateTmp") == ["yes"]


def test_unit_without_a_tmp_of_its_own_has_its_temporary_files_in_the_state():
    unit = render_systemd(Service(("/k",), ("/srv/s", "/tmp/kb"), state="/srv/s"))
    assert settings(unit, "Environment") == ["TMPDIR=/srv/s"]
    assert settings(unit, "ReadWritePaths") == ["-/srv/s", "-/tmp/kb"]
    assert settings(render_systemd(Service(("/k",), ("/srv/s",), state="/srv/s")), "Environment") == []


def test_words_of_a_unit_are_quoted():
    command = ("/a $ b/kbd", "--config", '/c/100%$"x"\\.yaml')
    unit = render_systemd(Service(command, ("/k k",), environment=(("A", "b c"),)))
    assert settings(unit, "ExecStart") == ['"/a $ b/kbd" --config "/c/100%%$$\\"x\\"\\\\.yaml" run']
    assert settings(unit, "ReadWritePaths") == ['"-/k k"']
    assert settings(unit, "Environment") == ['"A=b c"']


def test_agent_of_launchd_is_a_background_service_that_is_kept_alive():
    agent = plistlib.loads(render_launchd(Service(("/k & k", "--config", "/<c>"), ("/w",)), "/l"))
    assert agent["ProgramArguments"] == ["/k & k", "--config", "/<c>", "run"]
    assert agent["KeepAlive"] is True
    assert agent["RunAtLoad"] is True
    assert agent["ProcessType"] == "Background"
    assert agent["LowPriorityIO"] is True
    assert "EnvironmentVariables" not in agent


def test_writable_folders_are_real_and_none_lies_in_another(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "kb").mkdir()
    (tmp_path / "vault/real.md").touch()
    (tmp_path / "kb/linked.md").symlink_to(tmp_path / "vault/real.md")
    text = b"""\
bases:
- {name: a, files: [kb/*.md, kb/deep/**/*.md, kb/linked.md], relations: rel/r.yaml, graph: {log: onto/g.jsonl}}
- {name: b, files: [kb-2/x.md]}
"""
    config = parse_config(text, tmp_path / "config.yaml")
    folders = writable_folders(config, str(tmp_path / "state"))
    assert folders == tuple(str(tmp_path / name) for name in ("kb", "kb-2", "onto", "rel", "state", "vault"))


_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not on this system; .ci/run installs it"
)


def analyze(folder: Path, unit: str, *arguments: str) -> str:
    (folder / UNIT_NAME).write_text(unit)
    command = ["systemd-analyze", *arguments, f"./{UNIT_NAME}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


PRESENT = Service(("/bin/sh", "--config", "/a b/%h $X 'c\\"), ("/srv/a b/100% \"q\"",), environment=(("A", "%h $B"),))


@_systemd
@pytest.mark.parametrize("user", [None, "daemon"])
@pytest.mark.parametrize("namespaces", [True, False])
def test_unit_passes_systemd_verify(tmp_path, user, namespaces):
    assert analyze(tmp_path, render_systemd(PRESENT, user=user, namespaces=namespaces), "verify") == ""


@_systemd
@pytest.mark.parametrize("user", [None, "daemon"])
def test_unit_is_exposed_by_at_most_one_and_a_half(tmp_path, user):
    analyze(tmp_path, render_systemd(PRESENT, user=user), "--offline=true", "security", "--threshold=15")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_any_path_stays_one_word_of_one_line(path):
    unit = render_systemd(Service(("/k", path), ("/srv/" + path,)))
    assert len(unit.split("\n")) == len(render_systemd(Service(("/k", "x"), ("/srv/x",))).split("\n"))
    (start,) = settings(unit, "ExecStart")
    assert start.startswith("/k ")
    assert start.endswith(" run")
