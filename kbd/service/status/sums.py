"""The numbers of status: daemon, sources, bases, relations, decay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta

from kbd.core.decay import Forecast
from kbd.core.model import State
from kbd.core.normal import normalise
from kbd.core.sight import next_run
from kbd.service.status.reasons import USUAL_FAULTS
from kbd.service.status.values import Base, Daemon, Decay, Due, KnownBase, Relations, Sign, Situation, Source
from kbd.store.ledger import standing
from kbd.store.ledger.counts import references_since
from kbd.store.ledger.evidence import Event, overruled_since
from kbd.store.ledger.lessons import EntryRow

SOON_DAYS = 7
RECENT_DAYS = 7


def daemon_of(sign: Sign) -> Daemon:
    """Return which daemon runs; a heartbeat of another process says nothing of it."""
    if sign.pid is None:
        return Daemon(False)
    beat = sign.heartbeat
    if beat is None or beat.pid != sign.pid:
        return Daemon(True, sign.pid or None)
    return Daemon(True, sign.pid, beat.since.astimezone(UTC).isoformat(timespec="seconds"), beat.version)


def source_sums(told: Situation) -> Iterator[Source]:
    """Yield the configured sources, those never read with zeros."""
    seen = set()
    for sums in told.own_sums:
        seen.add(told.configured_name(sums.name))
        yield Source(
            sums.name,
            sums.root,
            sums.files,
            sums.size,
            sums.lag_bytes,
            sums.records,
            sums.messages,
            sums.unknown,
            sums.malformed,
            sums.last_record_at,
        )
    yield from (Source(name, root) for name, root in told.sources.items() if name not in seen)


def base_sums(told: Situation, base: KnownBase) -> Base:
    """Return the sums of a base."""
    if base.row is None or told.ledger is None:
        return Base(base.name, by_state={state.value: 0 for state in State})
    states = Counter(entry.state.value for entry in base.entries)
    types = Counter(entry.type for entry in base.entries)
    refs_7d, refs_30d = (
        references_since(told.ledger.db, base.row.id, told.today - timedelta(days=days - 1)) for days in (7, 30)
    )
    return Base(
        name=base.name,
        entries=len(base.entries),
        by_state={state.value: states[state.value] for state in State},
        by_type=dict(types.most_common()),
        refs_7d=refs_7d,
        refs_30d=refs_30d,
        unmatchable=sum(entry.unmatchable for entry in base.entries if entry.state is not State.ARCHIVED),
        tokens=base.row.tokens,
        pending_writes=len(pending_entries(base)),
    )


def pending_entries(base: KnownBase) -> list[EntryRow]:
    """Return the entries whose file says something else than the ledger."""
    markers = bool(base.policy.marker)
    return [entry for entry in base.entries if entry.differs_from_file(markers=markers)]


def relation_sums(bases: Sequence[KnownBase]) -> Relations:
    """Return the sums of the relations in force."""
    in_force = [r for base in bases for r in base.relations or () if r.e is None]
    live = covered = 0
    for base in bases:
        ends = {end for r in base.relations or () if r.e is None for end in (r.s, r.o)}
        names = ends | {normalise(end) for end in ends}
        entries = [entry for entry in base.entries if entry.state is not State.ARCHIVED]
        live += len(entries)
        covered += sum(not names.isdisjoint((entry.norm, entry.handle, entry.ident)) for entry in entries)
    predicates = Counter(r.p for r in in_force)
    return Relations(len(in_force), dict(predicates.most_common()), round(covered / live, 3) if live else 0.0)


def decay_of(told: Situation) -> Decay:
    """Return when the daily pass ran and runs, and what falls soon."""
    read = [base for base in told.bases if base.row is not None and base.row.first_read is not None]
    last = max((base.row.last_decay for base in read if base.row and base.row.last_decay), default=None)
    runs = [next_run(base.row.last_pass, base.policy.at, told.now, told.zone) for base in read if base.row]
    due = sorted(_due(told), key=lambda one: (one.on, one.base, one.title))
    following = min(runs).isoformat(timespec="seconds") if runs else None
    return Decay(last.isoformat() if last else None, following, tuple(due))


def _due(told: Situation) -> Iterator[Due]:
    horizon = told.today + timedelta(days=SOON_DAYS)
    for base in told.bases:
        for entry in base.entries:
            days = base.forecasts.get(entry.id, Forecast(None, None))
            on, to = (days.dormant_on, State.DORMANT) if days.dormant_on else (days.archived_on, State.ARCHIVED)
            if on is not None and on <= horizon:
                yield Due(entry.title, entry.handle, base.name, to.value, on.isoformat())


def overruled(told: Situation) -> list[Event]:
    """Return the hand edits that were overruled in the last seven days, newest first."""
    since = told.today - timedelta(days=RECENT_DAYS - 1)
    return overruled_since(told.ledger.db, since.isoformat()) if told.ledger else []


def deferred(told: Situation) -> dict[str, str]:
    """Return why files are not written yet, by path."""
    return {p.where: p.what for p in (standing.faults(told.ledger.db) if told.ledger else ()) if p.code in USUAL_FAULTS}
