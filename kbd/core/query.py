"""The words of a query, and which entries hold them: rare words tell more than common ones."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kbd.core.normal import normalise
from kbd.core.shelf import Candidate

MAX_CHARS = 10_000
MAX_WORDS = 24
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_IDEOGRAPH = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}][^\W{_CJK}]*(?:[-.][^\W{_CJK}]+)*")
_ASCII_WORD = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")
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

    Words that stand nowhere do not count. A word that stands more than 20 times in all titles, and more often than an
    eighth of the entries, tells too little apart: it does not count there. In texts the limit is a twentieth.
    """
    words = query_words(query)
    if not words:
        return Overlap()
    titles, texts = _Column([one.norm for one in candidates]), _Column([one.body for one in candidates])
    ids = {name.lower(): at for at, one in enumerate(candidates) for name in (one.handle, one.ident) if name}
    most_titles, most_texts = max(20, len(candidates) // 8), max(20, len(candidates) // 20)
    found: dict[str, tuple[set[int], set[int]]] = {}
    for word in words:
        title = titles.holding(word, most_titles) | ({ids[word]} if word in ids else set())
        text = texts.holding(word, most_texts) - title
        if title or text:
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
    return any(True for _ in _places(_utf8(text), word))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _places(text: bytes, word: str) -> Iterator[int]:
    """Yield where a word of a text in UTF-8 begins with `word`. Bytes are searched several times as fast as `str`."""
    sought, find = _utf8(word), text.find
    begins = _begins_anywhere if _IDEOGRAPH.match(word) else _begins_ascii if word.isascii() else _begins_other
    at = find(sought)
    while at >= 0:
        if begins(text, at):
            yield at
        at = find(sought, at + 1)


def _begins_anywhere(text: bytes, at: int) -> bool:
    return True


def _begins_ascii(text: bytes, at: int) -> bool:
    # Ideographs leave no space before a foreign word; other letters before an ASCII one are too rare to look at.
    return at == 0 or text[at - 1] not in _ASCII_WORD


def _begins_other(text: bytes, at: int) -> bool:
    before = text[max(at - 4, 0) : at].decode("utf-8", "ignore")[-1:]
    return not before.isalnum() or _IDEOGRAPH.match(before) is not None


class _Column:
    """Normalised texts, searched as one: a search in each of ten thousand takes ten times as long."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._joined = _utf8("\n".join(texts))
        self._starts = [0, *(found.end() for found in re.finditer(b"\n", self._joined))]

    def holding(self, word: str, most: int) -> set[int]:
        """Return the indexes of the texts in which `word` begins a word; none if it stands there over `most` times."""
        found = list(islice(_places(self._joined, word), most + 1))
        return set() if len(found) > most else {bisect.bisect_right(self._starts, at) - 1 for at in found}
