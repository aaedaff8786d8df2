"""Letting entries fade and come back: the daily pass, and revivals at once.

The plan is made by `kbd.core.decay`; here it gets its facts from the ledger, and what it decides is recorded there
in one transaction. Files follow by projection and by archive moves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from kbd.core.decay import DecayPolicy, Plan, Subject, Transition, plan, revival
from kbd.core.model import EntryId, Relation, State
from kbd.core.normal import normalise
from kbd.core.sight import Activity, IdleClock, Sight, SourceHealth, assess_sight, day_has_begun
from kbd.store.ledger import Ledger, lessons
from kbd.store.ledger.activity import active_days, newest_by_source
from kbd.store.ledger.lessons import EntryRow, day
from kbd.store.notes import is_archive

ALARM_RECORDS = 50
ALARM_MALFORMED = 0.01
ALARM_UNKNOWN = 0.2
"""A source is in format alarm when of at least 50 records more than 1 % are malformed or 20 % of unknown kind."""


_CITED_ASLEEP = """
  SELECT e.id FROM entries e WHERE e.base=? AND e.state!='active' AND e.gone_on IS NULL
    AND (SELECT count(*) FROM refs r WHERE r.entry=e.id AND r.added=1) > e.fall_refs
"""


NO_BASE = 0
"""No base has this id: one that was never read may earn from all sources."""


@dataclass(frozen=True, slots=True)
class SourceSight:
    """What lifecycle must know of a source beyond the ledger: it can be read now, and it understands what it reads."""

    name: str
    readable: bool
    format_alarm: bool


@dataclass(frozen=True, slots=True)
class Decayed:
    """A daily pass: its plan, and whether it was recorded. Not recorded: a dry run, or the day has had its pass."""

    plan: Plan
    recorded: bool


def revive(
    ledger: Ledger, base: int, policy: DecayPolicy, relations: Sequence[Relation], now: datetime
) -> tuple[Transition, ...]:
    """Make cited dormant and archived entries active at once; idempotent. Needs no sight."""
    called = {row[0] for row in ledger.db.execute(_CITED_ASLEEP, (base,))}
    if not called:
        return ()
    rows, clock = lessons.entries_of(ledger.db, base), _clock(ledger.db, base, policy, now.date())
    subjects = _subjects(ledger.db, [r for r in rows if r.id in called], rows, relations, clock, now.date())
    steps = [step for subject in subjects if (step := revival(subject, policy, now.date())) is not None]
    if steps:
        with ledger.transaction() as db:
            _record(ledger, db, base, steps, now)
    return tuple(steps)


def decay(
    ledger: Ledger,
    base: int,
    policy: DecayPolicy,
    relations: Sequence[Relation],
    sources: Iterable[SourceSight],
    now: datetime,
    *,
    dry_run: bool = False,
) -> Decayed:
    """Plan the pass of a day and, unless it is a dry run or the day has had its pass, record it.

    The day is recorded as done even if nothing may fall, so that sight that comes back later in the day does not
    let a second pass run. Plan and record are one transaction: of two processes at once, one runs the pass.
    """
    today = now.date()
    if dry_run:
        sight = see(ledger.db, base, sources, policy, today)
        return Decayed(plan(subjects_of(ledger.db, base, policy, relations, today), policy, today, sight), False)
    with ledger.transaction() as db:
        sight = see(db, base, sources, policy, today)
        result = plan(subjects_of(db, base, policy, relations, today), policy, today, sight)
        if not day_has_begun(last_pass(db, base), now):
            return Decayed(result, recorded=False)
        _record(ledger, db, base, result.transitions, now)
        db.execute("UPDATE bases SET last_decay=? WHERE id=?", (today.isoformat(), base))
        if not sight.ok:
            ledger.record_event(
                now, "no_sight", base=base, detail="; ".join(f"{p.where}: {p.what}" for p in sight.reasons)
            )
    return Decayed(result, recorded=True)


def last_pass(db: sqlite3.Connection, base: int) -> date | None:
    """Return the day of a base's last pass; before the first, the day it waits for; None if it was never read whole."""
    row = db.execute("SELECT last_decay, decay_after FROM bases WHERE id=?", (base,)).fetchone()
    return day(row["last_decay"]) or day(row["decay_after"])


def subjects_of(
    db: sqlite3.Connection,
    base: int,
    policy: DecayPolicy,
    relations: Sequence[Relation],
    today: date,
    rows: Sequence[EntryRow] | None = None,
) -> list[Subject]:
    """Return all entries of a base as decay sees them; `rows` are those entries, where they are known already."""
    rows = lessons.entries_of(db, base) if rows is None else rows
    return _subjects(db, rows, rows, relations, _clock(db, base, policy, today), today)


def _subjects(
    db: sqlite3.Connection,
    rows: Sequence[EntryRow],
    everyone: Sequence[EntryRow],
    relations: Sequence[Relation],
    clock: IdleClock,
    today: date,
) -> list[Subject]:
    superseded = _superseded(everyone, relations)
    counted = dict(tuple(r) for r in db.execute("SELECT entry, count(*) FROM refs WHERE added=1 GROUP BY entry"))
    return [_subject(row, superseded, counted.get(row.id, 0) > row.fall_refs, clock, today) for row in rows]


