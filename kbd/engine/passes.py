"""The pass: knowledge in, transcripts in, lifecycle, files out, faults noted."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path

from kbd.config import BaseConfig, Config
from kbd.core.model import Problem
from kbd.engine import wording
from kbd.engine.frame import Clock, Frame, PassReport, Watchers
from kbd.engine.graphs import GraphWatch, watched_logs
from kbd.engine.recovery import end_recovery
from kbd.engine.transcripts import TranscriptReader
from kbd.engine.watching import Watched, watched_folders
from kbd.engine.writing import Writer
from kbd.errors import FileUnreadable, FileUnwritable, LedgerDamaged
from kbd.service.knowledge import BaseSpec, Synced, sync_base
from kbd.service.moves import both_files
from kbd.store.base_files import NoteFile, is_synced, own_files, read_base
from kbd.store.displaced import DISPLACED
from kbd.store.ledger import back_up, distrusting, lessons, open_ledger, standing, transcripts
from kbd.store.ledger.counts import overtaken, recount
from kbd.store.ledger.limits import limit_bases
from kbd.store.ledger.purging import finish_begun
from kbd.store.ledger.wildclock import lies_ahead, pull_back
from kbd.store.notes import conflict_copies
from kbd.store.sidecars import Stamp, stamp_of, with_values
from kbd.store.sweeping import sweep_state, sweep_temporaries

SWEEP_SECONDS = 600.0


class Engine:
    """Everything a pass needs, opened once."""

    def __init__(self, config: Config, state_dir: Path, env: Mapping[str, str], home: str, now: datetime) -> None:
        """Open the ledger of a state directory for writing; raises what `open_ledger` raises."""
        self._begin(Frame(config, state_dir, env, home, open_ledger(state_dir, now)))

    def _begin(self, frame: Frame) -> None:
        self.frame = frame
        self.transcripts = TranscriptReader(self.frame)
        self.writer = Writer(self.frame, self._resync)
        self.graphs = GraphWatch(self.frame, self.writer.relations_of)
        self.clock: Clock | None = None
        self.stamps = {}
        self.counted_on, self.swept, self.rewound, self.version = None, False, False, -1

    def _begin_anew(self, now: datetime) -> None:
        """Open the ledger again, which restores a damaged one, and forget what was known of it."""
        old = self.frame
        old.ledger.close()
        self._begin(Frame(old.config, old.state_dir, old.env, old.home, open_ledger(old.state_dir, now)))

    def close(self) -> None:
        """Save what editors wrote late, and close the ledger."""
        try:
            self.writer.close(self.clock)
        finally:
            self.frame.ledger.close()

    def take_config(self, config: Config) -> None:
        """Go on with another configuration."""
        self.frame.config = config
        self.transcripts.reader = None

    def run_pass(
        self,
        clock: Clock,
        *,
        immediate: bool,
        hints: Collection[str] | None = None,
        stop: Callable[[], bool] = lambda: False,
        beat: Callable[[PassReport], None] = lambda report: None,
    ) -> PassReport:
        """Run one pass; what could not be done is in the report, and in the ledger's faults.

        Args:
            clock: the times.
            immediate: look into all files whatever their age, and write without coalescing (`run --once`).
            hints: paths that moved; None: look everywhere.
            stop: asked between batches; True ends the pass early, everything so far is committed.
            beat: called after each step that made progress.

        A ledger that proves damaged is restored, and the pass begins again, looking everywhere.

        Raises:
            FileUnwritable: the ledger cannot be written; nothing is lost, the batch will be read again.
        """
        watchers = Watchers(stop, beat)
        try:
            with distrusting(self.frame.ledger):
                return self._run_pass(clock, watchers, hints, immediate=immediate)
        except LedgerDamaged:
            self._begin_anew(clock.now)
            return self._run_pass(clock, watchers, None, immediate=immediate)

    def _run_pass(
        self, clock: Clock, watchers: Watchers, hints: Collection[str] | None, *, immediate: bool
    ) -> PassReport:
        report, self.clock, stop, beat = PassReport(), clock, watchers.stop, watchers.beat
        self.frame.patience.renew(stop, partial(beat, report))
        self._pull_back(clock.now.date())
        bases = self._sync_knowledge(clock, report)
        self._sweep(clock, report, full=hints is None)
        self.swept = False
        beat(report)
        rewound = self.rewound or self._rewound_by_others()
        self.rewound = False
        report.full = hints is None or rewound
        self.transcripts.read(
            clock, report, bases, None if rewound else hints, watchers, all_files=immediate or rewound
        )
        if report.complete and (hints is None or rewound):
            roots = [(spec.name, spec.root) for _, spec in self.frame.sources()]
            end_recovery(self.frame.ledger, roots, report.problems)
        self._count_overtaken(clock.now.date())
        beat(report)
        if not stop():
            self.writer.write(clock, report, bases, immediate=immediate)
            if report.transitions:
                self.transcripts.reader = None  # the number of live entries is part of the listing rule
        beat(report)
        report.problems.extend(self.graphs.check())
        beat(report)
        self._store_faults(report, full=hints is None)
        if not stop():  # that of a large ledger takes longer than a daemon may that is told to end
            back_up(self.frame.ledger, self.frame.state_dir, clock.now.date(), partial(beat, report))
        self.swept = not any(problem.code in ("write_failed", "move_failed") for problem in report.problems)
        return report

    counted_on: date | None = None
    """The day for which the days of all entries were looked at."""

    def _pull_back(self, today: date) -> None:
        """Mend, once a day, what a clock that was far ahead left in the ledger."""
        if self.counted_on != today and lies_ahead(self.frame.ledger.db, today):
            with self.frame.ledger.transaction() as db:
                recount(db, pull_back(db, today), today)

    def _count_overtaken(self, today: date) -> None:
        """Count anew, once a day, what was counted while the clock was behind its records."""
        if self.counted_on == today:
            return
        entries = overtaken(self.frame.ledger.db, today)
        if entries:
            with self.frame.ledger.transaction() as db:
                recount(db, entries, today)
        self.counted_on = today

    swept = False
    """What killed or hindered writers left behind is gone; so it stays until a write is refused."""

    swept_at = 0.0
    """When last what killed writers left was looked for (real clock)."""

    def _sweep(self, clock: Clock, report: PassReport, *, full: bool) -> None:
        """Remove the temporaries of killed writers, and those that could not be removed when a write failed.

        A command may be killed beside a daemon that lives for months, and leave a text that a person saved.
        """
        if not self.swept:
            sweep_state(self.frame.state_dir)
            finish_begun(self.frame.ledger, self.frame.state_dir, clock.now.date())
        elif not full or abs(clock.real - self.swept_at) < SWEEP_SECONDS:
            return
        self.swept_at = clock.real
        places = [r[0] for r in self.frame.ledger.db.execute("SELECT path FROM notes")]
        places += [base.relations for base in self.frame.config.bases]
        folders = {os.path.dirname(os.path.realpath(path)) for path in places}
        for folder in sorted(folders | {log.path for log in watched_logs(self.frame)}):
            try:
                sweep_temporaries(folder)
            except FileUnwritable as exc:
                report.problems.append(Problem("write_failed", folder, exc.what, exc.hint))

    stamps: dict[str, Stamp | None]
    """Of the counters beside knowledge files, as last read."""

    rewound = False
    """Files are to be read from 0 again, because entries appeared since."""

    version = -1
    """Of the ledger as other processes had left it at the last pass."""

    def _rewound_by_others(self) -> bool:
        version, self.version = self.version, self.frame.ledger.version()
        return version != self.version and transcripts.has_rewound(self.frame.ledger.db)

    def _sync_knowledge(self, clock: Clock, report: PassReport) -> list[tuple[BaseConfig, BaseSpec]]:
        bases = [
            (base, replace(spec, is_foreign=spec.is_foreign or self.writer.sharing.sees_others(base, clock)))
            for base, spec in self.frame.bases()
        ]
        self.rewound |= limit_bases(self.frame.ledger, {spec.id: bool(base.projects) for base, spec in bases})
        db = self.frame.ledger.db
        taken: dict[int, list[tuple[str, str]]] = {}
        for base, spec in bases:
            # A copy of a block on its way is passed over where it is seen; when the original goes, it is the entry.
            anew = {path for row in lessons.entries_on_the_way(db, spec.id) for path in both_files(row.file)}
            known = lessons.notes_of(db, spec.id)
            if spec.sidecars:
                anew |= {path for path in known if self.stamps.get(path, ()) != stamp_of(path)}
                self.stamps |= {path: stamp_of(path) for path in known}
            is_parsed_so = wording.is_parsed_so(self.frame.ledger, spec)
            files, problems = read_base(base.files, known, anew if is_parsed_so else known)
            files, doubled = own_files(files, base.name, taken)
            problems += doubled
            if spec.sidecars:
                files, unread = with_values(files)
                problems = [*problems, *unread]
            report.problems.extend([*problems, *conflict_copies([*(file.path for file in files), base.relations])])
            self._after_sync(sync_base(self.frame.ledger, spec, files, problems, clock.now))
            if not is_parsed_so and not problems:
                wording.note_parsed(self.frame.ledger, spec)
        return bases

    def _after_sync(self, synced: Synced) -> None:
        if synced.changed:
            self.transcripts.reader = None
        self.rewound = self.rewound or synced.rewound

    def write_base(self, clock: Clock, name: str) -> PassReport:
        """Bring the files of one base in step with the ledger at once; no transcript is read, nothing fades."""
        report, self.clock = PassReport(), clock
        for base, spec in self.frame.bases():
            if base.name == name:
                self.writer.write_base(clock, report, base, spec, immediate=True)
        return report

    def write_last(self, clock: Clock, seconds: float) -> PassReport:
        """Write what was collected before the daemon ends, for so many seconds at most."""
        self.clock = clock
        return self.writer.write_last(clock, seconds)

    def sync(self, clock: Clock) -> PassReport:
        """Take in what the knowledge files say; nothing is written into them."""
        report = PassReport()
        self._sync_knowledge(clock, report)
        return report

    def _resync(self, spec: BaseSpec, files: Sequence[NoteFile], clock: Clock) -> None:
        """Bring the ledger in step with files that were just read or written under their locks."""
        known = lessons.notes_of(self.frame.ledger.db, spec.id)
        if spec.sidecars:
            files, problems = with_values(files)
            if problems:
                raise FileUnreadable(problems[0].what, where=problems[0].where, hint=problems[0].hint)
        elif not lessons.entries_on_the_way(self.frame.ledger.db, spec.id):
            files = [f for f in files if f.path not in known or not is_synced(f, known[f.path])]
        read = {f.path for f in files}
        others = [
            NoteFile(r.path, r.archive, r.sha, r.size, r.mtime_ns, r.ino, None)
            for r in known.values()
            if r.path not in read
        ]
        self._after_sync(sync_base(self.frame.ledger, spec, [*files, *others], (), clock.now, partial=True))

    def _store_faults(self, report: PassReport, *, full: bool) -> None:
        """Keep the faults of the newest pass for `status`; nothing is written when nothing changed.

        A pass that followed hints did not look everywhere: it takes no fault of a source back.
        """
        wanted = {(p.code, p.where): p for p in report.problems}
        stored = {(p.code, p.where): p for p in standing.faults(self.frame.ledger.db)}
        keep = (
            ()
            if full
            else ("source_unreadable", "source_missing", "file_unreadable", "folder_unreadable", "too_many_files")
        )
        wanted |= {key: p for key, p in stored.items() if p.code in keep}
        if wanted == stored:
            return
        with self.frame.ledger.transaction() as db:
            for code, place in stored.keys() - wanted.keys():
                standing.clear_fault(db, code, place)
            for problem in wanted.values():
                standing.set_fault(db, problem)

    def watched_folders(self) -> list[Watched]:
        """Return the folders whose events are of interest."""
        return [*watched_folders(self.frame), *watched_logs(self.frame)]

    def look_again(self) -> bool:
        """Save what editors wrote late into files that were replaced; return whether a pass has something to tell."""
        DISPLACED.look()
        return bool(DISPLACED.saved)

    def seconds_to_next_write(self, now: float) -> float:
        """Return when a file that waits may be written, in seconds from `now` (real clock)."""
        return self.writer.seconds_to_next_write(now)

    def rewind(self, source: str | None) -> int:
        """Let all files, or those of one source, be read from 0 again at the next pass; return how many."""
        with self.frame.ledger.transaction() as db:
            count = transcripts.rewind(db, None, source)
        self.rewound = True
        return count
