"""The settings of agents with kbd's hooks put in or taken out; all else of them stays, in its order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

MARK = "kbd hook "
"""Part of the command of each of kbd's hooks, by which they are known."""
Json = dict[str, object]


def with_hooks(settings: bytes, ours: Mapping[str, Sequence[object]]) -> bytes | None:
    """Return an agent's settings with kbd's hooks after those that are there; idempotent.

    Args:
        settings: JSON with hooks by event under `hooks`, as Claude Code and Codex keep them; b"" for none.
        ours: event → the matchers to add.

    Returns:
        The bytes, the same ones if the hooks are there; None if the settings are not of this form, which a change
        could damage.
    """
    read = _read(settings)
    hooks = read.setdefault("hooks", {}) if read is not None else None
    if read is None or not isinstance(hooks, dict):
        return None
    changed = False
    for event, matchers in ours.items():
        there = hooks.setdefault(event, [])
        if not isinstance(there, list):
            return None
        if not any(map(_is_own, there)):
            there.extend(matchers)
            changed = True
    return _written(read, settings) if changed else settings


def without_hooks(settings: bytes) -> bytes | None:
    """Return an agent's settings without kbd's hooks; None if they are not of the form that `with_hooks` knows."""
    read = _read(settings)
    hooks = read.get("hooks", {}) if read is not None else None
    if read is None or not isinstance(hooks, dict) or not all(isinstance(one, list) for one in hooks.values()):
        return None
    kept = {event: [one for one in there if not _is_own(one)] for event, there in hooks.items()}
    if kept == hooks:
        return settings
    kept = {event: there for event, there in kept.items() if there or not hooks[event]}
    if kept:
        read["hooks"] = kept
    else:
        del read["hooks"]
    return _written(read, settings)


def _is_own(matcher: object) -> bool:
    """Tell whether a matcher runs a hook of kbd; one that runs others as well is the user's own work."""
    commands = matcher.get("hooks") if isinstance(matcher, dict) else None
    if not isinstance(commands, list) or not commands:
        return False
    return all(isinstance(one, dict) and str(one.get("command", "")).startswith(MARK) for one in commands)


def _read(settings: bytes) -> Json | None:
    try:
        read = json.loads(settings.decode("utf-8")) if settings.strip() else {}
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _written(settings: Json, before: bytes) -> bytes:
    """Return JSON indented as it was: by a tab, four spaces or, by default, two."""
    second = before.decode("utf-8").partition("\n")[2]
    indent: int | str = "\t" if second.startswith("\t") else 4 if second.startswith(" " * 4) else 2
    return (json.dumps(settings, indent=indent, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
