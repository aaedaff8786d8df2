"""Bringing the ledger in step with the knowledge files: which entry is which, what a person changed.

Files are read by the store, decisions are made here, and all of one base's changes are one transaction. An
unreadable file is never taken for an empty one: its entries stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property

from kbd.core import entries as markdown
from kbd.core.classify import classify
from kbd.core.handles import handle
from kbd.core.model import Entry, Pair, Problem, State
from kbd.core.normal import ECHO_CHARS
from kbd.core.pairing import Seen, pair_up
from kbd.core.sidecar import with_values
from kbd.core.tokens import rough_tokens
from kbd.core.wording import is_unmatchable, wording_digest
from kbd.store.base_files import NoteFile
from kbd.store.ledger import Ledger, lessons, transcripts
from kbd.store.ledger.counts import recount
from kbd.store.ledger.intake import Intake, adopted_pair, found_state, shown_state, storable
from kbd.store.ledger.lessons import EntryRow, NoteRow

TWIN_DAYS = 2
CLOCK_SLACK = timedelta(minutes=10)
"""So far a clock may be set back between the moment an entry goes and what is read without it."""
TWIN_COLUMNS = (
    "title, section, type, type_source, file, line, last_line, place, body, body_sha, ident, file_ref, file_last, "
    "file_state, file_marker, unmatchable, bad_date"
)


@dataclass(frozen=True, slots=True)
class BaseSpec:
    """A knowledge base as the service sees it.

    Attributes:
        id: its id in the ledger; name: its name.
        types: known entry types; signals: signal phrases of types that the config adds.
        marker: the dormancy marker, "" for none.
        is_foreign: another kbd writes into the files: what they say is taken in as after a restore, not as edits.
        sidecars: counters stand in a file beside each; the Markdown is left alone.
    """

    id: int
    name: str
    types: frozenset[str]
    signals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    marker: str = "⚠️"
    is_foreign: bool = False
    sidecars: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync found.

    Attributes:
        changed: the patterns, or what is known of their entries, changed.
        rewound: transcripts are to be read again, because entries or titles appeared; the ledger holds which.
    """

    changed: bool
    rewound: bool


def sync_base(
    ledger: Ledger,
    base: BaseSpec,
    files: Sequence[NoteFile],
    unreadable: Sequence[Problem],
    now: datetime,
    *,
    partial: bool = False,
) -> Synced:
    """Bring the ledger in step with a base's files; one transaction, idempotent.

    Args:
        ledger: open for writing.
        base: the base.
        files: all its files and archives; `data` is None where the file is unchanged since the last sync.
        unreadable: files that exist but could not be read; `where` is the path.
        now: time of the pass.
        partial: not every file was looked for, so that this cannot end a base's first reading.
    """
    known = lessons.notes_of(ledger.db, base.id)
    kept = {f.path for f in files if f.data is None} | {p.where for p in unreadable}
    unchanged = kept >= set(known) and all(f.data is None for f in files) and not unreadable
    if unchanged and ledger.db.execute("SELECT first_read FROM bases WHERE id=?", (base.id,)).fetchone()[0] is not None:
        return Synced(changed=False, rewound=False)
    with ledger.transaction():
        return _Sync(ledger, base, now).run(files, kept, known, complete=not unreadable and not partial)


