"""Which sessions a newer store of an agent holds: their old files, left behind, are not read beside it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kbd.errors import FileUnreadable
from kbd.sources.contract import FileKind, SupersededFormat
from kbd.store.bytestream import HEAD_BYTES, open_bytes
from kbd.store.scan import Found
from kbd.store.sqlitefile import Stamp, columns_of, fetch, reading, stamp_of

_MAX_NAME = 1 << 20


@dataclass(slots=True)
class Successors:
    """The names that stores give to their sessions, as last read, and the old files that were found there.

    What was taken over once stays so: a store is asked again only for files that it did not hold.
    """

    _names: dict[str, tuple[Stamp, frozenset[str]]] = field(default_factory=dict)
    _held: dict[str, tuple[int, int]] = field(default_factory=dict)

    def hold(self, store: str, form: SupersededFormat, found: Found[FileKind]) -> bool:
        """Tell whether a store, where there is one, holds the session of an old file.

        True as well where that cannot be told now: a session is never read from both.
        """
        if self._held.get(found.path) == (found.size, found.mtime_ns):
            return True
        try:
            names = self._names_in(store, form)
        except FileNotFoundError:
            return False
        except FileUnreadable:
            return True
        is_held = not names.isdisjoint(form.names_of(found.relpath, _beginning(found.path)))
        if is_held:
            self._held[found.path] = found.size, found.mtime_ns
        return is_held

    def _names_in(self, store: str, form: SupersededFormat) -> frozenset[str]:
        stamp, known = stamp_of(store), self._names.get(store)
        if known is None or known[0] != stamp:
            with reading(store, max_value=_MAX_NAME) as db:
                columns: Mapping[str, frozenset[str]] = columns_of(db)
                names = (str(row[0]) for sql in form.names_in_store(columns) for row in fetch(db, sql))
                known = self._names[store] = stamp, frozenset(names)
        return known[1]


def _beginning(path: str) -> bytes:
    """Return how a file begins; nothing if it cannot be read: reading it says what is wrong."""
    with suppress(FileNotFoundError, FileUnreadable), open_bytes(path) as stream:
        return stream.read(0, HEAD_BYTES)
    return b""
