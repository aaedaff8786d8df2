"""A base as the reading commands know it: its entries, the days to come, its relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from kbd.config import BaseConfig, Config
from kbd.config.policies import decay_policy
from kbd.core.decay import DecayPolicy, Forecast, forecast
from kbd.errors import UsageError
from kbd.service.lifecycle import subjects_of
from kbd.service.relating import Related, read_relations
from kbd.store.ledger import Ledger
from kbd.store.ledger.lessons import EntryRow, entries_of
from kbd.store.ledger.survey import BaseRow, base_rows


@dataclass(frozen=True, slots=True)
class Known:
    """A base; `row` is None and all else empty if it was never read. `forecasts` go by the ids of the entries."""

    name: str
    policy: DecayPolicy
    row: BaseRow | None
    entries: Sequence[EntryRow]
    forecasts: Mapping[int, Forecast]
    related: Related


def chosen_bases(config: Config, name: str | None) -> Sequence[BaseConfig]:
    """Return the base of a name, or all; raises UsageError if there is none of the name."""
    bases = [base for base in config.bases if name in (None, base.name)]
    if not bases:
        known = ", ".join(base.name for base in config.bases)
        raise UsageError(f"no base is named {name!r}", hint=f"known: {known}")
    return bases


def known_bases(ledger: Ledger | None, config: Config, bases: Iterable[BaseConfig], today: date) -> list[Known]:
    """Return the bases with all their entries."""
    rows = base_rows(ledger.db) if ledger else {}
    return [_known(ledger, decay_policy(config, base), base, rows.get(base.name), today) for base in bases]


def _known(ledger: Ledger | None, policy: DecayPolicy, base: BaseConfig, row: BaseRow | None, today: date) -> Known:
    related = read_relations(base.relations)
    if ledger is None or row is None:
        return Known(base.name, policy, None, (), {}, related)
    subjects = subjects_of(ledger.db, row.id, policy, related.relations or (), today)
    forecasts = {int(subject.id): forecast(subject, policy, today) for subject in subjects}
    return Known(base.name, policy, row, entries_of(ledger.db, row.id), forecasts, related)
