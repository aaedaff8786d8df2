"""Reading transcripts into the ledger: one batch of records is one transaction, positions included.

A record read twice changes nothing: what it says is stored under keys made of its content. Reading again from
zero is therefore always allowed, and is how a new base, a new entry or a rewritten file is handled.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cached_property

from kbd.core.census import Census, census
from kbd.core.cite import Mention, first_per_pattern
from kbd.core.model import Author, Decoded, Line, Message, Record, RecordKind, TouchMode
from kbd.core.reading import Reader, Said
from kbd.core.relate import FILES_PER_CITATION, name_file, paths_in_prose
from kbd.core.scope import BaseScope
from kbd.core.silence import Silence, measured
from kbd.sources.contract import Decoder, FileKind, SourceFormat
from kbd.sources.jsonl import is_json
from kbd.store import batches, tail
from kbd.store.knowledge_paths import KnowledgePaths
from kbd.store.ledger import Ledger, facts, transcripts
from kbd.store.ledger.activity import note_base_activity
from kbd.store.ledger.counting import Counting
from kbd.store.ledger.crediting import Crediting, covered_time
from kbd.store.ledger.facts import Holder
from kbd.store.ledger.identity import Identity
from kbd.store.ledger.linecites import read_line_cite
from kbd.store.ledger.lineclock import LineClock
from kbd.store.ledger.purging import purged
from kbd.store.ledger.transcripts import FileRow, Tally
from kbd.store.logorigins import recognise
from kbd.store.position import Position
from kbd.store.scan import Found

FUTURE_SLACK = timedelta(minutes=5)
_REDACT_MARGIN = 200
"""Characters beyond a snippet that are looked at for secrets, so that none is cut in two and shows."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source as the service sees it.

    Attributes:
        id: in the ledger; name; root: absolute path.
        format: the decoder's module.
        is_text: lines of a log: one session a file, times by observation.
        is_excluded: tells which working directories are never read from.
        session_prefix: text sources: what the names of their sessions begin with.
    """

    id: int
    name: str
    root: str
    format: SourceFormat
    is_text: bool
    is_excluded: Callable[[str], bool] = lambda _: False
    session_prefix: str = ""


@dataclass(frozen=True, slots=True)
class IngestPolicy:
    """Limits of reading: bytes of a record, characters of a snippet (0: none)."""

    max_record: int = 8 << 20
    snippet_chars: int = 160


@dataclass(slots=True)
class Report:
    """What reading gave."""

    records: int = 0
    messages: int = 0
    citing: int = 0
    read_bytes: int = 0
    more: bool = False


class Ingest:
    """Reads files of sources with one set of patterns."""

    def __init__(
        self,
        ledger: Ledger,
        make_reader: Callable[[], Reader],
        bases: Sequence[BaseScope],
        paths: KnowledgePaths,
        git_root: Callable[[str], str | None],
        names_of_folder: Callable[[str], frozenset[str]],
        policy: IngestPolicy,
        now: datetime,
        real_now: float,
        zone: tzinfo,
        *,
        recovered: bool = False,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare a pass.

        Args:
            ledger: open for writing.
            make_reader: returns patterns and policy; called at the first file to read, for mostly there is none.
            bases: which base earns from which sessions.
            paths: the knowledge files, to tell writing a lesson from citing it.
            git_root: finds the git root of a directory.
            names_of_folder: returns the paths of a directory and its git root, as they are named and as they are.
            policy: limits.
            now: time of the pass; records cannot be later.
            real_now: the real clock in seconds, for lines that wait for their end.
            zone: of times written without one.
            recovered: the ledger was restored: lines without times may have been read before.
            is_current: tells, within a transaction, whether the reader's patterns are still those of the ledger.
        """
        self.ledger, self.db, self.purged = ledger, ledger.db, purged(ledger.db)
        self.make_reader, self.paths = make_reader, paths
        self.git_root, self.names_of_folder = git_root, names_of_folder
        self.policy, self.now, self.real_now, self.zone = policy, now, real_now, zone
        self.latest = now + FUTURE_SLACK
        self.open_bases = {b.id for b in bases if not b.projects}
        self.limited_bases = [b for b in bases if b.projects]
        self.recovered, self.is_current, self.is_outdated = recovered, is_current, False
        self.report, self.counting = Report(), Counting(ledger, now.date())

    @cached_property
    def reader(self) -> Reader:
        """Patterns and policy."""
        return self.make_reader()

    def read_file(self, source: SourceSpec, found: Found[FileKind], row: FileRow) -> Iterator[Report]:
        """Read what is new in a file, a batch a step; the report so far is yielded after each commit.

        Reading ends, and `is_outdated` is set, before a batch that would be read with patterns no longer in use.

        Raises:
            FileUnreadable: the file cannot be read.
            FileNotFoundError: it is gone.
        """
        row, position = self._start(source, found, row)
        from_start, is_document = position.offset == 0, found.kind is FileKind.DOCUMENT
        state = None if from_start or is_document else row.state
        decoder = source.format.decoder(row.relpath, state, tz=self.zone)
        is_jsonl = not source.is_text and ".json" in found.relpath.rsplit("/", 1)[-1]
        accept = is_json if is_jsonl else None  # an unended line of JSON is whole if it parses; of text, if it rests
        limit = self.policy.max_record
        for batch in batches.read_batches(
            found, position, source.format, source.root, now=self.real_now, accept_last=accept, max_record=limit
        ):
            with self.ledger.transaction():
                if not (self.reader and self.is_current()):  # in this order: one made just now is current
                    self.is_outdated = True
                    return
                if batch.restarted is not None:
                    row = recognise(self.db, transcripts.begin_anew(self.db, row)) if source.is_text else row
                    decoder = source.format.decoder(row.relpath, None, tz=self.zone)
                    from_start = True
                from_start = from_start or is_document and bool(batch.records)  # none: it is as it was
                one = _Batch(self, source, row, found, decoder)
                one.read(batch.records, from_start=from_start)
                one.store(batch.position, batch.oversize, from_start=from_start)
            from_start = False
            self.report.records += one.records
            self.report.read_bytes += sum(len(r.data) + 1 for r in batch.records)
            self.report.more = batch.more
            yield self.report

    def _start(self, source: SourceSpec, found: Found[FileKind], row: FileRow) -> tuple[FileRow, Position]:
        """Return where to begin: where reading stopped, or at 0 if the file is new or to be read again."""
        if row.position is not None and not row.reread:
            return row, row.position
        if row.position is not None and row.position.offset and not tail.holds(found.path, row.position):
            with self.ledger.transaction():
                row = recognise(self.db, transcripts.begin_anew(self.db, row)) if source.is_text else row
        return row, Position(found.dev, found.ino, size=found.size, mtime_ns=found.mtime_ns)


