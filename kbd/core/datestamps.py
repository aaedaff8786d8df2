"""Dates that stand in an entry's text: when it was created, and the parentheses that say so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

_DATE = re.compile(r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
# Chinese text writes a wide colon and wide parentheses.
_BEFORE_OWN = re.compile(r"[ :：-]*(?:[(（][^()（）]{0,80}[0-9]{4}-[0-9]{2}-[0-9]{2}[^()（）]{0,80}[)）][ :：-]*)?")
_PARENTHESIS_OR_PARAGRAPH = re.compile(r"[()（）]|\n[ \t]*\n")


def dated_parentheses(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the outermost balanced parentheses that hold an ISO date, in order.

    Parentheses are matched within a paragraph, so that a stray one does no harm further on.
    """
    dates = [match.start() for match in _DATE.finditer(text)]
    found: list[tuple[int, int]] = []
    opened: list[tuple[int, int]] = []
    seen = 0
    for match in _PARENTHESIS_OR_PARAGRAPH.finditer(text) if dates else ():
        while seen < len(dates) and dates[seen] < match.start():
            seen += 1
        if match[0] in "(（":
            opened.append((match.start(), seen))
        elif match[0] not in ")）":
            opened.clear()
        elif opened:
            start, seen_before = opened.pop()
            if seen > seen_before:
                while found and found[-1][0] > start:
                    found.pop()
                found.append((start, match.end()))
    return found


def without_trailing_date(text: str) -> str:
    """Return the text without the dated parentheses it ends with, if it does; without white space at its end."""
    text = text.rstrip()
    end = len(text.rstrip(".。"))
    starts = [start for start, stop in dated_parentheses(text) if stop == end]
    return text[: min(starts)].rstrip() if starts else text


def own_text(norm: str) -> str:
    """Return what follows a title in a normalised text, without the separators and the dated parentheses between."""
    found = _BEFORE_OWN.match(norm)
    return norm[found.end() :] if found else norm


def creation(text: str, parentheses: Sequence[tuple[int, int]]) -> tuple[date | None, tuple[str, ...]]:
    """Return the day an entry was created and the dates given for it that are none, such as `2026-02-30`.

    `parentheses` are the dated ones of the text. It is the last date in them, else the last of the first line; a date
    that is none is passed over.
    """
    bracketed = [_DATE.findall(text, start, end) for start, end in parentheses]
    first_line = _DATE.findall(text, 0, (text + "\n").index("\n"))
    given = bracketed[-1] if bracketed else first_line
    inner_first = [word for words in (first_line, *bracketed) for word in words]
    created = next((day for word in reversed(inner_first) if (day := _day(word))), None)
    return created, tuple(word for word in given if _day(word) is None)


def _day(word: str) -> date | None:
    try:
        return date.fromisoformat(word)
    except ValueError:
        return None
