"""Where a service file goes, and what is said to systemd or launchd about it.

Pure: values in, command lines out. Who calls it writes the file and runs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from kbd.service_units import LAUNCHD_LABEL, UNIT_NAME

Kind = Literal["systemd", "launchd"]
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A service file of a service manager.

    Attributes:
        kind: the manager.
        path: the file.
        system: the system-wide manager, which runs it as `user`; else the user's own.
        user: None in the user's own manager.
        uid: of the user whose manager it is (launchd's domain).
    """

    kind: Kind
    path: str
    system: bool = False
    user: str | None = None
    uid: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of several; `required` if the following are in vain when it fails."""

    command: Command
    required: bool = True


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What the service manager says of kbd.

    Attributes:
        enabled: it is started with the session or the system.
        active: its own word, such as `active`, `activating`, `inactive`, `failed`; "unknown" if it does not answer.
        detail: what it adds: the daemon's status line, or why it cannot be asked.
        pid: of the daemon, 0 if none runs.
        restarts: how often the manager had to start it again.
    """

    enabled: bool
    active: str
    detail: str = ""
    pid: int = 0
    restarts: int = 0


def systemd_place(config_home: str, *, user: str | None) -> Place:
    """Return where the unit goes: below the user's configuration folder, or system-wide to run as `user`."""
    folder = f"{config_home}/systemd/user" if user is None else "/etc/systemd/system"
    return Place("systemd", f"{folder}/{UNIT_NAME}", system=user is not None, user=user)


def launchd_place(home: str, uid: int) -> Place:
    """Return where the property list of the user's agent goes."""
    return Place("launchd", f"{home}/Library/LaunchAgents/{LAUNCHD_LABEL}.plist", uid=uid)


def start_commands(place: Place) -> tuple[Stage, ...]:
    """Return what makes the manager read a file just written and (re)start it, now and from now on.

    Starting does not wait: the first reading of a long history may take minutes.
    """
    match place.kind:
        case "systemd":
            return (
                Stage(_systemctl(place, "daemon-reload")),
                Stage(_systemctl(place, "enable", UNIT_NAME)),
                # A daemon that failed too often, or ended for good on a mended configuration, may try again.
                Stage(_systemctl(place, "reset-failed", UNIT_NAME), required=False),
                Stage(_systemctl(place, "restart", "--no-block", UNIT_NAME)),
            )
        case "launchd":
            return (
                Stage(("launchctl", "bootout", _target(place)), required=False),  # fails where none is loaded
                Stage(("launchctl", "enable", _target(place))),
                Stage(("launchctl", "bootstrap", f"gui/{place.uid}", place.path)),
            )
        case _:
            assert_never(place.kind)


def stop_commands(place: Place) -> tuple[Stage, ...]:
    """Return what stops the daemon and keeps it from starting again; the file is still there."""
    match place.kind:
        case "systemd":
            return (Stage(_systemctl(place, "disable", "--now", UNIT_NAME)),)
        case "launchd":
            return (Stage(("launchctl", "bootout", _target(place)), required=False),)
        case _:
            assert_never(place.kind)


def forget_commands(place: Place) -> tuple[Stage, ...]:
    """Return what makes the manager see that the file is gone."""
    if place.kind == "launchd":
        return ()
    return (
        Stage(_systemctl(place, "daemon-reload")),
        Stage(_systemctl(place, "reset-failed", UNIT_NAME), required=False),
    )


def state_command(place: Place) -> Command:
    """Return what asks for the state; `parse_state` reads the answer."""
    if place.kind == "launchd":
        return ("launchctl", "print", _target(place))
    names = "ActiveState,UnitFileState,StatusText,MainPID,NRestarts,Result"
    return _systemctl(place, "show", "-p", names, UNIT_NAME)


def parse_state(place: Place, code: int, out: str, err: str) -> ServiceState:
    """Read the answer to `state_command`."""
    if place.kind == "launchd":
        return _launchd_state(code, out)
    if code != 0:
        return ServiceState(enabled=False, active="unknown", detail=err.strip().partition("\n")[0])
    said = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    failed = said.get("Result", "success")
    detail = said.get("StatusText", "") or (failed if failed != "success" else "")
    return ServiceState(
        said.get("UnitFileState", "").startswith("enabled"),
        said.get("ActiveState", "unknown"),
        detail,
        _number(said.get("MainPID")),
        _number(said.get("NRestarts")),
    )


def _launchd_state(code: int, out: str) -> ServiceState:
    if code != 0:
        return ServiceState(enabled=False, active="inactive")
    said: dict[str, str] = {}
    for line in out.splitlines():
        name, sign, value = line.strip().partition(" = ")
        if sign:
            said.setdefault(name, value)
    active = "active" if said.get("state") == "running" else "inactive"
    ended = said.get("last exit code", "")
    detail = f"last exit code {ended}" if active == "inactive" and ended else ""
    return ServiceState(enabled=True, active=active, detail=detail, pid=_number(said.get("pid")))


def log_command(place: Place, lines: int, *, follow: bool, log: str) -> Command:
    """Return what prints the newest lines of the daemon's log; `log` is the file that launchd writes them to."""
    if place.kind == "launchd":
        return ("tail", "-n", str(lines), *(["-F"] if follow else []), log)
    scope = ("--unit",) if place.system else ("--user", "--unit")
    return ("journalctl", *scope, UNIT_NAME, "--lines", str(lines), *(["--follow"] if follow else ["--no-pager"]))


def _systemctl(place: Place, *arguments: str) -> Command:
    return ("systemctl", *([] if place.system else ["--user"]), *arguments)


def _target(place: Place) -> str:
    return f"gui/{place.uid}/{LAUNCHD_LABEL}"


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
