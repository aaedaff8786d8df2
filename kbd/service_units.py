"""The files that make the system keep kbd running: a systemd unit (user or system-wide) and a launchd agent.

Pure: values in, text out. Who calls it finds the values, writes the file and talks to the service manager.
"""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kbd.config.paths import fixed_folder
from kbd.config.sections import Config

UNIT_NAME = "kbd.service"
LAUNCHD_LABEL = "io.github.kbd"

# A restart mends none of these: configuration, already running, ledger damaged.
_FINAL_EXITS = "2 3 5"

_TMP = ("/tmp", "/var/tmp")  # noqa: S108 - the folders that PrivateTmp= hides

# What a user manager can do without a user namespace: seccomp filters and process attributes.
_SYSCALL_LIMITS = """\
NoNewPrivileges=yes
UMask=0077
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@resources @privileged
SystemCallFilter=@chown prlimit64"""

# What needs a namespace of its own; in a user manager PrivateUsers= is what makes the others possible.
_NAMESPACES = """\
PrivateUsers=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateDevices=yes
DevicePolicy=closed
PrivateNetwork=yes
IPAddressDeny=any
CapabilityBoundingSet=
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible"""


@dataclass(frozen=True, slots=True)
class Service:
    """What a service file is made from.

    Attributes:
        command: absolute path of kbd and its global options, without `run`.
        writable: folders kbd writes into, absolute and real.
        readable: folders kbd reads besides, absolute.
        environment: variables the daemon needs, such as where an agent keeps its transcripts.
        state: the state directory, where temporary files go if it may not have a /tmp of its own.
    """

    command: tuple[str, ...]
    writable: tuple[str, ...]
    readable: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    state: str = ""


def writable_folders(config: Config, state: str) -> tuple[str, ...]:
    """Return the folders that kbd writes into, sorted, real, none inside another.

    Renaming a new file into place needs its folder, and a knowledge file that is a symlink is written where it
    points to. Patterns count by their folder up to the first wildcard.
    """
    files = [path for base in config.bases for path in (*base.files, base.relations)]
    files += [base.graph.log for base in config.bases if base.graph]
    folders = {state, *map(fixed_folder, files), *(fixed_folder(os.path.realpath(path)) for path in files)}
    return _outermost(os.path.realpath(folder) for folder in folders)


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for folder in sorted(set(folders), key=lambda path: path.split("/")):
        if not kept or not _lies_in(folder, kept[-1]):
            kept.append(folder)
    return tuple(kept)


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def render_systemd(service: Service, *, user: str | None = None, namespaces: bool = True) -> str:
    """Return the text of a systemd unit (systemd 252 or newer).

    Args:
        service: its values.
        user: None for a unit of the user's own manager, else the system-wide unit that runs as this user.
        namespaces: also shut kbd off from network, devices and all files but its own. Needs user namespaces, which
            some systems forbid to ordinary users; there the unit would not start with it.
    """
    unit = ["Description=kbd, the life of an agent's lessons"]
    if user:
        unit.append(f"RequiresMountsFor={' '.join(map(_word, service.writable))}")
    run = [
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={_command_line((*service.command, 'run'))}",
        "ExecReload=kill -HUP $MAINPID",
        "WatchdogSec=120",
        "TimeoutStartSec=600",
        "TimeoutStopSec=10",
        "Restart=always",
        "RestartSec=5",
        f"RestartPreventExitStatus={_FINAL_EXITS}",
        *(f"Environment={_word(f'{name}={value}')}" for name, value in service.environment),
        *([f"User={_word(user)}"] if user else []),
        "Nice=10",
        "IOSchedulingPriority=7",
    ]
    limits = [*_SYSCALL_LIMITS.splitlines(), *(_namespace_lines(service) if namespaces else [])]
    target = "multi-user.target" if user else "default.target"
    return "\n".join(["[Unit]", *unit, "", "[Service]", *run, "", *limits, "", "[Install]", f"WantedBy={target}", ""])


def _namespace_lines(service: Service) -> list[str]:
    lines = _NAMESPACES.splitlines()
    paths = (*service.writable, *service.readable)
    if not any(_lies_in(path, tmp) for path in paths for tmp in _TMP):
        lines.append("PrivateTmp=yes")
    elif service.state:
        # Stores that agents keep in SQLite are read from a copy while they are at rest; the shared /tmp is read-only.
        lines.append(f"Environment={_word(f'TMPDIR={service.state}')}")
    # `-`: a folder that is not there yet must not keep kbd from starting.
    return [*lines, *(f"ReadWritePaths={_word('-' + folder)}" for folder in service.writable)]


def _word(text: str) -> str:
    """Quote one word of a unit file: `%` is a specifier, white space ends a word, `\\` and quotes are syntax."""
    text = text.replace("%", "%%")
    if re.fullmatch(r"[\w@%+=:,./-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _command_line(command: tuple[str, ...]) -> str:
    """Quote a command; in its arguments, though not in its path, `$` names a variable."""
    return " ".join([_word(command[0]), *(_word(part.replace("$", "$$")) for part in command[1:])])


def render_launchd(service: Service, log: str) -> bytes:
    """Return the property list of a launchd agent; `log` is the file that takes what kbd says."""
    agent = {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": [*service.command, "run"],
        "EnvironmentVariables": dict(service.environment),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 30,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps({key: value for key, value in agent.items() if value != {}}, sort_keys=False)
