"""The words around a match, as evidence: short, on one line, without secrets."""

from __future__ import annotations

from kbd.core.model import BREAK
from kbd.core.redact import redact

_REDACT_MARGIN = 200
"""Characters beyond a snippet that are looked at for secrets, so that none is cut in two and shows."""


def snippet(text: str, start: int, end: int, chars: int) -> str:
    """Return up to `chars` characters around a match, on one line, secrets and control characters masked.

    Of a tool call they are those of the field that the match stands in.
    """
    if chars <= 0:
        return ""
    side = max((chars - (end - start)) // 2, 0)
    first, last = max(start - side - _REDACT_MARGIN, 0), end + side + _REDACT_MARGIN
    before = text.rfind(BREAK, first, start)
    first = first if before < 0 else before + len(BREAK)
    shown = redact(text[first:last].partition(BREAK)[0])
    at = shown.find(text[start:end])
    cut = shown[max(at - side, 0) :] if at >= 0 else shown
    return " ".join(cut[: chars + _REDACT_MARGIN].split())[:chars]
