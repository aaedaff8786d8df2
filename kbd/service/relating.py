"""Relations on disk: those that grew from citations are written, a file that cannot be read is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

from kbd.core import relyaml
from kbd.core.model import Problem, Relation
from kbd.core.relate import archivable, expire
from kbd.errors import ChangedUnderneath, FileUnreadable, LockTimeout, Refused
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, growth
from kbd.store.ledger.lessons import day
from kbd.store.locks import Locks
from kbd.store.relations import move_to_archive
from kbd.store.relations_cache import Related
from kbd.store.rewrite import Deferred, Quiet, Unchanged, Written, rewrite

MAX_BYTES = 16 << 20


def read_relations(path: str) -> Related:
    """Read a relations file; one that is not there holds none."""
    try:
        parsed = relyaml.parse(read_regular(path, MAX_BYTES), path)
    except FileNotFoundError:
        return Related((), ())
    except FileUnreadable as exc:
        return Related(None, (_unreadable(path, exc),))
    return Related(parsed.relations, parsed.problems)


def write_relations(
    ledger: Ledger, locks: Locks, base: int, path: str, quiet_seconds: float, real_now: float
) -> list[Problem]:
    """Write the relations that changed since they were last written; on a fault nothing is, and they stay due."""
    due = _due(ledger, base)
    if not due:
        return []
    problem = _attempt(
        path,
        lambda: rewrite(
            path, lambda data: _merged(data, due, path), locks, quiet_seconds=quiet_seconds, now=real_now, create=True
        ),
    )
    if problem is not None:
        return [problem]
    with ledger.transaction() as db:
        db.executemany(
            "UPDATE relations SET dirty=0 WHERE base=? AND s=? AND p=? AND o=? AND u IS ? AND e IS ?",
            [(base, r.s, r.p, r.o, _text(r.u), _text(r.e)) for r in due],
        )
    return []


def age(
    ledger: Ledger, locks: Locks, base: int, path: str, relations: Sequence[Relation], today: date, real_now: float
) -> list[Problem]:
    """Let relations expire that nobody used for a year; what expired a year ago moves to the archive (SPEC 7).

    Once a day is enough; doing it again changes nothing. What expires is written with the next projection.
    """
    changed = [change.after for change in expire(relations, today)]
    if changed:
        with ledger.transaction() as db:
            growth.age_relations(db, base, changed)
    old = archivable(relations, today)
    if not old:
        return []
    problem = _attempt(path, lambda: move_to_archive(path, old, locks, Quiet(real_now, 0)))
    if problem is not None:
        return [problem]
    with ledger.transaction() as db:
        growth.forget_relations(db, base, old)
    return []


def _attempt(path: str, change: Callable[[], Written | Unchanged | Deferred]) -> Problem | None:
    """Change a relations file; return why it could not be changed, None if it was."""
    try:
        outcome = change()
    except FileUnreadable as exc:
        return _unreadable(path, exc)
    except (LockTimeout, ChangedUnderneath) as exc:
        return Problem("write_deferred", path, exc.what, exc.hint or "kbd tries again")
    except Refused as exc:
        return Problem("relations_refused", path, exc.what, exc.hint)
    if isinstance(outcome, Deferred):
        return Problem("write_deferred", path, outcome.reason, "kbd writes it as soon as it may")
    return None


def _text(value: date | None) -> str | None:
    return value.isoformat() if value else None


def _due(ledger: Ledger, base: int) -> list[Relation]:
    rows = ledger.db.execute(
        "SELECT s, p, o, c, u, e FROM relations WHERE base=? AND dirty=1 ORDER BY s, p, o", (base,)
    )
    return [Relation(r["s"], r["p"], r["o"], day(r["c"]), day(r["u"]), day(r["e"])) for r in rows]


def _merged(data: bytes, due: list[Relation], path: str) -> bytes:
    """Return the file with the due relations; a newer `u` that stands there stays."""
    there = {relyaml.triple(r): r for r in relyaml.parse(data, path).relations} if data else {}
    changes = []
    for relation in due:
        old = there.get(relyaml.triple(relation))
        newest = max((r.u for r in (relation, old) if r is not None and r.u is not None), default=None)
        changes.append(replace(relation, u=newest))
    return relyaml.upsert(data, changes, path)


def _unreadable(path: str, exc: FileUnreadable) -> Problem:
    return Problem(
        "relations_unreadable", path, exc.what, exc.hint or "mend the file; kbd does not write to it until then"
    )
