"""Taking in what a knowledge file says about an entry: first sight, a person's edit, a restored ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime

from kbd.core.merge import Merged, Outcome, Written, merge
from kbd.core.model import Entry, Metadata, Pair, State
from kbd.core.pairing import Seen
from kbd.store.ledger import lessons
from kbd.store.ledger.counts import added_after
from kbd.store.ledger.database import Ledger
from kbd.store.ledger.lessons import EntryRow

NOTHING = Pair(0, None)


@dataclass(frozen=True, slots=True)
class Intake:
    """Interprets the comments of one base's files, within a transaction.

    Attributes:
        ledger: open for writing.
        base: id of the base.
        now: time of the pass.
        markers: dormant entries carry a marker.
        recovered: the ledger was restored: files are taken in, not merged.
    """

    ledger: Ledger
    base: int
    now: datetime
    markers: bool
    recovered: bool

    @property
    def today(self) -> date:
        """The day of the pass."""
        return self.now.date()

    def take(self, one: Seen, row: EntryRow) -> None:
        """Interpret what the file says against what kbd last wrote."""
        meta = one.entry.meta
        if self.recovered:
            self._take_in(one, row)
            return
        wrote = _written(row, meta, one.entry.marker)
        merged = merge(
            wrote,
            lessons.pairs_of(self.ledger.db, row.id),
            meta,
            one.entry.marker,
            row.pair,
            row.state,
            self.today,
            markers=self.markers,
        )
        if wrote is not None and wrote.landed and row.due is not None and wrote.pair == row.due:
            lessons.confirm_written(self.ledger.db, row.id)
        if merged.outcome is Outcome.PERSON and meta is not None and meta.ref is not None:
            self._adopt_edit(row, one, Pair(meta.ref, meta.last), merged)
        # A block that may stand in both files shows in one of them the state before: no person's doing.
        state = None if row.move_begun else merged.person_state
        if state is not None and state is not row.state:
            self.set_state(row, state, "set by hand", archive=one.archive)
            if one.archive is (state is State.ARCHIVED):  # else it says so where it arrives
                lessons.update_entry(self.ledger.db, row.id, wrote_state=state, wrote_marker=one.entry.marker)

    def _adopt_edit(self, row: EntryRow, one: Seen, found: Pair, merged: Merged) -> None:
        floor = max((d for d in (merged.last_floor, row.last_floor) if d), default=None)
        lessons.update_entry(
            self.ledger.db,
            row.id,
            adjust=row.adjust + merged.adjustment,
            last_floor=floor,
            wrote_ref=found.ref,
            wrote_last=found.last,
            due_ref=None,
            due_last=None,
            due_state=None,
        )
        lessons.update_entry(self.ledger.db, row.id, wrote_state=shown_state(one), wrote_marker=one.entry.marker)
        lessons.add_pair(self.ledger.db, row.id, found)
        self.ledger.record_event(
            self.now,
            "person_edit",
            base=self.base,
            entry=row.id,
            title=row.title,
            detail=f"ref {merged.adjustment:+d}, last {found.last}",
        )
        for what in merged.overruled:
            self.ledger.record_event(self.now, "overruled", base=self.base, entry=row.id, title=row.title, detail=what)

    def _take_in(self, one: Seen, row: EntryRow) -> None:
        """After a restore the file's number stands, and covers every day up to its `last`."""
        meta = one.entry.meta
        if meta is None or meta.ref is None:
            return
        found = Pair(meta.ref, meta.last)
        if found != row.wrote and found not in lessons.pairs_of(self.ledger.db, row.id):
            covers = adopted_pair(one.entry, self.today).last
            lessons.update_entry(
                self.ledger.db,
                row.id,
                base_ref=found.ref - added_after(self.ledger.db, row.id, covers.isoformat() if covers else None),
                covers=covers,
                adjust=0,
                last_floor=None,
                wrote_ref=found.ref,
                wrote_last=found.last,
                wrote_state=shown_state(one),
                wrote_marker=one.entry.marker,
                state=found_state(one),
                moving=None,
                due_ref=None,
                due_last=None,
                due_state=None,
            )
            lessons.add_pair(self.ledger.db, row.id, found)

    def set_state(self, row: EntryRow, state: State, why: str, *, archive: bool) -> None:
        """Change the state of an entry by a person's hand, and note it.

        `archive` tells where its block stands: if that is the wrong file, it is on its way from now on.
        """
        lessons.set_state(self.ledger.db, row.id, state, self.today, archive=archive)
        self.ledger.record_event(
            self.now, f"to_{state.value}", base=self.base, entry=row.id, title=row.title, detail=why
        )


def adopted_pair(entry: Entry, today: date) -> Pair:
    """Return the number a file gives an entry at first sight; a future `last`, or one alone, covers nothing."""
    if entry.meta is None or entry.meta.ref is None:
        return NOTHING
    last = entry.meta.last
    return Pair(entry.meta.ref, last if last is not None and last <= today else None)


def found_state(one: Seen) -> State:
    """Return the state an entry stands in at first sight."""
    if one.archive:
        return State.ARCHIVED
    said = one.entry.meta.state if one.entry.meta else None
    return State.DORMANT if one.entry.marker or said in (State.DORMANT, State.ARCHIVED) else State.ACTIVE


def shown_state(one: Seen) -> State:
    """Return the state that comment and marker show, whatever kbd makes of it."""
    said = one.entry.meta.state if one.entry.meta else None
    return said or (State.DORMANT if one.entry.marker else State.ACTIVE)


def _written(row: EntryRow, meta: Metadata | None, marker: bool) -> Written | None:
    """Return what kbd last wrote, as far as the file lets one tell.

    An intended write counts if its pair stands in the file; whether it landed is told by the state, since a write
    may change that alone.
    """
    if (
        row.due is not None
        and row.due_state is not None
        and meta is not None
        and Pair(meta.ref or 0, meta.last) == row.due
    ):
        landed = meta.state in (row.due_state, None) and (row.due_marker is None or row.due_marker is marker)
        return Written(row.due, row.due_state, row.due_marker, landed)
    if row.wrote_state is None:
        return None
    return Written(row.wrote, row.wrote_state, row.wrote_marker)


def storable(entry: Entry) -> Entry:
    """Return an entry whose texts are valid UTF-8: bytes of a file that are none become `?`."""
    return replace(
        entry,
        **{
            name: value.encode("utf-8", "replace").decode()
            for name in ("title", "norm", "section", "body")
            if not (value := getattr(entry, name)).isascii()
        },
    )
