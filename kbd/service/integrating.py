"""Hooks in the settings of agents on this machine: offered as a diff, written on a yes, taken out again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from importlib import resources

from kbd.core.hooking import with_hooks, without_hooks
from kbd.errors import ChangedUnderneath
from kbd.store.unitfiles import read_unit, write_unit

PLUGIN = b'"kbd@kbd"'
"""Settings that name the plugin have the hooks by it; a second set would hand out everything twice."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that has hooks: its name, the file they stand in, and whether its folder is there."""

    name: str
    path: str
    is_there: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """A change of an agent's settings: what they are (None: no such file) and would be."""

    agent: str
    path: str
    before: bytes | None
    after: bytes

    def diff(self, shown: str) -> list[str]:
        """Return the change as a unified diff without line ends; `shown` names the file."""
        before, after = ((data or b"").decode("utf-8", "replace").split("\n") for data in (self.before, self.after))
        return list(unified_diff(before, after, shown, shown, lineterm="", n=1))


def agents(env: Mapping[str, str], home: str) -> Iterator[Agent]:
    """Yield the agents whose hooks are known: Claude Code's `settings.json`, Codex's `hooks.json`."""
    claude = env.get("CLAUDE_CONFIG_DIR", "").split(",")[0].strip() or f"{home}/.claude"
    codex = env.get("CODEX_HOME") or f"{home}/.codex"
    for name, folder, file in (("claude-code", claude, "settings.json"), ("codex", codex, "hooks.json")):
        yield Agent(name, os.path.join(folder, file), os.path.isdir(folder))


def folder() -> str:
    """Return where the plugin, the hooks and the snippet for other agents lie."""
    packaged = str(resources.files("kbd") / "integrations")
    beside = os.path.join(os.path.dirname(os.path.dirname(packaged)), "integrations")
    return packaged if os.path.isdir(packaged) else beside


def offer(agent: Agent) -> Offer | None:
    """Return what kbd's hooks would change; None if the settings have none of the form that can be added to.

    An offer with `before == after` says that they are there.

    Raises:
        FileUnreadable: the settings are there and cannot be read.
    """
    before = read_unit(agent.path)
    with open(os.path.join(folder(), "codex", "hooks.json"), encoding="utf-8") as file:
        ours = json.load(file)["hooks"]  # both agents take the same
    has_plugin = PLUGIN in (before or b"")
    after = before if has_plugin else with_hooks(before or b"", ours)
    return None if after is None else Offer(agent.name, agent.path, before, after)


def removal(agent: Agent) -> Offer | None:
    """Return what taking kbd's hooks out would change; None if there is nothing to take out. Raises as `offer`."""
    before = read_unit(agent.path)
    after = without_hooks(before) if before is not None else None
    return None if after is None or after == before else Offer(agent.name, agent.path, before, after)


def write(change: Offer) -> None:
    """Write what was shown.

    Raises:
        ChangedUnderneath: the file is not the one that was shown.
        FileUnreadable, FileUnwritable: nothing was written.
    """
    if read_unit(change.path) != change.before:
        raise ChangedUnderneath("changed since it was shown", where=change.path, hint="run it again")
    write_unit(change.path, change.after)
