"""The words around a match, as evidence: short, on one line, without secrets."""

from __future__ import annotations

import re

from kbd.core.model import BREAK
from kbd.core.redact import redact

_REDACT_MARGIN = 200
"""Characters beyond a snippet that are looked at for secrets, so that none is cut in two and shows."""
_KEY_CHARS = 8192
_CUT_HEAD, _CUT_TAIL = re.compile(r"\A[!-~]+"), re.compile(r"[!-~]+\Z")


def snippet(text: str, start: int, end: int, chars: int) -> str:
    """Return up to `chars` characters around a match, on one line, secrets and control characters masked.

    Of a tool call they are those of the field that the match stands in.
    """
    if chars <= 0:
        return ""
    side = max((chars - (end - start)) // 2, 0)
    head, tail = _around(text, start, end, side + _REDACT_MARGIN)
    shown = redact(head.rpartition(BREAK)[2] + text[start:end] + tail.partition(BREAK)[0])
    at = shown.find(text[start:end])
    cut = shown[max(at - side, 0) :] if at >= 0 else shown
    return " ".join(cut[: chars + _REDACT_MARGIN].split())[:chars]


def _around(text: str, start: int, end: int, chars: int) -> tuple[str, str]:
    """Return what stands before and after, from the head of a private key on; no word that is cut in two.

    Half a token has lost the prefix that gives it away.
    """
    first, last = max(start - chars, 0), end + chars
    key = text.rfind("-----BEGIN ", max(first - _KEY_CHARS, 0), first + 1)
    head, tail = text[first if key < 0 else key : start], text[end:last]
    if key < 0 < first:
        head = _CUT_HEAD.sub("", head)
    return head, _CUT_TAIL.sub("", tail) if last < len(text) else tail
