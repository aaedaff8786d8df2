"""When numbers are brought in step with facts: with each batch, or once for many small files that are one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from kbd.store.ledger.counts import recount
from kbd.store.ledger.database import Ledger
from kbd.store.ledger.growth import grow_relations


class Counting:
    """Counts the entries that a batch has touched."""

    def __init__(self, ledger: Ledger, today: date) -> None:
        """Count for a day; nothing waits."""
        self._ledger, self._today = ledger, today
        self._waiting: set[int] | None = None

    def count(self, entries: set[int]) -> None:
        """Bring the numbers of entries, and the relations that grow with them, in step with the facts."""
        if self._waiting is not None:
            self._waiting |= entries
            return
        recount(self._ledger.db, entries, self._today)
        grow_relations(self._ledger.db, entries, self._today)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit the transactions within as one; entries are counted once, before the commit."""
        with self._ledger.together():
            waiting = self._waiting = set()
            try:
                yield
            finally:
                self._waiting = None
            self.count(waiting)
