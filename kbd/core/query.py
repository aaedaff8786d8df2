"""The words of a query, and which entries hold them: rare words tell more than common ones."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kbd.core.normal import normalise
from kbd.core.shelf import Candidate

MAX_CHARS = 10_000
MAX_WORDS = 32
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_IDEOGRAPH = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}][^\W{_CJK}]*(?:[-.][^\W{_CJK}]+)*")
_STOP = frozenset(
    """
    about add after all also an and any are as at be before but by can could did do does done fix for from get had
    has have here how if in into is it its just let like make me my need new no not now of on or our out per please
    run see set should so than that the them then there they this to up us use using via want was we were what when
    where which who why will with would you your
    """.split()  # noqa: SIM905 - a list of words is read as words
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a query has in common with entries, by their keys.

    Attributes:
        shares: (share of the query's words that stand in the title, share of those that stand in the text alone), each
            from 0 to 1 and both together at most 1, for entries that hold a word.
        named: entries that two different words name, one of them in the title, or that their id or handle names.
    """

    shares: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    named: frozenset[int] = frozenset()


def overlap(query: str, candidates: Sequence[Candidate]) -> Overlap:
    """Hold a query against the entries. A word weighs ln(1 + entries / entries that hold it).

    Words that stand nowhere do not count, nor do those in over half of the entries (of 20 and more): they tell
    nothing apart.
    """
    words = query_words(query)
    if not words:
        return Overlap()
    titles, texts = _Column([one.norm for one in candidates]), _Column([one.body for one in candidates])
    ids = {name.lower(): at for at, one in enumerate(candidates) for name in (one.handle, one.ident) if name}
    most = max(20, len(candidates)) // 2 if len(candidates) >= 20 else len(candidates)
    found: dict[str, tuple[set[int], set[int]]] = {}
    for word in words:
        title = titles.holding(word) | ({ids[word]} if word in ids else set())
        text = texts.holding(word) - title
        if title or 0 < len(text) <= most:
            found[word] = (title, text)
    weights = {word: math.log1p(len(candidates) / (len(title) + len(text))) for word, (title, text) in found.items()}
    return _overlap(candidates, found, weights, {ids[word] for word in words if word in ids})


def _overlap(
    candidates: Sequence[Candidate],
    found: Mapping[str, tuple[set[int], set[int]]],
    weights: Mapping[str, float],
    direct: set[int],
) -> Overlap:
    whole = math.fsum(weights.values())
    sums: dict[int, list[float]] = {}
    for word, (title, text) in found.items():
        for at in title:
            one = sums.setdefault(at, [0.0, 0.0, 0])
            one[0] += weights[word] / whole
            one[2] += 1
        for at in text:
            one = sums.setdefault(at, [0.0, 0.0, 0])
            one[1] += weights[word] / whole
            one[2] += 1
    named = direct | {at for at, (title, _, count) in sums.items() if title and count > 1}
    shares = {candidates[at].key: (title, text) for at, (title, text, _) in sums.items()}
    return Overlap(shares, frozenset(candidates[at].key for at in named))


def query_words(text: str) -> tuple[str, ...]:
    """Return the words of a query that can tell entries apart: normalised, without stop words; pairs of ideographs."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(normalise(text[:MAX_CHARS])):
        word = match.group()
        if _IDEOGRAPH.match(word):
            found.update(dict.fromkeys([word[at : at + 2] for at in range(len(word) - 1)] or [word]))
        elif len(word) > 1 and word not in _STOP:
            found[word] = None
        if len(found) >= MAX_WORDS:
            break
    return tuple(found)[:MAX_WORDS]


def begins_word(text: str, word: str) -> bool:
    """Tell whether a word of `text` begins with `word`: `lock` in `locked`, but not in `block`; ideographs anywhere."""
    return any(True for _ in _places(text, word))


def _places(text: str, word: str) -> Iterator[int]:
    free, at = _IDEOGRAPH.match(word), text.find(word)
    while at >= 0:
        if free or at == 0 or not text[at - 1].isalnum():
            yield at
        at = text.find(word, at + 1)


class _Column:
    """Normalised texts, searched as one: a search in each of ten thousand takes ten times as long."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._joined = "\n".join(texts)
        self._starts: list[int] = []
        at = 0
        for text in texts:
            self._starts.append(at)
            at += len(text) + 1

    def holding(self, word: str) -> set[int]:
        """Return the indexes of the texts in which `word` begins a word: `lock` in `locked`, but not in `block`."""
        return {bisect.bisect_right(self._starts, at) - 1 for at in _places(self._joined, word)}
