"""A base as the reading commands know it: its entries, the days to come, its relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from kbd.cli.session import Session
from kbd.config import BaseConfig, Config
from kbd.config.policies import decay_policy
from kbd.core.decay import DecayPolicy, Forecast, forecasts
from kbd.errors import UsageError
from kbd.service.lifecycle import subjects_of
from kbd.store import relations_cache
from kbd.store.ledger import Ledger
from kbd.store.ledger.lessons import EntryRow, entries_of
from kbd.store.ledger.survey import BaseRow, base_rows
from kbd.store.relations_cache import Related


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


def known_bases(session: Session, ledger: Ledger | None, bases: Iterable[BaseConfig]) -> list[Known]:
    """Return the bases with all their entries."""
    rows = base_rows(ledger.db) if ledger else {}
    known = []
    for base in bases:
        related = recalled_relations(session, base.relations)
        policy = decay_policy(session.config, base)
        known.append(_known(ledger, policy, base.name, rows.get(base.name), related, session.today))
    return known


def recalled_relations(session: Session, path: str) -> Related:
    """Read a relations file, or recall what it held when it was last read."""
    if relations_cache.is_absent(path):
        return Related((), ())
    copy = relations_cache.recall(session.state_dir, path)
    if copy is not None:
        return Related(copy.relations, copy.problems)
    from kbd.service.relating import read_relations  # noqa: PLC0415 - the parser costs a seventh of `kbd status`

    identity = relations_cache.identity_of(path)
    related = read_relations(path)
    if identity is not None and related.relations is not None:
        made = relations_cache.Copy(identity, related.relations, related.problems)
        relations_cache.keep(session.state_dir, made, session.real_now())
    return related


def _known(
    ledger: Ledger | None, policy: DecayPolicy, name: str, row: BaseRow | None, related: Related, today: date
) -> Known:
    if ledger is None or row is None:
        return Known(name, policy, None, (), {}, related)
    entries = entries_of(ledger.db, row.id)
    subjects = subjects_of(ledger.db, row.id, policy, related.relations or (), today, entries)
    # Nothing falls before the next pass, and a day that has had its pass gets no second one.
    start = today if row.last_pass is None else max(today, row.last_pass + timedelta(days=1))
    days = forecasts(subjects, policy, start)
    return Known(name, policy, row, entries, {int(entry): one for entry, one in days.items()}, related)