class _Sync:
    """One sync of one base, within a transaction."""

    def __init__(self, ledger: Ledger, base: BaseSpec, now: datetime) -> None:
        self.ledger, self.db, self.base = ledger, ledger.db, base
        self.now, self.today = now, now.date()
        row = self.db.execute("SELECT first_read FROM bases WHERE id=?", (base.id,)).fetchone()
        self.first = row[0] is None
        recovered = base.is_foreign or ledger.meta("recovered") == "1"
        self.intake = Intake(ledger, base.id, now, bool(base.marker), recovered)
        self.changed = False
        self.since: list[date] = []
        self.away_since: list[datetime] = []
        self.dirty: set[int] = set()

    def run(self, files: Sequence[NoteFile], kept: set[str], known: dict[str, NoteRow], *, complete: bool) -> Synced:
        seen: list[Seen] = []
        for file in files:
            if file.data is not None:
                seen.extend(self._parse(file, file.data, known.get(file.path)))
        there = kept | {f.path for f in files}
        paired = pair_up(seen, self._rows(seen, all_there=there >= set(known)), kept, self._former_titles)
        for one, row, renamed in paired.same:
            self._update(one, row, renamed=renamed)
        for one in paired.new:
            self._insert(one)
        for row in paired.gone:
            self._lose(row)
        for path in set(known) - there:
            self.db.execute("DELETE FROM notes WHERE path=?", (path,))
        recount(self.db, self.dirty, self.today)
        if self.first and complete:
            self.db.execute(
                "UPDATE bases SET first_read=?, decay_after=? WHERE id=?",
                (self.today.isoformat(), self.today.isoformat(), self.base.id),
            )
        return Synced(self.changed, self._rewind())

    def _rows(self, seen: Sequence[Seen], *, all_there: bool) -> list[EntryRow]:
        """Return the rows to pair: all, or those of the files read where each entry still stands at its place.

        A base of a thousand files has one of them written at a time.
        """
        if all_there and seen:
            near = [row for path in {s.path for s in seen} for row in lessons.entries_of_file(self.db, path)]
            places = {(r.file, r.place): (r.norm, r.section, r.body) for r in near if r.moving is None}
            if len(places) == len(near) == len(seen) and all(
                places.get((s.path, s.place)) == (s.entry.norm, s.entry.section, s.entry.body) for s in seen
            ):
                return near
        return lessons.entries_of(self.db, self.base.id, gone=True)

    @cached_property
    def _former(self) -> dict[int, list[str]]:
        return lessons.former_titles(self.db, self.base.id, self.today)

    def _former_titles(self, row: EntryRow) -> list[str]:
        return self._former.get(row.id, [])

    def _rewind(self) -> bool:
        """Let transcripts be read again: all for a base's first entries, else by when others appeared or came back."""
        if self.first and self.changed:
            return transcripts.rewind(self.db, None) > 0
        rewound = transcripts.rewind(self.db, min(self.since)) if self.since else 0
        if self.away_since:
            rewound += transcripts.rewind_read_since(self.db, min(self.away_since) - CLOCK_SLACK)
        return rewound > 0

    def _parse(self, file: NoteFile, data: bytes, note: NoteRow | None) -> list[Seen]:
        parsed = markdown.parse(data, self.base.types, self.base.marker)
        problems = [replace(p, where=f"{file.path}:{p.where.removeprefix('line ')}") for p in parsed.problems]
        row = NoteRow(
            file.path,
            self.base.id,
            file.archive,
            file.sha,
            file.size,
            file.mtime_ns,
            file.ino,
            note.wrote_at if note else None,
            note.wrote_mtime_ns if note else None,
        )
        lessons.save_note(self.db, row, rough_tokens(data), problems)
        lessons.release_file(self.db, file.path, self.base.id, self.today)
        entries = parsed.entries if file.values is None else with_values(parsed.entries, file.values)
        return [
            Seen(file.path, file.archive, i, storable(entry), _last_line(data, entry))
            for i, entry in enumerate(entries)
        ]

    def _columns(self, one: Seen) -> dict[str, object]:
        entry = one.entry
        text = f"{entry.title} {entry.body}"
        kind, source = entry.type, "tag"
        if kind is None:
            classified = classify(text, self.base.signals)
            kind, source = classified.type, "signal" if classified.signal else "default"
        sha = wording_digest(entry)
        dates = (entry.created, entry.meta.last if entry.meta else None)
        future = any(d is not None and d > self.today for d in dates)
        return {
            "title": entry.title,
            "norm": entry.norm,
            "section": entry.section,
            "type": kind,
            "type_source": source,
            "file": one.path,
            "line": entry.line,
            "last_line": one.last_line,
            "place": one.place,
            "body": entry.body,
            "body_sha": sha,
            "ident": entry.ident,
            "unmatchable": int(is_unmatchable(entry)),
            "bad_date": int(future),
            "file_ref": entry.meta.ref if entry.meta else None,
            "file_last": entry.meta.last if entry.meta else None,
            "file_state": entry.meta.state if entry.meta else None,
            "file_marker": int(entry.marker),
        }

    def _insert(self, one: Seen) -> None:
        entry, meta = one.entry, one.entry.meta
        found = adopted_pair(entry, self.today)
        state = found_state(one)
        created = entry.created or (None if self.first else self.today)
        own_handle = self._free_handle(entry.norm)
        row_id = lessons.insert_entry(
            self.db,
            base=self.base.id,
            handle=own_handle,
            state=state,
            created=created,
            first_seen=self.today,
            base_ref=found.ref,
            covers=found.last,
            last_floor=None,
            ref=found.ref,
            last=found.last,
            **self._columns(one),
            archived_since=self.today if state is State.ARCHIVED and not self.first else None,
            wrote_state=shown_state(one),
            wrote_marker=entry.marker,
        )
        if meta is not None and meta.ref is not None:
            self._adopt(row_id, entry.title, Pair(meta.ref, meta.last), found)
        self._set_patterns(row_id, own_handle, entry, None if self.first else self.today)
        self._note_body(row_id, entry)
        if not self.first:
            self.since.append(self.today)
            self.ledger.record_event(self.now, "entry_appeared", base=self.base.id, entry=row_id, title=entry.title)
        self.dirty.add(row_id)

    def _adopt(self, row_id: int, title: str, taken: Pair, believed: Pair) -> None:
        """Note the pair that the file gave at first sight; a `last` that is not believed is overruled, and said so."""
        lessons.add_pair(self.db, row_id, taken)
        lessons.update_entry(self.db, row_id, wrote_ref=taken.ref, wrote_last=taken.last)
        if taken.last != believed.last:
            what = f"last {taken.last} lies in the future"
            self.ledger.record_event(self.now, "overruled", base=self.base.id, entry=row_id, title=title, detail=what)

    def _free_handle(self, norm: str) -> str:
        short = handle(norm)
        taken = self.db.execute("SELECT 1 FROM entries WHERE handle=? AND norm!=?", (short, norm)).fetchone()
        return handle(norm, 10) if taken else short

    def _set_patterns(self, row_id: int, own_handle: str, entry: Entry, earns_from: date | None) -> None:
        wanted = {("title", entry.norm), ("handle", own_handle)}
        if entry.ident:
            wanted.add(("ident", entry.ident))
        for kind, text in sorted(wanted):
            if lessons.add_pattern(self.db, row_id, kind, text, earns_from):
                self.changed = True
        current = self.db.execute(
            "SELECT kind, text FROM patterns WHERE entry=? AND until IS NULL", (row_id,)
        ).fetchall()
        for kind, text in {(r["kind"], r["text"]) for r in current} - wanted:
            lessons.end_pattern(self.db, row_id, kind, text, self.today + timedelta(days=lessons.ALIAS_DAYS))
            self.changed = True

    def _note_body(self, row_id: int, entry: Entry) -> None:
        self.db.execute(
            "INSERT OR IGNORE INTO bodies VALUES (?,?,?,?)",
            (row_id, wording_digest(entry), self.today.isoformat(), entry.body[:ECHO_CHARS]),
        )

    def _update(self, one: Seen, row: EntryRow, *, renamed: bool) -> None:
        entry = one.entry
        columns = self._columns(one)
        if not renamed and self._is_known(one, row, columns):
            return
        lessons.update_entry(self.db, row.id, gone_on=None, **columns)
        if row.gone_on is not None:
            self.changed = True
            self.away_since.append(self._went_at(row.id, row.gone_on))
            self.ledger.record_event(self.now, "entry_returned", base=self.base.id, entry=row.id, title=entry.title)
        if entry.created is not None:
            lessons.update_entry(self.db, row.id, created=entry.created)
        own_handle = self._free_handle(entry.norm) if renamed else row.handle
        if renamed:
            lessons.update_entry(self.db, row.id, handle=own_handle)
            self.ledger.record_event(
                self.now, "title_edited", base=self.base.id, entry=row.id, title=entry.title, detail=f"was: {row.title}"
            )
        if renamed or entry.ident != row.ident:
            self._set_patterns(row.id, own_handle, entry, self.today)
            self.since.append(self.today)
        if wording_digest(entry) != row.body_sha:
            self.changed = True
            self._note_body(row.id, entry)
        if row.moving is None and row.state is State.ARCHIVED and not one.archive:
            self.intake.set_state(row, State.ACTIVE, "put back by hand", archive=False)
        elif row.moving is None and row.state is not State.ARCHIVED and one.archive:
            self.intake.set_state(row, State.ARCHIVED, "moved to the archive by hand", archive=True)
        self.intake.take(one, lessons.entry_row(self.db, row.id))
        self.dirty.add(row.id)

    def _is_known(self, one: Seen, row: EntryRow, columns: Mapping[str, object]) -> bool:
        """Tell whether nothing came with this reading: a file is read anew as a whole when one entry changes."""
        at_rest = row.moving is None and row.due is None and row.gone_on is None and not self.intake.recovered
        in_place = (row.state is State.ARCHIVED) is one.archive and one.entry.created in (None, row.created)
        return at_rest and in_place and all(getattr(row, name) == value for name, value in columns.items())

    def _went_at(self, entry: int, day: date) -> datetime:
        """Return when an entry went, the beginning of that day where the log does not tell."""
        row = self.db.execute(
            "SELECT at FROM events WHERE entry=? AND kind='entry_gone' AND day=? ORDER BY id DESC LIMIT 1",
            (entry, day.isoformat()),
        ).fetchone()
        return datetime.fromisoformat(row[0]) if row else datetime.combine(day, time.min, UTC)

    def _lose(self, row: EntryRow) -> None:
        if self._succeeded_by_twin(row):
            return
        lessons.update_entry(self.db, row.id, gone_on=self.today, moving=None)
        self.ledger.record_event(self.now, "entry_gone", base=self.base.id, entry=row.id, title=row.title)
        self.changed = True

    def _succeeded_by_twin(self, row: EntryRow) -> bool:
        """An entry moved to another file may have been seen there before it went here: it is the same one.

        The twin has been taken for new meanwhile; its place goes to the entry with the history.
        """
        twin = self.db.execute(
            "SELECT id FROM entries WHERE base=? AND norm=? AND id>? AND gone_on IS NULL AND state!='archived' "
            "AND first_seen>? ORDER BY id LIMIT 1",
            (self.base.id, row.norm, row.id, (self.today - timedelta(days=TWIN_DAYS)).isoformat()),
        ).fetchone()
        if twin is None:
            return False
        new = lessons.entry_row(self.db, int(twin[0]))
        place = self.db.execute(f"SELECT {TWIN_COLUMNS} FROM entries WHERE id=?", (new.id,)).fetchone()  # noqa: S608 - a constant
        lessons.update_entry(self.db, row.id, **dict(place))
        lessons.update_entry(self.db, new.id, gone_on=self.today, norm=f"\0{new.norm}", file="")
        self.db.execute("UPDATE patterns SET until=? WHERE entry=?", (self.today.isoformat(), new.id))
        self.dirty |= {row.id}
        self.changed = True
        return True


def _last_line(data: bytes, entry: Entry) -> int:
    """Return the number of the last line of an entry's block."""
    block = data[entry.block.start : entry.block.end]
    return entry.line + block.rstrip(b"\n").count(b"\n")