class _Batch:
    """One batch of one file, within a transaction."""

    def __init__(
        self, ingest: Ingest, source: SourceSpec, row: FileRow, found: Found[FileKind], decoder: Decoder
    ) -> None:
        self.ingest, self.db, self.source, self.row, self.decoder = ingest, ingest.db, source, row, decoder
        self.found = found
        self.clock = LineClock(self.db, row, found.mtime_ns, ingest.now) if source.is_text else None
        self.crediting = Crediting(self.db, source.id, source.format.agent, ingest.reader, ingest.policy.snippet_chars)
        self.census = Census({}, None, frozenset())
        self.sessions: dict[str, date] = {}
        self.inside: set[tuple[int, date]] = set()
        self.dirty: set[int] = set()
        self.records = self.messages = 0
        self.identity = Identity(self.db, source.format.agent, row.id, found.path)
        self.known: set[str] = set()
        self.place = batches.workplace_of(found, source.format, source.root)
        self.silence = Silence()

    def read(self, records: Sequence[Record], *, from_start: bool) -> None:
        """Take these records; a copy of another session is recognised before what it says is stored."""
        decoded = self._decoded(records)
        if not from_start:
            self.silence = transcripts.silence_of(self.db, self.row.id)
        still_open = self.decoder.flush()
        self.records += len(records)
        self.census = census([*decoded, still_open], self.ingest.latest, self.ingest.now)
        closed = [message for one in decoded if one.messages for message in self._read_of(one.messages)]
        growing = self._read_of(still_open.messages)
        again = from_start and self.row.position is not None
        self.dirty |= self.identity.note(closed, growing, again=again)
        said = [*closed, *growing]
        self.known = facts.known_messages(self.db, self.source.format.agent, {m.native_id for m in said})
        self.messages += len(said)
        for message in said:
            self._message(message)
        self.dirty |= self.identity.settle()
        self._measure({m.native_id for m in said if m.native_id in self.known}, anew=from_start)
        self.dirty |= self.crediting.finish(self.identity.kept, FILES_PER_CITATION)

    def _measure(self, native_ids: Iterable[str | None], *, anew: bool) -> None:
        """Tell messages how long they are, once all their records in this batch were taken."""
        for native_id in filter(None, native_ids):
            measured_now = self.silence.length(native_id)
            known = self.identity.stored(native_id) if measured_now else None
            if measured_now and known is not None:
                silent, before = measured_now
                self.crediting.measure(known, self.row.id, silent, None if anew else before)

    def _decoded(self, records: Sequence[Record]) -> list[Decoded]:
        feed, clock, now = self.decoder.feed, self.clock, self.ingest.now
        if clock is None:
            return [feed(record, now) for record in records]
        return [feed(record, clock.at(record.offset)) for record in records]

    def _read_of(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages that may be read, in the place of their transcript if they name no other."""
        if not messages:
            return []
        if self.place is not None:
            messages = [replace(one, cwd=self.place) if one.cwd is None else one for one in messages]
        return self.identity.in_trunks(messages, self._is_read)

    def _is_read(self, message: Message) -> bool:
        is_excluded = message.cwd is not None and self.source.is_excluded(message.cwd)
        return not is_excluded and not self.ingest.purged.holds_session(message.session)

    def _clamp(self, told: datetime) -> datetime:
        return self.ingest.now if told > self.ingest.latest else told

    def store(self, position: Position, oversize: int, *, from_start: bool) -> None:
        kinds, newest = self.census.kinds, self.census.newest
        unknown, malformed = kinds.get(RecordKind.UNKNOWN, 0), kinds.get(RecordKind.MALFORMED, 0)
        tally = Tally(self.records, self.messages, unknown, malformed, oversize)
        state = self.decoder.state()
        silence = None if self.found.kind is FileKind.DOCUMENT else self.silence
        transcripts.save_progress(
            self.db, self.row.id, position, state, silence, tally, newest, self.ingest.now, from_start=from_start
        )
        transcripts.note_sessions(self.db, self.source.id, self.sessions.items())
        note_base_activity(self.db, self.source.id, self.inside)
        self.ingest.counting.count(self.dirty, self.source.id, self.census)

    def _message(self, message: Message) -> None:
        told = message.at.astimezone(UTC) if message.at else self.ingest.now
        day = self._clamp(told).date()
        self.sessions[message.session] = max(day, self.sessions.get(message.session, day))
        scope = self._scope(message.cwd, day)
        said = self._say(message, scope)
        if message.native_id:
            self.silence.take(message.native_id, said.silent, [c.text for c in said.citing])
        if not said.citing and not said.wrote:
            self._silent(message)
            return
        self.ingest.report.citing += 1
        if message.lines:
            self._store_by_day(message, said)
        else:
            key, content = self.identity.of(message)
            self._store(message, said, key, self._holder(message, told, observed=message.at is None, content=content))
            self._go_on(message, ())

    def _say(self, message: Message, scope: set[int]) -> Said:
        """Return what a message says, lines cited by number included."""
        folder = None if message.cwd == self.place else message.cwd  # an inferred one leaves a relative path open
        said = self.ingest.reader.read(message, scope, lambda call: self.ingest.paths.named_by(call, folder))
        if not message.cites:
            return said
        by_line = (read_line_cite(self.db, cite, message.cwd, scope) for cite in message.cites)
        return replace(said, citing=(*said.citing, *(c for c in by_line if c is not None)))

    def _scope(self, cwd: str | None, day: date) -> set[int]:
        """Return the bases that earn from a session with this working directory; those it is inside of saw it work."""
        if cwd is None or not self.ingest.limited_bases:
            return self.ingest.open_bases
        names = self.ingest.names_of_folder(cwd)
        inside = {base.id for base in self.ingest.limited_bases if base.takes(names)}
        self.inside |= {(base, day) for base in inside}
        return self.ingest.open_bases | inside

    def _holder(
        self,
        message: Message,
        told: datetime,
        *,
        observed: bool,
        session: str | None = None,
        content: bytes | None = None,
    ) -> Holder:
        return Holder(
            session or message.session,
            self._clamp(told),
            observed,
            self.row.id,
            self.row.birth_ns,
            self.row.path,
            message.cwd,
            message.record_id,
            message.offset,
            content,
            message.thread,
            self.identity.place(message),
            told,
        )

    def _store_by_day(self, message: Message, said: Said) -> None:
        """Store a paragraph of a log: what its lines have of one day and one log is a message of its own."""
        starts, dated = [line.start for line in message.lines], message.record_id.startswith("t:")
        for citing in said.citing:
            parts: dict[tuple[date, str, str], list[tuple[Mention, Line]]] = {}
            for mention in citing.reading.mentions:
                line = message.lines[max(bisect.bisect_right(starts, mention.start) - 1, 0)]
                origin = self.row.origin_at(line.offset)
                # The line's own day: under a clock that is behind, or before its day, it is the same line all the same.
                part = (line.at.astimezone(UTC).date(), origin.stream, origin.session)
                parts.setdefault(part, []).append((mention, line))
            for (day, stream, origin_session), found in sorted(parts.items()):
                told, observed = found[0][1].at.astimezone(UTC), found[0][1].observed
                mentions = first_per_pattern([m for m, _ in found])
                # A log that is gone lends its session to what is dated only: other lines say nothing of being the same.
                session = origin_session if dated or stream != self.row.stream else self.row.session
                key = facts.key_of("text", origin_session if dated else stream, message.record_id, day.isoformat())
                # What the ledger still knows keeps its day, though a copy of it is found first after the restore.
                if observed and self.ingest.recovered and facts.message_id(self.db, key) is None:
                    told = covered_time(self.db, told, [m.entry for m, _ in found])
                holder = self._holder(message, told, observed=observed, session=session)
                one = replace(citing, reading=replace(citing.reading, mentions=mentions))
                self._store(message, Said((one,), ()), key, holder)

    def _store(self, message: Message, said: Said, key: bytes, holder: Holder) -> None:
        if self.ingest.purged.holds_session(holder.session):
            return
        if message.native_id:
            self.known.add(message.native_id)
        texts = [c.text for c in said.citing if c.block.author is Author.AGENT_TEXT]
        files = self._files(message, texts) if said.citing else ()
        silent = 0 if message.native_id else measured(said.silent)
        self.dirty |= self.crediting.store(key, holder, said, files, silent=silent, is_paragraph=bool(message.lines))

    def _files(self, message: Message, texts: Sequence[str]) -> tuple[str, ...]:
        """Name the files a citation applies to: named in the message, else the last one the session touched."""
        prose = [path for text in texts for path in paths_in_prose(text)]
        paths = [*_touched(message), *prose, *message.earlier] or [t.path for t in message.recent[:1]]
        return self._named(paths, message.cwd)

    def _named(self, paths: Sequence[str], cwd: str | None) -> tuple[str, ...]:
        root = self.ingest.git_root(cwd) if cwd else None
        names: list[str] = []
        for path in paths:
            if self.ingest.paths.is_private(path, cwd):
                continue
            name = name_file(path, cwd, root)
            if name and name not in names:
                names.append(name)
        return tuple(names[:FILES_PER_CITATION])

    def _silent(self, message: Message) -> None:
        """A record that names nothing, of a message that did: it may bring a file, or the full text of a partial."""
        if message.native_id and message.native_id in self.known:
            self._go_on(message, [b.text for b in message.blocks if b.call is None and b.text])

    def _go_on(self, message: Message, texts: Sequence[str]) -> None:
        """Let the other records of a message have what this one brings."""
        paths = _touched(message)
        known = self.identity.stored(message.native_id) if message.native_id and (texts or paths) else None
        if known is not None:
            names = self._named(paths, message.cwd)
            self.crediting.continue_message(known, texts, names)


def _touched(message: Message) -> list[str]:
    """Return the files that a record read or wrote; kbd's own commands touch none."""
    calls = [block.call for block in message.blocks if block.call and not block.call.own]
    return [touch.path for call in calls for touch in call.touched if touch.mode is not TouchMode.MENTION]
