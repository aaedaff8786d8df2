"""The words around a match, as evidence: short, on one line, without secrets."""

from __future__ import annotations

from kbd.core.redact import redact

_REDACT_MARGIN = 200
"""Characters beyond a snippet that are looked at for secrets, so that none is cut in two and shows."""


def snippet(text: str, start: int, end: int, chars: int) -> str:
    """Return up to `chars` characters around a match, on one line, secrets and control characters masked."""
    if chars <= 0:
        return ""
    side = max((chars - (end - start)) // 2, 0)
    first = max(start - side - _REDACT_MARGIN, 0)
    shown = redact(text[first : end + side + _REDACT_MARGIN])
    at = shown.find(text[start:end])
    cut = shown[max(at - side, 0) :] if at >= 0 else shown
    return " ".join(cut[: chars + _REDACT_MARGIN].split())[:chars]
