"""Which transcripts to look into, and reading them: a full scan, or the files that events named."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from kbd.config import BaseConfig, SourceConfig
from kbd.config.matching import match_policy
from kbd.core.cite import Known
from kbd.core.match import PatternKind
from kbd.core.model import Problem
from kbd.core.reading import Reader
from kbd.core.scope import BaseScope
from kbd.engine.frame import Clock, Frame, PassReport, Watchers
from kbd.engine.overlap import Claim, earlier_claims
from kbd.engine.recovery import sources_to_recover
from kbd.errors import FileUnreadable
from kbd.service.discover import by_age, is_one_file, register
from kbd.service.ingest import Ingest, IngestPolicy, SourceSpec
from kbd.service.knowledge import BaseSpec
from kbd.sources.contract import FileKind, SourceFormat, placed, superseding
from kbd.store import batches, scan
from kbd.store.descriptors import is_utf8, shown
from kbd.store.knowledge_paths import KnowledgePaths
from kbd.store.ledger import lessons, transcripts
from kbd.store.ledger.filemarks import FileMarks
from kbd.store.notes import archive_of
from kbd.store.scan import Found
from kbd.store.sidecars import sidecar_of
from kbd.store.successors import Successors

DAY_SECONDS = 86400.0
ATTEMPTS = 5
"""So often a source is begun anew in a pass because a command of the user changed entries meanwhile."""
TOGETHER_FILES, TOGETHER_BYTES = 2048, 1 << 20
"""What one commit may hold of several small files: waiting for the disk at each of 100,000 takes an hour."""
BEAT_FILES = 1000
"""A scan that has seen so many more files, or folders, has made progress."""


@dataclass(slots=True)
class TranscriptReader:
    """Reads sources; keeps over passes what saves work.

    Attributes:
        frame: ledger and configuration.
        looked: by source, when all its files were last looked into, however old (real clock).
        reader: the matcher, None after entries changed.
        version: of the ledger as other processes left it, when the reader was made.
        successors: what newer stores of agents hold.
    """

    frame: Frame
    looked: dict[int, float] = field(default_factory=dict)
    reader: Reader | None = None
    version: int = -1
    successors: Successors = field(default_factory=Successors)

    def read(
        self,
        clock: Clock,
        report: PassReport,
        bases: list[tuple[BaseConfig, BaseSpec]],
        hints: Collection[str] | None,
        watchers: Watchers,
        *,
        all_files: bool,
    ) -> None:
        """Read what is new: in all files of all sources, or only in those that `hints` names.

        `all_files` looks into every file whatever its age.
        """
        sources = list(self.frame.sources())
        paths = self._knowledge_paths(bases, [spec.root for _, spec in sources if not _is_in_projects(spec.format)])
        scopes = [BaseScope(spec.id, _by_all_names(base.projects)) for base, spec in bases]
        recovering = sources_to_recover(self.frame.ledger, {spec.name for _, spec in sources})
        policy = IngestPolicy(self.frame.config.scan.max_record_mib << 20, self.frame.config.evidence.snippet_chars)
        claims = earlier_claims(sources)
        turns = [turn for turn in sources for _ in range(ATTEMPTS)]
        done: set[int] = set()
        for config, spec in turns:
            if spec.id in done:
                continue
            ingest = Ingest(
                self.frame.ledger,
                partial(self._reader, clock),
                scopes,
                paths,
                self.frame.git_root,
                self.frame.names_of_folder,
                policy,
                clock.now,
                clock.real,
                clock.zone,
                recovered=spec.name in recovering,
                is_current=self._is_current,
            )
            marks = FileMarks(self.frame.ledger.db, spec.id)
            one = _SourcePass(self, config, spec, ingest, marks, clock, report, watchers, claims[spec.id])
            one.follow(hints) if hints is not None else one.scan(all_files=all_files)
            report.records += ingest.report.records
            report.citing += ingest.report.citing
            report.read_bytes += ingest.report.read_bytes
            if not ingest.is_outdated:
                done.add(spec.id)
        report.complete = report.complete and len(done) == len(sources)

    def _is_current(self) -> bool:
        """Tell whether no other process has written to the ledger since the reader was made."""
        return self.version == self.frame.ledger.version()

    def _reader(self, clock: Clock) -> Reader:
        if self.reader is None or not self._is_current():
            self.version = self.frame.ledger.version()
            db = self.frame.ledger.db
            rows = [
                (p.id, p.text, PatternKind(p.kind), Known(p.entry, p.base, p.body, p.earlier))
                for p in lessons.patterns_in_use(db, clock.now.date())
            ]
            self.reader = Reader.of(rows, lessons.live_counts(db), match_policy(self.frame.config))
        return self.reader

    def _knowledge_paths(self, bases: list[tuple[BaseConfig, BaseSpec]], roots: list[str]) -> KnowledgePaths:
        files: list[str] = []
        for base, spec in bases:
            known = list(lessons.notes_of(self.frame.ledger.db, spec.id))
            files += [*known, *(archive_of(p) for p in known), *(sidecar_of(p) for p in known), base.relations]
        return KnowledgePaths(files, roots, self.frame.home)


def _by_all_names(projects: Iterable[str]) -> tuple[str, ...]:
    """Return projects as they are named, and where links lead: agents know either."""
    return tuple(dict.fromkeys(name for project in projects for name in (project, os.path.realpath(project))))


def _is_in_projects(source: SourceFormat) -> bool:
    form = placed(source)
    return form is not None and form.in_projects


@dataclass(slots=True)
class _SourcePass:
    """One source in one pass."""

    owner: TranscriptReader
    config: SourceConfig
    spec: SourceSpec
    ingest: Ingest
    marks: FileMarks
    clock: Clock
    report: PassReport
    watchers: Watchers
    claims: Sequence[Claim]
    whole: bool = True
    """Nothing hindered the scan from seeing all files."""
    folders: int = 0
    """So many were looked into."""

    def scan(self, *, all_files: bool) -> None:
        """Look at every file of the source."""
        began, spent_reading = time.thread_time(), 0.0
        kind_of, exclude = self.spec.format.file_kind, self.config.exclude
        found = scan.walk(self.spec.root, kind_of, exclude=exclude, goes_on=self._goes_on)
        if found is None:
            self.report.problems.append(
                Problem(
                    "source_missing",
                    self.spec.root,
                    "the source's folder does not exist",
                    "start the agent once, or mend `root` in the config",
                )
            )
            return
        for files in _together(self._due(self._oldest_first(found), all_files=all_files)):
            start = time.thread_time()
            self._read_together(files)
            spent_reading += time.thread_time() - start
        if self._must_end():
            return
        self._note_scan(all_files=all_files)
        self.report.scan_seconds += max(time.thread_time() - began - spent_reading, 0.0)

    def _note_scan(self, *, all_files: bool) -> None:
        """Note, at the end of a scan, which files are gone, and when old ones were looked into."""
        lost = self.marks.unseen()
        if lost and self.whole:
            with self.owner.frame.ledger.transaction() as db:
                transcripts.mark_gone(db, lost)
        if all_files or scan.is_due(0, self.owner.looked.get(self.spec.id), self.clock.real):
            self.owner.looked[self.spec.id] = self.clock.real

    def _goes_on(self) -> bool:
        self.folders += 1
        if self.folders % BEAT_FILES == 0:
            self.watchers.beat(self.report)
        return not self._must_end()

    def _due(self, found: Iterable[Found[FileKind] | Problem], *, all_files: bool) -> Iterator[Found[FileKind]]:
        """Yield the files to look into, until the pass must end."""
        for number, item in enumerate(found, 1):
            if self._must_end():
                return
            if number % BEAT_FILES == 0:
                self.watchers.beat(self.report)
            if isinstance(item, Problem):
                self.report.problems.append(item)
                self.whole = False
            elif self._is_due(item, all_files=all_files):
                yield item

    def _must_end(self) -> bool:
        """Tell whether the pass is to stop, or the source to be begun anew with other entries."""
        stop = self.watchers.stop()
        self.report.complete = self.report.complete and not stop
        return stop or self.ingest.is_outdated

    def _oldest_first(self, found: Iterable[Found[FileKind] | Problem]) -> Iterable[Found[FileKind] | Problem]:
        """Put logs in an order in which originals come before their copies."""
        if not self.spec.is_text:
            return found
        known: list[Found[FileKind] | Problem] = []
        fresh: list[Found[FileKind]] = []
        for item in found:
            if isinstance(item, Found) and self.marks.of(item.dev, item.ino) is None:
                fresh.append(item)
            else:
                known.append(item)
        ledger, spec = self.owner.frame.ledger, self.spec
        order = by_age(ledger, spec.id, spec.session_prefix, self._beating(fresh)) if len(fresh) > 1 else fresh
        return [*known, *order]

    def _beating(self, files: Iterable[Found[FileKind]]) -> Iterator[Found[FileKind]]:
        for number, item in enumerate(files, 1):
            if number % BEAT_FILES == 0:
                self.watchers.beat(self.report)
            yield item

    def _is_due(self, item: Found[FileKind], *, all_files: bool) -> bool:
        mark = self.marks.of(item.dev, item.ino)
        if mark is None:
            oldest = self.clock.now.timestamp() - self.owner.frame.config.scan.history_days * DAY_SECONDS
            return item.mtime_ns / 1e9 >= oldest
        self.marks.see(mark.id)
        try:
            same = (mark.size, mark.mtime_ns) == batches.version_of(item) and is_one_file(mark.path, item.path)
        except (FileNotFoundError, FileUnreadable):
            same = False  # reading it says what is wrong
        if mark.settled and same:
            return False
        looked_at = self.owner.looked.get(self.spec.id)
        return all_files or not same or scan.is_due(item.mtime_ns, looked_at, self.clock.real)

    def follow(self, hints: Iterable[str]) -> None:
        """Look only at the files that events named."""
        named = list(self._named(hints))
        for files in _together(self._all_of(self._oldest_first(named) if len(named) > 1 else named)):
            self._read_together(files)

    def _all_of(self, found: Iterable[Found[FileKind] | Problem]) -> Iterator[Found[FileKind]]:
        for item in found:
            if isinstance(item, Problem):
                self.report.problems.append(item)
            else:
                yield item

    def _named(self, hints: Iterable[str]) -> Iterator[Found[FileKind] | Problem]:
        root = os.path.realpath(self.spec.root)
        for path in sorted(hints):
            if path.startswith(root + os.sep):
                database = path.removesuffix("-wal")
                if self.spec.format.file_kind(os.path.relpath(database, root)) is FileKind.DATABASE:
                    path = database
                find = scan.below if os.path.isdir(path) and not os.path.islink(path) else scan.look
                yield from find(root, path, self.spec.format.file_kind, exclude=self.config.exclude)

    def _read_together(self, files: Sequence[Found[FileKind]]) -> None:
        """Read files one after the other, and commit what several gave as one; a beat never holds the ledger."""
        if len(files) == 1:
            self._read(files[0], self.watchers.beat)
            return
        with self.ingest.counting.together():
            for item in files:
                if self._must_end():
                    break
                self._read(item, None)
        self.watchers.beat(self.report)

    def _read(self, item: Found[FileKind], beat: Callable[[PassReport], None] | None) -> None:
        """Read what is new in one file; a file that cannot be read is a problem, the others go on."""
        if not is_utf8(item.path) or not is_utf8(item.relpath):
            problem = Problem("file_unreadable", shown(item.path), "its name is not UTF-8", "rename it")
            self.report.problems.append(problem)
            return
        if self.ingest.purged.holds_path(item.path):
            return
        if self._is_superseded(item):
            return
        try:
            ledger, spec = self.owner.frame.ledger, self.spec
            row = register(ledger, spec.id, spec.session_prefix, item, is_text=spec.is_text)
            self.marks.see(row.id)
            self.report.files += 1
            for step in self.ingest.read_file(self.spec, item, row):
                if beat:
                    beat(self.report)
                if self.watchers.stop():
                    self.report.complete = self.report.complete and not step.more
                    return
        except FileNotFoundError:
            return
        except FileUnreadable as exc:
            self.report.problems.append(
                Problem("file_unreadable", item.path, exc.what, exc.hint or "mend its permissions")
            )

    def _is_superseded(self, item: Found[FileKind]) -> bool:
        """Tell whether a newer file or store stands for this one, or an earlier source has it."""
        if any(claim.takes(item.path) for claim in self.claims):
            return True
        if item.kind is FileKind.ZSTD:  # it is being packed or unpacked: the plain file is the newer one
            return os.path.lexists(item.path.removesuffix(".zst"))
        form = superseding(self.spec.format)
        named = None if form is None else form.superseded_by(item.relpath)
        if form is None or named is None:
            return False
        return self.owner.successors.hold(os.path.join(self.spec.root, named), form, item)


def _together(files: Iterable[Found[FileKind]]) -> Iterator[list[Found[FileKind]]]:
    """Yield small files in groups, others alone; the order stays."""
    group: list[Found[FileKind]] = []
    size = 0
    for item in files:
        is_small = item.kind in (FileKind.LINES, FileKind.DOCUMENT)
        if group and not (is_small and size + item.size <= TOGETHER_BYTES and len(group) < TOGETHER_FILES):
            yield group
            group, size = [], 0
        group.append(item)
        size += item.size if is_small else TOGETHER_BYTES
    if group:
        yield group
