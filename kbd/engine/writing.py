"""What a pass does to files: lifecycle first, then the blocks on their way, counters and relations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kbd.config import BaseConfig
from kbd.core.model import Problem, Relation
from kbd.core.sight import day_has_begun, is_due
from kbd.engine.frame import Clock, Frame, PassReport
from kbd.engine.sharing import Sharing
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, LockTimeout
from kbd.service import lifecycle
from kbd.service.knowledge import BaseSpec
from kbd.service.moves import Mover
from kbd.service.project import Projector, WritePolicy
from kbd.service.relating import RelationsWriter, read_relations
from kbd.store.base_files import NoteFile
from kbd.store.displaced import DISPLACED
from kbd.store.ledger import standing
from kbd.store.ledger.due import due_by_file
from kbd.store.ledger.lessons import day
from kbd.store.pace import Pace
from kbd.store.relations_cache import Related
from kbd.store.rewrite import Quiet
from kbd.store.writers import path_beside

MERGE = "merge it by hand"
MENDED_BY_HAND = frozenset(
    {"relations_unreadable", "relations_refused", "knowledge_unreadable", "write_failed", "two_writers"}
)
"""Faults of a file that no waiting mends: it is tried again when something moves, and with each scan."""

Resync = Callable[[BaseSpec, Sequence[NoteFile], Clock], None]


@dataclass(slots=True)
class Writer:
    """Writes files; keeps over passes what waits.

    Attributes:
        frame: ledger and configuration.
        resync: brings the ledger in step with files just read or written under their locks.
        waiting: since when a file waits to be at rest (real clock).
        relations: by path, a relations file as last parsed, with its stamp then.
        alarms: the sources in format alarm when last everything was looked at; asking the ledger looks at all files.
        ends_at: in seconds that never go back, until when a daemon that was told to end still writes; None: it goes on.
    """

    frame: Frame
    resync: Resync
    waiting: dict[str, float] = field(default_factory=dict)
    relations: dict[str, tuple[tuple[int, ...], Related]] = field(default_factory=dict)
    alarms: set[str] | None = None
    ends_at: float | None = None

    def write(
        self, clock: Clock, report: PassReport, bases: list[tuple[BaseConfig, BaseSpec]], *, immediate: bool
    ) -> None:
        """Run lifecycle where due, then bring all files in step with the ledger."""
        self._look_again(clock, report)
        for base, spec in bases:
            related = self.relations_of(base.relations)
            report.problems.extend(related.problems)
            if not self.sharing.turn(base, clock, wants=False).may_write:
                # Nothing falls here that the other kbd would have to write; this one counts on.
                self.write_base(clock, report, base, spec, immediate=immediate)
                continue
            self._live(clock, report, base, spec, related.relations or (), immediate=immediate)
            self.write_base(clock, report, base, spec, immediate=immediate)

    def relations_of(self, path: str) -> Related:
        """Return what a relations file holds; it is parsed anew only when it changed."""
        try:
            seen = os.stat(path)
        except OSError:
            return read_relations(path)
        stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        known = self.relations.get(path)
        if known is None or known[0] != stamp:
            known = self.relations[path] = (stamp, read_relations(path))
        return known[1]

    def write_base(
        self, clock: Clock, report: PassReport, base: BaseConfig, spec: BaseSpec, *, immediate: bool
    ) -> None:
        """Bring the files of a base in step with the ledger: blocks on their way, counters, relations.

        Where another kbd writes, nothing is written, and that is said.
        """
        turn = self.sharing.turn(base, clock, wants=self._has_work(spec))
        report.problems.extend([turn.problem] if turn.problem else [])
        if not turn.may_write:
            return
        self._move(clock, report, spec, immediate=immediate)
        self._project(clock, report, spec, immediate=immediate)
        self._relate(clock, report, base, spec, immediate=immediate)

    def write_last(self, clock: Clock, seconds: float) -> PassReport:
        """Write what is collected, for so many seconds at most, since nothing is to come; who edits is left alone."""
        report, self.ends_at = PassReport(), time.monotonic() + seconds
        for base, spec in self.frame.bases():
            if self.sharing.turn(base, clock, wants=self._has_work(spec)).may_write:
                self._project(clock, report, spec, immediate=False)
                if not self._is_over():
                    self._relate(clock, report, base, spec, immediate=False)
        return report

    def _is_over(self) -> bool:
        return self.ends_at is not None and time.monotonic() >= self.ends_at

    @property
    def sharing(self) -> Sharing:
        """Who else writes."""
        return Sharing(self.frame)

    def _has_work(self, spec: BaseSpec) -> bool:
        db = self.frame.ledger.db
        work = "SELECT EXISTS (SELECT 1 FROM entries WHERE base=?1 AND moving IS NOT NULL AND gone_on IS NULL) OR "
        work += "EXISTS (SELECT 1 FROM relations WHERE base=?1 AND dirty)"
        files = due_by_file(db, spec.id, markers=bool(self.frame.config.decay.marker))
        return bool(db.execute(work, (spec.id,)).fetchone()[0]) or bool(files)

    def _live(
        self,
        clock: Clock,
        report: PassReport,
        base: BaseConfig,
        spec: BaseSpec,
        relations: tuple[Relation, ...],
        *,
        immediate: bool,
    ) -> None:
        """Revive at once; let entries fade once a day, after everything was read."""
        ledger, policy = self.frame.ledger, self.frame.decay_policy(base)
        report.transitions += len(lifecycle.revive(ledger, spec.id, policy, relations, clock.now))
        last = lifecycle.last_pass(ledger.db, spec.id)
        sights = self.sights(report)
        first = day(ledger.db.execute("SELECT decay_after FROM bases WHERE id=?", (spec.id,)).fetchone()[0])
        if first is not None and first < clock.now.date():
            report.problems.extend(lifecycle.see(ledger.db, spec.id, sights, policy, clock.now.date()).reasons)
        due = day_has_begun(last, clock.now) if immediate else is_due(last, policy.at, clock.now, clock.zone)
        # Only a pass that looked everywhere knows that nothing is left to be read.
        if last is None or not due or not (report.complete and report.full):
            return
        done = lifecycle.decay(ledger, spec.id, policy, relations, sights, clock.now)
        report.transitions += len(done.plan.transitions) if done.recorded else 0
        if done.recorded:
            today = clock.now.date()
            relater = self._relater(clock.real, immediate=immediate)
            report.problems.extend(relater.age(spec.id, base.relations, relations, today))

    def sights(self, report: PassReport) -> list[lifecycle.SourceSight]:
        """Return what is known of each source: seen in this pass, or in the last one that looked everywhere."""
        problems = report.problems if report.full else standing.faults(self.frame.ledger.db)
        faults = {p.where for p in problems if p.code in ("source_unreadable", "source_missing")}
        if report.full or self.alarms is None:
            self.alarms = lifecycle.format_alarms(self.frame.ledger.db)
        return [
            lifecycle.SourceSight(spec.name, spec.root not in faults, spec.name in self.alarms)
            for _, spec in self.frame.sources()
        ]

    def _move(self, clock: Clock, report: PassReport, spec: BaseSpec, *, immediate: bool) -> None:
        mover = Mover(
            self.frame.ledger,
            self.frame.locks,
            spec.types,
            self.frame.config.decay.marker,
            lambda path: self._quiet(path, clock.real, immediate=immediate),
            sidecars=spec.sidecars,
        )
        settled = mover.settle(spec.id, lambda files: self.resync(spec, files, clock), clock.now)
        report.problems.extend(settled.problems)
        for path in settled.moved:
            self.waiting.pop(path, None)

    def _quiet(self, path: str, real: float, *, immediate: bool) -> Quiet:
        """Return when a file counts as at rest for a move; it has waited for that long enough at some point."""
        row = self.frame.ledger.db.execute("SELECT wrote_mtime_ns FROM notes WHERE path=?", (path,)).fetchone()
        own_mtime_ns = row["wrote_mtime_ns"] if row else None
        return self._pace(immediate=immediate).quiet(path, self.waiting, real, own_mtime_ns)

    def _project(self, clock: Clock, report: PassReport, spec: BaseSpec, *, immediate: bool) -> None:
        projector = Projector(
            self.frame.ledger, self.frame.locks, self._policy(immediate=immediate), spec.types, clock.real, self.waiting
        )
        for path in projector.due_files(spec.id):
            if self._is_over():
                break
            try:
                written = projector.write_file(path, lambda note: self.resync(spec, [note], clock))
            except (LockTimeout, ChangedUnderneath) as exc:
                report.problems.append(Problem("write_deferred", path, exc.what, exc.hint or "kbd tries again"))
            except FileUnwritable as exc:
                report.problems.append(
                    Problem("write_failed", path, exc.what, exc.hint or "free the disk or mend permissions")
                )
            except (FileUnreadable, FileNotFoundError) as exc:
                report.problems.append(Problem("knowledge_unreadable", path, str(exc), "mend the file's permissions"))
            else:
                self.frame.patience.beat()
                report.written += written.entries
                report.problems.extend(written.problems)

    def _policy(self, *, immediate: bool) -> WritePolicy:
        config = self.frame.config
        return WritePolicy(self._pace(immediate=immediate), config.decay.marker, config.write.counters == "sidecar")

    def _pace(self, *, immediate: bool) -> Pace:
        write = self.frame.config.write
        pace = Pace(
            write.every_seconds, write.git_every_seconds, write.quiet_seconds, write.max_wait_seconds, immediate
        )
        return pace if self.ends_at is None else replace(pace, every_seconds=0.0, git_every_seconds=0.0)

    def _relate(self, clock: Clock, report: PassReport, base: BaseConfig, spec: BaseSpec, *, immediate: bool) -> None:
        report.problems.extend(self._relater(clock.real, immediate=immediate).write(spec.id, base.relations))

    def _relater(self, real: float, *, immediate: bool) -> RelationsWriter:
        pace = self._pace(immediate=immediate)
        return RelationsWriter(self.frame.ledger, self.frame.locks, pace, self.waiting, real)

    def _look_again(self, clock: Clock, report: PassReport) -> None:
        """Save what an editor wrote into an inode that kbd had already replaced, and tell what was saved."""
        DISPLACED.look()
        report.problems.extend(self.tell(clock.now))
        for path, exc in DISPLACED.faults():
            what = f"an editor's late text cannot be saved: {exc.what}"
            report.problems.append(Problem("write_failed", path, what, exc.hint or "free the disk or mend permissions"))

    def tell(self, now: datetime) -> list[Problem]:
        """Return, and note in the history, what was saved of editors' texts since it was last asked for."""
        saved = DISPLACED.take_saved()
        if saved:
            with self.frame.ledger.transaction():
                for one in saved:
                    detail = f"{one.path}: saved as {one.copy}"
                    self.frame.ledger.record_event(now, "late_write_saved", detail=detail)
        return [
            Problem("write_conflict", one.path, f"an editor wrote over kbd; its text is in {one.copy}", MERGE)
            for one in saved
        ]

    def seconds_to_next_write(self, now: float) -> float:
        """Return when a file that waits may be written, in seconds from `now`; a day if none waits."""
        return min((max(at, self.frame.config.write.quiet_seconds) for at in self._waits(now)), default=86400.0)

    def _waits(self, now: float) -> Iterator[float]:
        """Yield for how long each file that says something else than the ledger is left alone."""
        relater, policy = self._relater(now, immediate=False), self._policy(immediate=False)
        broken = {p.where for p in standing.faults(self.frame.ledger.db) if p.code in MENDED_BY_HAND}
        for base, spec in self.frame.bases():
            if path_beside(base.relations) in broken:
                continue
            projector = Projector(self.frame.ledger, self.frame.locks, policy, spec.types, now, self.waiting)
            try:
                if base.relations not in broken:
                    yield from relater.seconds_to_wait(spec.id, base.relations)
                for path in (path for path in projector.due_files(spec.id) if path not in broken):
                    row = self.frame.ledger.db.execute("SELECT wrote_at FROM notes WHERE path=?", (path,)).fetchone()
                    yield projector.seconds_to_wait(path, row["wrote_at"] if row else None)
            except FileUnreadable:  # the next pass says so
                yield self.frame.config.write.every_seconds

    def close(self, clock: Clock | None) -> None:
        """Save what editors wrote late; the process waits for those who still write when it ends.

        Raises:
            FileUnwritable: the ledger takes no event; what an editor wrote late is saved by then.
        """
        DISPLACED.look()
        if clock is not None:
            self.tell(clock.now)
