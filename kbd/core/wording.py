"""The wording of an entry, to tell whether somebody changed it."""

from __future__ import annotations

import hashlib

from kbd.core.match import is_matchable
from kbd.core.model import Entry


def wording_digest(entry: Entry) -> str:
    """Return 16 hexadecimal digits that are equal for entries of the same normalised title and body.

    Metadata comment, marker, tag and trailing date are no part of the wording.
    """
    text = f"{entry.norm}\n{entry.body}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_unmatchable(entry: Entry) -> bool:
    """Tell whether nothing but its handle can ever cite an entry: it would die unheard."""
    return entry.ident is None and not is_matchable(entry.norm)
