"""What a match is, written as the definition reads and as slowly as it likes: the engine must say the same."""

from __future__ import annotations

import unicodedata

from kbd.core.match import MAX_MATCHES_PER_PATTERN, Pattern, PatternKind
from kbd.core.normal import normalise, normalise_mapped, width

_CJK_NAMES = (
    *("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "KATAKANA-HIRAGANA"),
    "KANGXI",
)


def is_word(char: str) -> bool:
    return char == "_" or unicodedata.category(char)[0] in "LNM"


def is_cjk(char: str) -> bool:
    return any(word in _CJK_NAMES for word in unicodedata.name(char, "").split(" "))


def has_boundaries(text: str, start: int, end: int) -> bool:
    pairs = []
    if start > 0:
        pairs.append((text[start - 1], text[start]))
    if end < len(text):
        pairs.append((text[end - 1], text[end]))
    return all(not (is_word(a) and is_word(b)) or is_cjk(a) or is_cjk(b) for a, b in pairs)


def occurrences(needle: str, text: str) -> list[tuple[int, int]]:
    found = []
    at = text.find(needle)
    while at >= 0:
        found.append((at, at + len(needle)))
        at = text.find(needle, at + 1)
    return found


def _title_spans(pattern: Pattern, norm: str) -> list[tuple[int, int]]:
    wide = width(pattern.text)
    if wide < 8 or len(pattern.text) > 4096:
        return []
    return [span for span in occurrences(pattern.text, norm) if wide > 20 or has_boundaries(norm, *span)]


def _literal_spans(pattern: Pattern, text: str, origins: list[int]) -> list[tuple[int, int]]:
    literal = f"[{pattern.text}]" if pattern.kind is PatternKind.HANDLE else pattern.text
    spans = []
    for start, end in occurrences(literal, text):
        if pattern.kind is PatternKind.HANDLE or has_boundaries(text, start, end):
            spans.append((origins.index(start), origins.index(end - 1) + 1))
    return spans


def expected(patterns: tuple[Pattern, ...], text: str) -> set[tuple[int, int, int]]:
    """Return (norm_start, norm_end, pattern) of every match."""
    norm, origins = normalise_mapped(text)
    assert norm == normalise(text)
    valid = [
        (start, end, index)
        for index, pattern in enumerate(patterns)
        for start, end in (
            _title_spans(pattern, norm) if pattern.kind is PatternKind.TITLE else _literal_spans(pattern, text, origins)
        )
    ]
    outermost = [
        span
        for span in valid
        if not any(o[0] <= span[0] and span[1] <= o[1] and o[1] - o[0] > span[1] - span[0] for o in valid)
    ]
    kept: set[tuple[int, int, int]] = set()
    for index in range(len(patterns)):
        free, count = 0, 0
        for start, end, _ in sorted(span for span in outermost if span[2] == index):
            if start >= free and count < MAX_MATCHES_PER_PATTERN:
                kept.add((start, end, index))
                free, count = end, count + 1
    return kept
