"""Which bases earn from sessions in their projects only, as the configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from kbd.store.ledger import transcripts
from kbd.store.ledger.database import Ledger


def limit_bases(ledger: Ledger, limited: Mapping[int, bool]) -> bool:
    """Note which bases earn only from sessions in their projects; nothing is written where nothing changed.

    True: transcripts are to be read again, for when there were such sessions was not noted before.
    """
    known = {int(r[0]): bool(r[1]) for r in ledger.db.execute("SELECT id, limited FROM bases")}
    changed = {base: now for base, now in limited.items() if known[base] is not now}
    if not changed:
        return False
    with ledger.transaction() as db:
        db.executemany("UPDATE bases SET limited=? WHERE id=?", [(now, base) for base, now in changed.items()])
        return any(changed.values()) and transcripts.rewind(db, None) > 0
