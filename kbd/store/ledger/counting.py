"""When numbers are brought in step with facts: with each batch, or once for many small files that are one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime

from kbd.core.census import Census
from kbd.store.ledger.counts import recount
from kbd.store.ledger.database import Ledger
from kbd.store.ledger.growth import grow_relations
from kbd.store.ledger.transcripts import note_activity


@dataclass(slots=True)
class _Waiting:
    """What batches have touched: entries, and on which days which source gave records."""

    entries: set[int] = field(default_factory=set)
    days: dict[int, set[date]] = field(default_factory=dict)
    newest: dict[int, datetime] = field(default_factory=dict)

    def take(self, entries: set[int], source: int, seen: Census) -> None:
        self.entries |= entries
        self.days.setdefault(source, set()).update(seen.days)
        if seen.newest is not None:
            self.newest[source] = max(seen.newest, self.newest.get(source, seen.newest))


class Counting:
    """Counts the entries that a batch has touched, and notes when its source gave records."""

    def __init__(self, ledger: Ledger, today: date) -> None:
        """Count for a day; nothing waits."""
        self._ledger, self._today = ledger, today
        self._waiting: _Waiting | None = None

    def count(self, entries: set[int], source: int, seen: Census) -> None:
        """Bring what a batch has touched in step with the facts: the numbers of entries, relations that grow, days."""
        waiting = _Waiting() if self._waiting is None else self._waiting
        waiting.take(entries, source, seen)
        if waiting is not self._waiting:
            self._settle(waiting)

    def _settle(self, waiting: _Waiting) -> None:
        recount(self._ledger.db, waiting.entries, self._today)
        grow_relations(self._ledger.db, waiting.entries, self._today)
        for source, days in waiting.days.items():
            note_activity(self._ledger.db, source, days, waiting.newest.get(source))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit the transactions within as one; what they touched is counted once, before the commit."""
        with self._ledger.together():
            waiting = self._waiting = _Waiting()
            try:
                yield
            finally:
                self._waiting = None
            self._settle(waiting)
