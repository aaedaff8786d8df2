"""`kbd service`: let the system keep kbd running."""

from __future__ import annotations

import getpass
import os
import pwd
import time
from difflib import unified_diff

import click

from kbd.cli.output import counted, emit, emit_json, safe, say, short
from kbd.cli.service_file import LOG_NAME, Installed, is_outdated, look, manager_env, place_of, state_of
from kbd.cli.session import Session
from kbd.config import data_dir, write_templates
from kbd.errors import AlreadyRunning, KbdError, NotRunning, UsageError
from kbd.service_commands import (
    Place,
    ServiceState,
    Stage,
    forget_commands,
    log_command,
    start_commands,
    stop_commands,
)
from kbd.store.locks import running_pid
from kbd.store.unitfiles import follow_command, read_unit, remove_unit, run_command, write_unit

START_SECONDS = 10.0
_LINGER = "/var/lib/systemd/linger"
_PROBE = (
    "systemd-run",
    "--user",
    "--wait",
    "--quiet",
    "--collect",
    "-p",
    "PrivateUsers=yes",
    "-p",
    "PrivateNetwork=yes",
    "-p",
    "ProtectSystem=strict",
    "-p",
    "PrivateDevices=yes",
    "true",
)

_system = click.option("--system", is_flag=True, help="System-wide unit (as root) instead of the user's own.")


@click.group("service")
def service() -> None:
    """Let systemd or launchd keep kbd running."""


@service.command("install")
@_system
@click.option("--user", help="With --system: the user that kbd runs as; default who called sudo.")
@click.option("--dry-run", is_flag=True, help="Only show the file and the commands.")
@click.pass_obj
def install(session: Session, system: bool, user: str | None, dry_run: bool) -> int:
    """Write the service file for this configuration, and start it."""
    place = place_of(session, system=system, user=user)
    _require_own_paths(session, place)
    found = look(session, session.config, place)
    if dry_run:
        _show(found, found.wanted[0])
        for stage in start_commands(place):
            emit(f"$ {safe(' '.join(stage.command))}")
        return 0
    _require_manager(found)
    _require_no_other_daemon(session, found)
    _make_folders(session, place)
    data = _buildable(session, found)
    _show(found, data)
    written = write_unit(place.path, data)
    if written or found.state.active != "active" or not found.state.enabled or is_outdated(session):
        _run(session, start_commands(place))
    return _report_start(session, place)


def _require_own_paths(session: Session, place: Place) -> None:
    """Refuse a service of another user that would run on the caller's own configuration or state."""
    if place.user in (None, getpass.getuser()):
        return
    try:
        uid = pwd.getpwnam(str(place.user)).pw_uid
    except KeyError as error:
        raise UsageError(f"no user is named {place.user!r}", hint="give another --user") from error
    if not session.has_given_paths:
        what = f"a service of {place.user} needs paths of that user"
        raise UsageError(what, hint="give --config and --state-dir before `service`")
    state = session.state_path  # `state_dir` is the caller's own, or none
    if not state.is_dir():
        hint = f"`install -d -m 700 -o {place.user} {state}`"
        raise UsageError("there is no state directory yet", where=str(state), hint=hint)
    if state.stat().st_uid != uid:
        raise UsageError(
            f"the state directory is not {place.user}'s", where=str(state), hint=f"`chown -R {place.user} {state}`"
        )


def _require_manager(found: Installed) -> None:
    if found.state.active != "unknown":
        return
    hint = "log in with a session of your own, or `sudo kbd … service install --system`; else run `kbd run` yourself"
    raise UsageError(f"the service manager does not answer: {found.state.detail}", where=found.place.kind, hint=hint)


def _require_no_other_daemon(session: Session, found: Installed) -> None:
    pid = running_pid(session.state_path)
    if pid is not None and found.state.pid != pid:
        what = f"a daemon that is no service runs here (pid {pid or 'unknown'})"
        raise AlreadyRunning(what, where=str(session.state_path), hint="stop it first")


def _make_folders(session: Session, place: Place) -> None:
    """Make what the walls of the unit would keep the daemon from making: its state, and what the defaults read."""
    is_own = place.user in (None, getpass.getuser())
    say(f"state in {session.state_dir if is_own else session.state_path}")
    if session.config_path is None:
        for path in write_templates(data_dir(), session.today):
            say(f"made {path}")


def _buildable(session: Session, found: Installed) -> bytes:
    """Return the file with the walls that this system can build; where it cannot, say so."""
    if len(found.wanted) == 1 or found.place.system:
        return found.wanted[0]
    probe = run_command(_PROBE, manager_env(session))
    if probe.code == 0:
        return found.wanted[0]
    say("user namespaces are forbidden here: installed without the walls around network, devices and other files")
    return found.wanted[1]


