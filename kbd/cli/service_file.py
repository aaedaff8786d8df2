"""The service file that this configuration asks for, against the one that is installed."""

from __future__ import annotations

import getpass
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import kbd
from kbd import __version__
from kbd.cli.output import say
from kbd.cli.session import Session
from kbd.config import Config
from kbd.errors import FileUnreadable, UsageError
from kbd.service_commands import Place, ServiceState, launchd_place, parse_state, state_command, systemd_place
from kbd.service_units import Service, render_launchd, render_systemd, writable_folders
from kbd.sources.registry import formats
from kbd.store.heartbeat import read_heartbeat
from kbd.store.unitfiles import read_unit, run_command

LOG_NAME = "kbd.log"


@dataclass(frozen=True, slots=True)
class Installed:
    """How the service stands.

    Attributes:
        place: where its file belongs.
        data: the file; None if it is not installed.
        wanted: what the configuration asks for now, the version with all walls first.
        state: what the service manager says.
    """

    place: Place
    data: bytes | None
    wanted: tuple[bytes, ...]
    state: ServiceState

    @property
    def is_current(self) -> bool:
        """The file is what the configuration asks for; one installed without walls is, too."""
        return self.data in self.wanted


class _Asked(Mapping[str, str]):
    """An environment that remembers which of its variables were asked for."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)


def place_of(session: Session, *, system: bool, user: str | None) -> Place:
    """Return where the service belongs on this system.

    Raises:
        UsageError: it has neither systemd nor launchd, or no system-wide services that kbd knows.
    """
    if sys.platform == "darwin":
        if system:
            raise UsageError("launchd runs kbd as the user's agent only", hint="leave out --system")
        return launchd_place(session.home, os.getuid())
    if not sys.platform.startswith("linux"):
        what = f"kbd knows no services of {sys.platform}"
        raise UsageError(what, hint="let your service manager run `kbd run` in the foreground")
    config_home = session.env.get("XDG_CONFIG_HOME") or os.path.join(session.home, ".config")
    if not system:
        return systemd_place(config_home, user=None)
    account = user or session.env.get("SUDO_USER") or getpass.getuser()
    place = systemd_place(config_home, user=account)
    return place if user else systemd_place(config_home, user=_user_in(place.path) or account)


def _user_in(path: str) -> str | None:
    """Return the user whom an installed system-wide unit names."""
    found = re.search(rb"^User=(\S+)$", read_unit(path) or b"", re.MULTILINE)
    return found[1].decode("utf-8", "replace") if found else None


def service_of(session: Session, config: Config) -> Service:
    """Return what the service file is made from.

    The environment is that of the agents: variables that say where they keep transcripts, if they are set here.
    """
    env = _Asked(session.env)
    state = str(session.state_path)
    roots = list(_roots(config, env, session.home))
    # `-P`: the folder that the service starts in must not be able to offer another module of the name.
    command = [os.path.abspath(sys.executable), "-P", "-m", "kbd"]
    if session.config_path is not None:
        command += ["--config", os.path.abspath(session.config_path)]
    elif "XDG_DATA_HOME" in session.env:
        env.names.add("XDG_DATA_HOME")
    variables = tuple((name, session.env[name]) for name in sorted(env.names) if name in session.env)
    return Service(
        command=(*command, "--state-dir", state),
        writable=writable_folders(config, state),
        readable=(*roots, str(config.root), sys.prefix, str(Path(kbd.__file__).parent)),
        environment=variables,
        state=state,
    )


def _roots(config: Config, env: Mapping[str, str], home: str) -> Iterator[str]:
    known = formats()
    for source in config.sources:
        if source.folder:
            yield source.folder
        elif source.agent is not None and source.agent in known:
            yield from known[source.agent].default_roots(env, home)


def wanted_files(session: Session, config: Config, place: Place) -> tuple[bytes, ...]:
    """Return the contents a service file may have, the one with all walls first."""
    service = service_of(session, config)
    if place.kind == "launchd":
        return (render_launchd(service, str(session.state_path / LOG_NAME)),)
    both = (render_systemd(service, user=place.user, namespaces=walled) for walled in (True, False))
    return tuple(text.encode("utf-8", "surrogateescape") for text in both)


def manager_env(session: Session) -> dict[str, str]:
    """Return the environment in which the service manager is asked; a login without a session has no runtime folder."""
    env = dict(session.env)
    runtime = f"/run/user/{os.getuid()}"
    if "XDG_RUNTIME_DIR" not in env and os.path.isdir(runtime):
        env["XDG_RUNTIME_DIR"] = runtime
    return env


def state_of(session: Session, place: Place) -> ServiceState:
    """Ask the service manager."""
    ran = run_command(state_command(place), manager_env(session))
    return parse_state(place, ran.code, ran.out, ran.err)


def look(session: Session, config: Config, place: Place) -> Installed:
    """Return how the service stands; raises FileUnreadable if its file cannot be read."""
    return Installed(place, read_unit(place.path), wanted_files(session, config, place), state_of(session, place))


def is_outdated(session: Session) -> bool:
    """Tell whether the daemon that runs is of older code, or read another configuration, than is there now; say so."""
    try:
        beat = read_heartbeat(session.state_path)
    except FileUnreadable:
        return True
    if beat is None:
        return False
    if (beat.version, beat.config) == (__version__, session.config.digest) and not _upgraded_since(beat.since):
        return False
    say("the daemon ran an older kbd or another configuration: it is started anew")
    return True


def _upgraded_since(start: datetime) -> bool:
    """Tell whether a module of kbd came after the daemon began: a pull from git does not change the version."""
    modules = Path(kbd.__file__).parent.rglob("*.py")
    return max(module.stat().st_ctime for module in modules) > start.timestamp()
