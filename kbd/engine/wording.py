"""Files are parsed again, though unchanged, when the words that tell types change: in the configuration or in kbd."""

from __future__ import annotations

import hashlib

from kbd import __version__
from kbd.service.knowledge import BaseSpec
from kbd.store.ledger import Ledger


def is_parsed_so(ledger: Ledger, base: BaseSpec) -> bool:
    """Tell whether the base's files were last parsed with the types, signals and marker that are in use."""
    return ledger.meta(_key(base)) == _digest(base)


def note_parsed(ledger: Ledger, base: BaseSpec) -> None:
    """Note that all files of the base were parsed with what is in use now."""
    with ledger.transaction():
        ledger.set_meta(_key(base), _digest(base))


def _key(base: BaseSpec) -> str:
    return f"words of base {base.id}"


def _digest(base: BaseSpec) -> str:
    words = (__version__, sorted(base.types), sorted(base.signals.items()), base.marker)
    return hashlib.sha256(repr(words).encode("utf-8", "surrogatepass")).hexdigest()
