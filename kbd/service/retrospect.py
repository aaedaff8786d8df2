"""A look back over some days: what was cited most, what came, came back and fell, and what nobody ever cited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from kbd.core.model import State
from kbd.store.ledger import Ledger
from kbd.store.ledger.counts import references_by_entry, sessions_between
from kbd.store.ledger.evidence import Logged
from kbd.store.ledger.lessons import EntryRow

CHANGES = {"new": "entry_appeared", "revived": "to_active", "faded": "to_dormant", "archived": "to_archived"}
"""What a look back calls a change, and the event that tells of it."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An entry with its references in the span, and in how many sessions they lie."""

    entry: EntryRow
    references: int
    sessions: int

    def as_json(self) -> dict[str, object]:
        """Return the fields of the entry beside its numbers in the span."""
        return _named(self.entry) | {
            "references": self.references, "sessions": self.sessions, "ref": self.entry.ref
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Retrospect:
    """A base over a span of days.

    Attributes:
        base: its name.
        live: its active and dormant entries today.
        sessions: those that cited any entry of it in the span.
        cited: what was cited in the span, most first.
        changes: by the names of `CHANGES`, what happened in the span, oldest first.
        never_cited: live entries without any reference at all, undated ones first, then the oldest.
    """

    base: str
    live: int
    sessions: int
    cited: tuple[Cited, ...]
    changes: dict[str, tuple[Logged, ...]]
    never_cited: tuple[EntryRow, ...]

    @property
    def references(self) -> int:
        """References of the span."""
        return sum(one.references for one in self.cited)

    def as_json(self) -> dict[str, object]:
        """Return the shape of a base in `kbd report --json`."""
        changes = {
            name: [{"at": e.at, "title": e.title, "handle": e.handle, "detail": e.detail} for e in events]
            for name, events in self.changes.items()
        }
        return {
            "name": self.base,
            "references": self.references,
            "sessions": self.sessions,
            "cited": [one.as_json() for one in self.cited],
            **changes,
            "never_cited": [
                _named(row) | {"created": row.created.isoformat() if row.created else None} for row in self.never_cited
            ],
        }


def look_back(
    ledger: Ledger, base: str, base_id: int, entries: Sequence[EntryRow], events: Iterable[Logged], span: Span
) -> Retrospect:
    """Return what a base's lessons went through in a span; `entries` are those it has, `events` those of the span."""
    rows = {row.id: row for row in entries}
    live = [row for row in entries if row.state is not State.ARCHIVED]
    own = [event for event in events if event.base == base and event.at[:10] <= span.until.isoformat()]
    cited = references_by_entry(ledger.db, base_id, span.since, span.until)
    silent = (row for row in live if row.ref == 0 and row.citations == 0)
    return Retrospect(
        base=base,
        live=len(live),
        sessions=sessions_between(ledger.db, base_id, span.since, span.until),
        cited=tuple(Cited(rows[entry], number, sessions) for entry, number, sessions in cited if entry in rows),
        changes={name: tuple(e for e in own if e.kind == kind) for name, kind in CHANGES.items()},
        never_cited=tuple(sorted(silent, key=lambda row: (row.created or date.min, row.title))),
    )


@dataclass(frozen=True, slots=True)
class Span:
    """Days, both ends included."""

    since: date
    until: date


def _named(row: EntryRow) -> dict[str, object]:
    return {"title": row.title, "handle": row.handle, "state": row.state.value}
