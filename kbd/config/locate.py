"""Where the configuration, the data and the state of kbd live on this system.

The places of the system are those of platformdirs, which reads XDG variables and HOME from the process environment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from kbd.errors import UsageError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def find_config(explicit: str | None, env: Mapping[str, str]) -> Path | None:
    """Return `--config`, else `$KBD_CONFIG`, else the user's `kbd/config.yaml` if it is there, else None.

    A file that was named is returned even if it is absent: loading it says so.
    """
    named = explicit or env.get("KBD_CONFIG")
    if named:
        return Path(named).expanduser()
    path = usual_config()
    return path if os.path.lexists(path) else None


def usual_config() -> Path:
    """Return where the user's configuration is, or would be."""
    return platformdirs.user_config_path("kbd", appauthor=False) / "config.yaml"


def data_dir() -> Path:
    """Return the folder of the built-in base and logs; it may not exist yet."""
    return platformdirs.user_data_path("kbd", appauthor=False)


def state_path(explicit: str | None, env: Mapping[str, str]) -> Path:
    """Return where the state directory is, or would be; nothing is made or looked at."""
    named = explicit or env.get("KBD_STATE_DIR")
    return Path(named).expanduser().absolute() if named else platformdirs.user_state_path("kbd", appauthor=False)


def state_dir(explicit: str | None, env: Mapping[str, str]) -> Path:
    """Return the state directory, `--state-dir`, else `$KBD_STATE_DIR`, else the user's, made with mode 0700.

    One that is there is closed to others if it is empty or holds a ledger; any other is left as it is, so that a
    mistaken `--state-dir /` changes nothing.

    Raises:
        UsageError: it cannot be made, is no folder, belongs to another user, or others may write into it.
    """
    path = state_path(explicit, env)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = os.stat(path)
        what = _why_not(path, seen)
        if what is None and seen.st_mode & _OTHERS and _is_state(path):
            path.chmod(0o700)
    except OSError as error:
        hint = "give another one with --state-dir"
        raise UsageError(f"cannot be the state directory ({error.strerror})", where=str(path), hint=hint) from error
    if what is not None:
        hint = f"`chmod 700 {path}` as its owner, or give a directory of its own with --state-dir"
        raise UsageError(f"cannot be the state directory: {what}", where=str(path), hint=hint)
    return path


def _why_not(path: Path, seen: os.stat_result) -> str | None:
    """Say who else could put a link or a file where kbd is about to write; None if nobody."""
    if seen.st_uid != os.geteuid():
        return "it belongs to another user"
    if seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.listdir(path):
        return "others may write into it"
    return None


def _is_state(path: Path) -> bool:
    return not os.listdir(path) or os.path.lexists(path / "ledger.db")
