"""What status is told, and what it says; the fields of what it says are the keys of `kbd status --json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo

from kbd.core.decay import DecayPolicy, Forecast
from kbd.core.model import Problem, Relation
from kbd.core.sight import Sight
from kbd.store.heartbeat import Heartbeat
from kbd.store.ledger import Ledger
from kbd.store.ledger.lessons import EntryRow
from kbd.store.ledger.survey import BaseRow, SourceSums


@dataclass(frozen=True, slots=True)
class Reason:
    """Why health is not ok: a stable code, the fault with its place, what to do."""

    code: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Daemon:
    """Whether a daemon runs, and which; times ISO, UTC."""

    running: bool
    pid: int | None = None
    since: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A source as read so far: `files`, `bytes`, `lag_bytes` of what is there, the rest of all that was read."""

    name: str
    root: str
    files: int = 0
    bytes: int = 0
    lag_bytes: int = 0
    records: int = 0
    messages: int = 0
    unknown: int = 0
    malformed: int = 0
    last_record_at: str | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """A base: all entries that stand in its files and archives, by state and type; `unmatchable` of the live ones."""

    name: str
    entries: int = 0
    by_state: Mapping[str, int] = field(default_factory=dict)
    by_type: Mapping[str, int] = field(default_factory=dict)
    refs_7d: int = 0
    refs_30d: int = 0
    unmatchable: int = 0
    tokens: int = 0
    pending_writes: int = 0


@dataclass(frozen=True, slots=True)
class Relations:
    """Relations in force of all bases; `coverage`: the part of the live entries that has one, 0 to 1."""

    total: int
    by_predicate: Mapping[str, int]
    coverage: float


@dataclass(frozen=True, slots=True)
class Due:
    """An entry that falls soon if nobody cites it: `to` is its next state, `on` the day."""

    title: str
    handle: str
    base: str
    to: str
    on: str


@dataclass(frozen=True, slots=True)
class Decay:
    """The daily pass: `last_run` a day, `next_run` a time; what falls within seven days, soonest first."""

    last_run: str | None
    next_run: str | None
    due: tuple[Due, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """The shape of `kbd status --json`, its version aside."""

    health: str
    reasons: tuple[Reason, ...]
    daemon: Daemon
    sources: tuple[Source, ...]
    bases: tuple[Base, ...]
    relations: Relations
    decay: Decay
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """What is known of the daemon: `pid` of the one that runs (None: none), its heartbeat, why that is missing.

    `pause` says until when it was told to rest; "" if it was not.
    """

    pid: int | None
    heartbeat: Heartbeat | None = None
    problem: Problem | None = None
    pause: str = ""


@dataclass(frozen=True, slots=True)
class KnownBase:
    """A base as the edge knows it.

    Attributes:
        row: None if it was never read.
        entries: those that stand in its files and archives; `forecasts` by their ids.
        relations: None if the file cannot be read; `problems`: what is wrong with it.
    """

    name: str
    policy: DecayPolicy
    row: BaseRow | None
    entries: Sequence[EntryRow]
    forecasts: Mapping[int, Forecast]
    relations: Sequence[Relation] | None
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class Situation:
    """All that status is told.

    Attributes:
        ledger: None if there is none yet.
        sources: name → root of the configured sources ("" where only the agent's usual folders are meant).
        sums: of the sources that were read; `alarms`: the names of those in format alarm.
        sight: whether decay may let anything fall.
        config_problems: what the configuration accepts without effect.
        now: time of the question; `real_now`: the real clock, against which the daemon's own times are held.
        zone: of the user, for the hour of the daily pass.
        stalled_seconds: a daemon silent for longer is stuck.
        version: of kbd, and `config`: digest of the configuration, as they are installed now.
    """

    ledger: Ledger | None
    bases: Sequence[KnownBase]
    sources: Mapping[str, str]
    sums: Sequence[SourceSums]
    alarms: Set[str]
    sight: Sight
    sign: Sign
    config_problems: Sequence[Problem]
    now: datetime
    real_now: datetime
    zone: tzinfo
    stalled_seconds: float = 600
    version: str = ""
    config: str = ""

    @property
    def today(self) -> date:
        """The UTC day of the question."""
        return self.now.astimezone(UTC).date()

    @property
    def blind_days(self) -> int:
        """Days without any record after which kbd has no sight."""
        return min((base.policy.blind_days for base in self.bases), default=DecayPolicy().blind_days)

    @property
    def is_new(self) -> bool:
        """No base was read before today: nothing can fade yet, and that nothing was written yet is no fault."""
        firsts = [base.row.first_read for base in self.bases if base.row is not None]
        return all(first is None or first >= self.today for first in firsts)

    @property
    def own_sums(self) -> list[SourceSums]:
        """The sums of the sources that are configured."""
        return [sums for sums in self.sums if self.configured_name(sums.name)]

    def configured_name(self, name: str) -> str | None:
        """Return the configured source behind one of the ledger: the second root of `codex` is `codex-2` there."""
        stem = re.sub(r"-[0-9]+\Z", "", name)
        return next((known for known in (name, stem) if known in self.sources), None)