def _show(found: Installed, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if found.data == data:
        emit(f"{safe(found.place.path)}: installed already")
        return
    if found.data is None:
        emit(f"{safe(found.place.path)}: new")
        lines = text.splitlines()
    else:
        emit(f"{safe(found.place.path)}: renewed")
        old = found.data.decode("utf-8", "replace").splitlines()
        lines = list(unified_diff(old, text.splitlines(), "installed", "wanted", lineterm="", n=1))
    for line in lines:
        emit(f"  {safe(line)}".rstrip())


def _run(session: Session, stages: tuple[Stage, ...]) -> None:
    for stage in stages:
        ran = run_command(stage.command, manager_env(session))
        if ran.code != 0 and stage.required:
            said = (ran.err or ran.out).strip() or f"exit {ran.code}"
            raise KbdError(said, where=" ".join(stage.command), hint="mend that, then again `kbd service install`")


def _report_start(session: Session, place: Place) -> int:
    """Wait until the daemon has begun, for a while; tell how it went."""
    deadline = time.monotonic() + START_SECONDS
    state = state_of(session, place)
    while state.active not in ("active", "failed") and time.monotonic() < deadline:
        time.sleep(0.1)
        state = state_of(session, place)
    if state.active == "active":
        emit(f"kbd runs (pid {state.pid}); `kbd status` tells how it fares")
    elif state.active == "activating" and not state.restarts:
        emit("kbd is starting: it reads what agents have written so far; `kbd service status` tells more")
    else:
        raise KbdError(f"kbd did not start: {state.detail or state.active}", hint="see `kbd service logs`")
    for line in _linger_hint(place):
        emit(line)
    return 0


def _linger_hint(place: Place) -> list[str]:
    name = getpass.getuser()
    if place.kind != "systemd" or place.system or os.path.exists(f"{_LINGER}/{name}"):
        return []
    return [f"it stops when {safe(name)} logs out, unless `loginctl enable-linger`"]


@service.command("uninstall")
@_system
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.pass_obj
def uninstall(session: Session, system: bool, dry_run: bool) -> int:
    """Stop kbd and remove the service file; counters and state stay."""
    place = place_of(session, system=system, user=None)
    if read_unit(place.path) is None:
        emit(f"{safe(place.path)}: not installed")
        return 0
    if dry_run:
        for stage in stop_commands(place):
            emit(f"$ {safe(' '.join(stage.command))}")
        emit(f"{safe(place.path)}: would be removed")
        return 0
    _run(session, stop_commands(place))
    remove_unit(place.path)
    _run(session, forget_commands(place))
    emit(f"{safe(place.path)}: removed; knowledge, counters and state stay")
    return 0


@service.command("status", short_help="Tell whether the service is there, runs, and is up to date.")
@_system
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def status(session: Session, system: bool, as_json: bool) -> int:
    """Tell whether the service is installed, runs, and fits the configuration: exit 0, 1, or 3 if it does not run."""
    found = look(session, session.config, place_of(session, system=system, user=None))
    if as_json:
        emit_json({"service": _as_json(found)})
    else:
        _print_status(found, session.home)
    if found.state.active != "active":
        return NotRunning.exit_code
    return 0 if found.is_current and found.state.enabled else 1


def _as_json(found: Installed) -> dict[str, object]:
    state = found.state
    return {
        "manager": found.place.kind,
        "file": found.place.path,
        "installed": found.data is not None,
        "current": found.is_current,
        "enabled": state.enabled,
        "active": state.active,
        "pid": state.pid or None,
        "restarts": state.restarts,
        "detail": state.detail,
    }


def _print_status(found: Installed, home: str) -> None:
    emit(f"file        {safe(short(found.place.path, home))}")
    emit(f"installed   {_installed_words(found)}")
    emit(f"enabled     {_enabled_words(found.state)}")
    emit(f"active      {_active_words(found.state)}")
    if found.state.active == "active":
        for line in _linger_hint(found.place):
            emit(f"note        {line}")


def _installed_words(found: Installed) -> str:
    if found.data is None:
        return "no: `kbd service install`"
    if not found.is_current:
        return "yes, but the configuration asks for another: `kbd service install` renews it"
    return "yes, as the configuration asks"


def _enabled_words(state: ServiceState) -> str:
    if state.active == "unknown":
        return "unknown"
    return "yes, it starts by itself" if state.enabled else "no: `kbd service install` lets it start by itself"


def _active_words(state: ServiceState) -> str:
    words = [state.active]
    if state.pid:
        words.append(f"pid {state.pid}")
    if state.restarts:
        words.append(f"started again {counted(state.restarts, 'time')}")
    if state.detail:
        words.append(safe(state.detail))
    return ", ".join(words)


@service.command("logs")
@_system
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(min=1), help="So many newest lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
@click.pass_obj
def logs(session: Session, system: bool, lines: int, follow: bool) -> int:
    """Show what the daemon says."""
    place = place_of(session, system=system, user=None)
    command = log_command(place, lines, follow=follow, log=str(session.state_path / LOG_NAME))
    return follow_command(command, manager_env(session))