def _subject(
    row: EntryRow, superseded: Mapping[str, date | None], cited_anew: bool, clock: IdleClock, today: date
) -> Subject:
    dates = [d for d in (row.last, row.created, row.active_since) if d is not None and d <= today]
    return Subject(
        id=EntryId(row.id),
        title=row.title,
        type=row.type,
        section=row.section,
        state=row.state,
        ref=row.ref,
        last=row.last,
        created=row.created,
        dormant_since=row.dormant_since,
        pinned=row.pinned,
        superseded_by_live=row.norm in superseded,
        superseded_on=superseded.get(row.norm),
        active_since=row.active_since,
        cited_anew=cited_anew,
        future_or_bad_date=row.bad_date,
        blind_days=clock.blind_days(max(dates), today) if dates else 0,
    )


def _superseded(rows: Sequence[EntryRow], relations: Sequence[Relation]) -> dict[str, date | None]:
    """Return normalised title → day, for what a live entry supersedes; of several, the last one to do so."""
    if not any(relation.p == "supersedes" for relation in relations):
        return {}
    live = {r.norm: r for r in rows if r.state is not State.ARCHIVED}
    names = {key: r.norm for r in rows for key in (r.norm, r.handle, r.ident) if key}
    found: dict[str, date | None] = {}
    for relation in relations:
        if relation.p != "supersedes" or relation.e is not None:
            continue
        newer, older = (names.get(normalise(end)) or names.get(end) for end in (relation.s, relation.o))
        if newer in live and older is not None and older != newer:
            on, earlier = relation.c or relation.u, found.get(older, date.min)
            found[older] = max(on, earlier) if on and earlier else None
    return found


def _clock(db: sqlite3.Connection, base: int, policy: DecayPolicy, today: date) -> IdleClock:
    first = db.execute("SELECT first_read FROM bases WHERE id=?", (base,)).fetchone()[0]
    first_read = date.fromisoformat(first) if first else today
    days, active_only = active_days(db, base), policy.clock == "active"
    return IdleClock.of(days, first_read, today, blind_days=policy.blind_days, active_only=active_only)


def see(db: sqlite3.Connection, base: int, sources: Iterable[SourceSight], policy: DecayPolicy, today: date) -> Sight:
    """Assess whether kbd would have seen citations of a base lately. Days ahead, of a wild clock, do not count."""
    limited = db.execute("SELECT name FROM bases WHERE id=? AND limited", (base,)).fetchone()
    whence = f"in the projects of {limited[0]}" if limited else "from any source"
    newest = newest_by_source(db, base, today)
    since = (today - timedelta(days=policy.blind_days - 1)).isoformat()
    sessions = db.execute(
        "SELECT count(*) FROM seen_sessions WHERE day BETWEEN ? AND ?", (since, today.isoformat())
    ).fetchone()[0]
    cited = db.execute("SELECT count(*) FROM refs WHERE day BETWEEN ? AND ?", (since, today.isoformat())).fetchone()[0]
    healths = tuple(SourceHealth(s.name, newest.get(s.name), s.readable, s.format_alarm) for s in sources)
    return assess_sight(Activity(healths, int(sessions), int(cited), whence), policy.blind_days, today)


def see_any(
    db: sqlite3.Connection, bases: Iterable[int], sources: Sequence[SourceSight], policy: DecayPolicy, today: date
) -> Sight:
    """Assess the same for several bases: every reason why entries of one of them may not fall."""
    reasons = dict.fromkeys(p for base in [*bases] or [NO_BASE] for p in see(db, base, sources, policy, today).reasons)
    return Sight(not reasons, tuple(reasons))


def format_alarms(db: sqlite3.Connection) -> set[str]:
    """Return the names of sources that understand too little of what they read: their silence proves nothing."""
    # Grouped by a column of an index: to group what is joined, SQLite holds all rows in memory.
    rows = db.execute(
        "SELECT s.name, f.n, f.u, f.m FROM sources s JOIN (SELECT source, sum(records) AS n, sum(unknown) AS u, "
        "sum(malformed) AS m FROM files WHERE gone=0 GROUP BY source) f ON f.source=s.id"
    )
    return {
        r["name"]
        for r in rows
        if r["n"] >= ALARM_RECORDS and (r["m"] > ALARM_MALFORMED * r["n"] or r["u"] > ALARM_UNKNOWN * r["n"])
    }


def _record(ledger: Ledger, db: sqlite3.Connection, base: int, steps: Iterable[Transition], now: datetime) -> None:
    for step in steps:
        row = lessons.entry_row(db, int(step.entry))
        today = now.date()
        lessons.set_state(db, row.id, step.after, today, archive=is_archive(row.file))
        # Unlike a person, kbd lets idle run on, and a dormant entry has its time to serve.
        since = {"dormant_since": today} if step.after is State.DORMANT else {}
        lessons.update_entry(db, row.id, active_since=row.active_since, **since)
        idle = "no date" if step.idle_days is None else f"{step.idle_days} day{'' if step.idle_days == 1 else 's'}"
        ledger.record_event(
            now,
            f"to_{step.after.value}",
            base=base,
            entry=row.id,
            title=row.title,
            detail=f"{step.reason.value}: {idle}, was {row.state.value}",
        )
