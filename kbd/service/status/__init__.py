"""How kbd fares: health with every reason, sources, bases, what is due and what is pending.

values    what status is told, and what it says
reasons   why health is not ok
sums      the numbers
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbd.core.decay import dates_ahead
from kbd.core.model import Problem
from kbd.service.status.reasons import reasons_of, standing_faults
from kbd.service.status.sums import base_sums, daemon_of, decay_of, overruled, relation_sums, source_sums
from kbd.service.status.values import Situation, Status
from kbd.store.ledger.survey import note_problems

__all__ = ["assess"]


def assess(told: Situation) -> Status:
    """Return the status. Health is `down` without a daemon, `degraded` with any other reason, else `ok`."""
    faults = standing_faults(told)
    reasons = tuple(reasons_of(told, faults))
    return Status(
        health="down" if told.sign.pid is None else "degraded" if reasons else "ok",
        reasons=reasons,
        daemon=daemon_of(told.sign),
        sources=tuple(source_sums(told)),
        bases=tuple(base_sums(told, base) for base in told.bases),
        relations=relation_sums(told.bases),
        decay=decay_of(told),
        problems=tuple(_problems(told, faults)),
    )


def _problems(told: Situation, faults: Sequence[Problem]) -> Iterator[Problem]:
    yield from faults
    yield from told.config_problems
    if told.sign.problem is not None:
        yield told.sign.problem
    if told.ledger is not None:
        yield from note_problems(told.ledger.db, {base.row.id for base in told.bases if base.row})
    for base in told.bases:
        yield from (p for p in base.problems if p.code != "relations_unreadable")
        for row in base.entries:
            yield from dates_ahead(f"{row.file}:{row.line}", row.created, row.file_last, told.today)
    for sums in told.own_sums:
        if sums.oversize:
            yield Problem(
                "record_oversize",
                sums.name,
                f"{sums.oversize} records are over the limit and were skipped",
                "raise scan.max_record_mib if they matter",
            )
    for event in overruled(told):
        yield Problem("overruled", event.title, event.detail, "`kbd set` changes it for good")
