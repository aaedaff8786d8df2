"""After a restore: what was read before the ledger was lost comes again, and must not count twice.

Knowledge files are taken in by the covers rule until all were readable once; the lines without times of a source until
that source was read whole once. A source whose folder is missing does not hold the others in this state.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from kbd.core.model import Problem
from kbd.store.ledger import Ledger

_UNREAD = frozenset({"source_unreadable", "source_missing", "folder_unreadable", "file_unreadable", "too_many_files"})


def sources_to_recover(ledger: Ledger, configured: Collection[str]) -> frozenset[str]:
    """Return the sources that were not read whole since the restore; at first all that are configured."""
    noted = ledger.meta("recovering")
    if noted is None or noted == "[]":
        return frozenset()
    if noted == "":
        noted = json.dumps(sorted(configured))
        with ledger.transaction():
            ledger.set_meta("recovering", noted)
    return frozenset(json.loads(noted))


def end_recovery(ledger: Ledger, roots: Iterable[tuple[str, str]], problems: Collection[Problem]) -> None:
    """Note after a pass that read all there was what has been recovered; nothing is written if nothing has.

    `roots` are (name, folder) of the configured sources.
    """
    faulty = {p.where for p in problems if p.code in _UNREAD}
    read = {name for name, root in roots if not any(_lies_in(where, root) for where in faulty)}
    waiting = sources_to_recover(ledger, ())
    knows = ledger.meta("recovered") != "1" or any(p.code == "knowledge_unreadable" for p in problems)
    if knows and not waiting & read:
        return
    with ledger.transaction():
        if not knows:
            ledger.set_meta("recovered", "0")
        ledger.set_meta("recovering", json.dumps(sorted(waiting - read)))


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
