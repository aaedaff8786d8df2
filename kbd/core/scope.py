"""Which sessions a base earns from: all, or those that work inside its projects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BaseScope:
    """A base by its id; all sessions if `projects` is empty, else those whose cwd or git root lies inside one."""

    id: int
    projects: tuple[str, ...]

    def takes(self, folders: Iterable[str]) -> bool:
        """Tell whether one of the folders of a session is a project, or lies inside one."""
        return any(folder == p or folder.startswith(p.rstrip("/") + "/") for folder in folders for p in self.projects)
