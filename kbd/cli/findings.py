"""What `kbd init` found on this machine, and the configuration that would come of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path

from kbd.cli.output import emit, safe, short
from kbd.cli.session import Session
from kbd.config import Config, data_dir, parse_config, usual_config
from kbd.config.render import NewBase, NewSource, render_config
from kbd.core.entries import parse
from kbd.service.agents import Root, by_agent, find_agents
from kbd.service.candidates import Candidate, find_candidates
from kbd.service.dating import DateProposal, propose_dates
from kbd.sources.registry import formats
from kbd.store.knowledge_paths import git_root


@dataclass(frozen=True)
class Findings:
    """What was found on this machine, and what would come of it."""

    session: Session
    folder: str
    root: str | None
    roots: tuple[Root, ...]
    candidates: tuple[Candidate, ...]

    @cached_property
    def dates(self) -> list[DateProposal]:
        """The files with what git knows of their undated entries."""
        return [propose_dates(one.path, one.data, parse, self.session.today) for one in self.candidates]

    @property
    def agents(self) -> dict[str, list[Root]]:
        """Agents that have left transcripts."""
        return {agent: roots for agent, roots in by_agent(self.roots).items() if any(root.files for root in roots)}

    @cached_property
    def config_path(self) -> Path:
        """Where the configuration belongs."""
        return (self.session.config_path or usual_config()).absolute()

    @cached_property
    def config_text(self) -> str:
        """The configuration that would be written."""
        return render_config([self._base()], self._sources())

    @cached_property
    def config(self) -> Config:
        """What that text means; raises UsageError."""
        known, session = formats(), self.session
        data = self.config_text.encode("utf-8", "surrogateescape")
        return parse_config(
            data,
            self.config_path,
            roots_of=lambda agent: known[agent].default_roots(session.env, session.home) if agent in known else (),
        )

    def _base(self) -> NewBase:
        if not self.candidates:
            return NewBase("lessons", (self.short(str(data_dir() / "knowledge")) + "/*.md",))
        name = os.path.basename(self.folder) or "lessons"
        # The relations file goes beside the first pattern: that is a folder made for knowledge, if there is one.
        homely_first = sorted(self.candidates, key=lambda one: not one.in_place)
        return NewBase(name, tuple(dict.fromkeys(map(self._pattern, homely_first))), self.short(self.root or ""))

    def _pattern(self, candidate: Candidate) -> str:
        folder, name = os.path.split(candidate.path)
        return f"{self.short(escape(folder))}/*.md" if candidate.in_place else self.short(escape(candidate.path))

    def _sources(self) -> list[NewSource]:
        found = [
            NewSource(agent=agent, remark=", ".join(self.short(root.path) for root in roots))
            for agent, roots in self.agents.items()
        ]
        return found or [NewSource(path=self.short(str(data_dir() / "logs")), remark="whatever agents write in here")]

    def short(self, path: str) -> str:
        """Return a path with `~` for the home."""
        return short(path, self.session.home)


def find(session: Session) -> Findings:
    """Look for agents in their usual places, and for knowledge in the git root of the working directory, else in it."""
    here = os.getcwd()
    root = git_root(here)
    roots = find_agents(formats(), session.env, session.home)
    own = [str(session.state_path), *(one.path for one in roots)]
    candidates, problems = find_candidates(root or here, own)
    for problem in problems:
        emit(f"{safe(problem.where)}: {safe(problem.what)}; {problem.hint}")
    return Findings(session, root or here, root, tuple(roots), tuple(candidates))
