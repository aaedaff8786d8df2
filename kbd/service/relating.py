"""Relations on disk: those that grew from citations are written, a file that cannot be read is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from kbd.core import relyaml
from kbd.core.model import Problem, Relation
from kbd.core.relate import archivable, expire
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, LockTimeout, Refused
from kbd.store.files import read_regular
from kbd.store.ledger import Ledger, growth
from kbd.store.ledger.lessons import day
from kbd.store.locks import Locks
from kbd.store.pace import Pace
from kbd.store.relations import move_to_archive
from kbd.store.relations_cache import Related
from kbd.store.rewrite import Deferred, Outcome, Quiet, Unchanged, Written, rewrite_held

LOCK_SECONDS = 10.0
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


@dataclass(frozen=True, slots=True)
class RelationsWriter:
    """Writes what changed of relations into their files.

    Attributes:
        ledger: open for writing.
        locks: of the state directory.
        pace: when a file may be written.
        waiting: since when (real clock) which file waits to be at rest; kept by the caller over passes.
        real_now: the real clock in seconds.
    """

    ledger: Ledger
    locks: Locks
    pace: Pace
    waiting: MutableMapping[str, float]
    real_now: float

    def write(self, base: int, path: str) -> list[Problem]:
        """Write the relations that changed since, if the file may be written now; on a fault they stay due."""
        due = _due(self.ledger, base)
        try:
            if not due or self._seconds_to_wait(path) > 0:
                return []
        except FileUnreadable as exc:  # what git is doing there cannot be told
            return [Problem("write_deferred", path, exc.what, exc.hint)]
        quiet = self.pace.quiet(path, self.waiting, self.real_now, _last_write(self.ledger, path)[1])
        outcome = _attempt(path, lambda: self._rewrite(path, due, quiet))
        if isinstance(outcome, Problem):
            return [outcome]
        self.waiting.pop(path, None)
        with self.ledger.transaction() as db:
            db.executemany(
                "UPDATE relations SET dirty=0 WHERE base=? AND s=? AND p=? AND o=? AND u IS ? AND e IS ?",
                [(base, r.s, r.p, r.o, _text(r.u), _text(r.e)) for r in due],
            )
            if isinstance(outcome, Written):
                self.ledger.set_meta(f"wrote:{path}", f"{self.real_now} {outcome.mtime_ns}")
        return []

    def seconds_to_wait(self, base: int, path: str) -> Iterator[float]:
        """Yield in how many seconds a file may be written, if there is something to write into it."""
        if _due(self.ledger, base):
            yield self._seconds_to_wait(path)

    def age(self, base: int, path: str, relations: Sequence[Relation], today: date) -> list[Problem]:
        """Let relations expire that nobody used for a year; what expired a year ago moves to the archive (SPEC 7).

        Once a day is enough; doing it again changes nothing. What expires is written with the next projection. Of what
        waits to be written the file does not say yet when it was used.
        """
        waiting = {relyaml.triple(relation) for relation in _due(self.ledger, base)}
        relations = [relation for relation in relations if relyaml.triple(relation) not in waiting]
        changed = [change.after for change in expire(relations, today)]
        if changed:
            with self.ledger.transaction() as db:
                growth.age_relations(db, base, changed)
        old = archivable(relations, today)
        if not old:
            return []
        outcome = _attempt(path, lambda: move_to_archive(path, old, self.locks, Quiet(self.real_now, 0)))
        if isinstance(outcome, Problem):
            return [outcome]
        with self.ledger.transaction() as db:
            growth.forget_relations(db, base, old)
        return []

    def _seconds_to_wait(self, path: str) -> float:
        return self.pace.seconds_to_wait(path, _last_write(self.ledger, path)[0], self.real_now)

    def _rewrite(self, path: str, due: Mapping[Relation, bool], quiet: Quiet) -> Outcome:
        with self.locks.hold([path], LOCK_SECONDS):
            return rewrite_held(path, lambda data: _merged(data, due, path), self.locks, quiet, create=True)


def _last_write(ledger: Ledger, path: str) -> tuple[float | None, int | None]:
    """Return when (real clock) kbd last wrote a relations file, and the file's time after it."""
    at, _, mtime_ns = (ledger.meta(f"wrote:{path}") or "").partition(" ")
    return (float(at), int(mtime_ns)) if at else (None, None)


def _attempt(path: str, change: Callable[[], Outcome]) -> Problem | Written | Unchanged:
    """Change a relations file; return why it could not be changed, or what was done."""
    try:
        outcome = change()
    except FileUnreadable as exc:
        return _unreadable(path, exc)
    except FileUnwritable as exc:
        return Problem("write_failed", path, exc.what, exc.hint or "free the disk or mend permissions")
    except (LockTimeout, ChangedUnderneath) as exc:
        return Problem("write_deferred", path, exc.what, exc.hint or "kbd tries again")
    except Refused as exc:
        return Problem("relations_refused", path, exc.what, exc.hint)
    if isinstance(outcome, Deferred):
        return Problem("write_deferred", path, outcome.reason, "kbd writes it as soon as it may")
    return outcome


def _text(value: date | None) -> str | None:
    return value.isoformat() if value else None


def _due(ledger: Ledger, base: int) -> dict[Relation, bool]:
    """Return the relations to be written, and whether they were used again after kbd let them expire."""
    rows = ledger.db.execute(
        "SELECT s, p, o, c, u, e, dirty FROM relations WHERE base=? AND dirty ORDER BY s, p, o", (base,)
    )
    return {
        Relation(r["s"], r["p"], r["o"], day(r["c"]), day(r["u"]), day(r["e"])): r["dirty"] == growth.REVIVED
        for r in rows
    }


def _merged(data: bytes, due: Mapping[Relation, bool], path: str) -> bytes:
    """Return the file with the due relations; a newer `u` that stands there stays, and an end that a person gave it."""
    there = {relyaml.triple(r): r for r in relyaml.parse(data, path).relations} if data else {}
    changes = []
    for relation, is_revived in due.items():
        old = there.get(relyaml.triple(relation), relation)
        newest = max((r.u for r in (relation, old) if r.u is not None), default=None)
        ended = relation.e
        if ended is None and old.e is not None and not is_revived and (relation.u is None or relation.u <= old.e):
            ended = old.e
        changes.append(replace(relation, u=newest, e=ended))
    return relyaml.upsert(data, changes, path)


def _unreadable(path: str, exc: FileUnreadable) -> Problem:
    return Problem(
        "relations_unreadable", path, exc.what, exc.hint or "mend the file; kbd does not write to it until then"
    )
