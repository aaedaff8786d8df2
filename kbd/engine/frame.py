"""What lives as long as the process, and what a pass reports."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import lru_cache
from pathlib import Path

from kbd.config import BaseConfig, Config, SourceConfig
from kbd.config.policies import decay_policy, entry_types
from kbd.core.decay import DecayPolicy
from kbd.core.model import Problem
from kbd.engine.naming import base_ids, session_prefix, source_number
from kbd.errors import LockTimeout
from kbd.service.ingest import SourceSpec
from kbd.service.knowledge import BaseSpec
from kbd.sources.registry import formats
from kbd.store.knowledge_paths import git_root, names_of_folder
from kbd.store.ledger import Ledger
from kbd.store.locks import Locks
from kbd.store.scan import excluded_folder
from kbd.store.writers import Sightings, decode_sightings, path_beside

_WILDCARD = re.compile(r"[*?\[]")
PASS_WAIT_SECONDS = 20.0
"""So long a pass waits for locks, whatever the number of files whose locks are held."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The times of a pass: `now` may be given by the user, `real` is the real clock in seconds since the epoch."""

    now: datetime
    real: float
    zone: tzinfo


@dataclass(slots=True)
class PassReport:
    """What a pass did.

    Attributes:
        files: transcripts looked into; records, citing: what they gave; read_bytes: their bytes.
        written: entries whose values were written into files.
        transitions: entries that changed their state.
        scan_seconds: processor time that the full scan took, reading aside; 0 if only hints were followed.
        complete: nothing more was there to be read when the pass ended.
        full: all sources were looked at, not only what events named.
        problems: what went wrong, by value.
    """

    files: int = 0
    records: int = 0
    citing: int = 0
    read_bytes: int = 0
    written: int = 0
    transitions: int = 0
    scan_seconds: float = 0.0
    complete: bool = True
    full: bool = False
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Watchers:
    """How a pass is watched: asked whether to stop between steps, told of each step that made progress."""

    stop: Callable[[], bool] = lambda: False
    beat: Callable[[PassReport], None] = lambda report: None


@dataclass(slots=True)
class Patience:
    """How long a pass waits for locks that others hold: all its files together not for long, once told to stop no more.

    Each wait is short and ends, so the pass is alive meanwhile.
    """

    stop: Callable[[], bool] = lambda: False
    beat: Callable[[], None] = lambda: None
    left: float = PASS_WAIT_SECONDS

    def renew(self, stop: Callable[[], bool], beat: Callable[[], None]) -> None:
        """Begin a pass."""
        self.stop, self.beat, self.left = stop, beat, PASS_WAIT_SECONDS

    def wait(self, seconds: float) -> None:
        """Wait between two attempts; raises LockTimeout if it has been long enough."""
        if self.stop() or self.left <= 0:
            raise LockTimeout("locked by another process", hint="kbd tries again at its next pass")
        self.left -= seconds
        self.beat()
        time.sleep(seconds)


class Frame:
    """Ledger, locks and configuration of a process."""

    def __init__(self, config: Config, state_dir: Path, env: Mapping[str, str], home: str, ledger: Ledger) -> None:
        """Hold these; the ledger is open for writing."""
        self.config, self.state_dir, self.env, self.home, self.ledger = config, state_dir, env, home, ledger
        self.patience = Patience()
        self.locks = Locks(state_dir, self.patience.wait)
        self.git_root = lru_cache(maxsize=1024)(git_root)
        self.names_of_folder = lru_cache(maxsize=1024)(names_of_folder)

    def bases(self) -> list[tuple[BaseConfig, BaseSpec]]:
        """Return the bases of the config with their ids."""
        ids = base_ids(self.ledger, self.config.bases)
        types, signals = entry_types(self.config), dict(self.config.types)
        marker, sidecars = self.config.decay.marker, self.config.write.counters == "sidecar"
        return [
            (base, BaseSpec(ids[base.name], base.name, types, signals, marker, bool(self.sightings(base)), sidecars))
            for base in self.config.bases
        ]

    def sightings(self, base: BaseConfig) -> Sightings:
        """Return the other writers that were last seen beside a base; none that writing is shared with."""
        if self.config.write.shared:
            return {}
        return decode_sightings(self.ledger.meta(f"writers:{path_beside(base.relations)}"))

    def sources(self) -> Iterator[tuple[SourceConfig, SourceSpec]]:
        """Yield each root of each source with its id.

        An agent without a given root is read at each of its usual places that is there, or, so that its absence is
        said, at the first.
        """
        configured = {config.name for config in self.config.sources}
        for config in self.config.sources:
            form = formats().get(config.agent or config.format or "text")
            if form is None:
                continue
            is_excluded = _excluded_by_any_name(config.exclude)
            roots = [config.folder] if config.folder else form.default_roots(self.env, self.home)
            there = [i for i, root in enumerate(roots) if os.path.lexists(root)] or [0]
            for i, root in ((i, roots[i]) for i in there if roots):
                name = config.name if i == 0 else f"{config.name}-{i + 1}"
                number = source_number(self.ledger, name, root, form.agent, configured)
                is_text = form.agent == "text"
                prefix = session_prefix(self.ledger, number, name) if is_text else name
                yield config, SourceSpec(number, name, root, form, is_text, is_excluded, prefix)

    def decay_policy(self, base: BaseConfig) -> DecayPolicy:
        """Return the limits of decay for a base."""
        return decay_policy(self.config, base)


def _excluded_by_any_name(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of working directories that holds for their names, and the globs, as links lead on."""
    if not globs:
        return lambda _: False
    is_excluded = excluded_folder([*globs, *map(_followed, globs)])
    return lru_cache(maxsize=1024)(lambda folder: is_excluded(folder) or is_excluded(os.path.realpath(folder)))


def _followed(glob: str) -> str:
    """Return an absolute glob with the links before its first wildcard followed."""
    wild = _WILDCARD.search(glob)
    folder = glob[: wild.start()].rpartition("/")[0] if wild else glob
    return os.path.realpath(folder) + glob[len(folder) :] if folder.startswith("/") else glob
