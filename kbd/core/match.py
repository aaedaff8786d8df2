"""Find which titles, ids and handles occur in a text, and where: one Aho-Corasick pass, then the rules on its hits.

The module knows texts and patterns only; what a match is worth is for `kbd.core.cite` to say.

How it stays fast and exact:

- Keys and non-ASCII texts are UTF-8 viewed as latin-1. The automaton scans the edges of its root one by one, and with
  a view there are at most 256 of them however many different ideographs begin a title. UTF-8 keeps the hits aligned.
- Texts are scanned in windows of `WINDOW_CHARS` that overlap by the longest pattern, so a scan holds the interpreter
  for about a millisecond and copies little. A window equal to the one before has the same hits and is not
  scanned again: long runs (`=====`), where every nested title hits at every place, cost one window. The length of a
  window is divisible by every number up to 12, so that runs of a short pattern (`=-=-`) repeat in step with it.
- Only the longest valid title ending at a place is kept; spans that none can cover any more leave the sweep at once.

The cost that stays: the automaton reports every nested title at every place. A hundred titles nested in each other, in
2 MB of runs of their letter with random lengths, take 9 s; 2 MB of one run take 1 s.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ahocorasick

from kbd.core.haystack import Haystack, stands_alone
from kbd.core.normal import normalise, width

MIN_WIDTH = 8
MAX_BOUNDED_WIDTH = 20
MAX_TITLE_CHARS = 4096
MAX_MATCHES_PER_PATTERN = 10_000
WINDOW_CHARS = 27_720

_Span = tuple[int, int, int]
"""Start and end (exclusive) in the normalised text, index of the pattern."""


class PatternKind(enum.Enum):
    """What a pattern is, and so by which rule it matches."""

    TITLE = "title"
    IDENT = "ident"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for.

    Attributes:
        text: a title (its normal form), an id such as `KD07`, or a handle such as `k-7fq2mz` (without brackets).
        kind: the rule.
        refs: the caller's own numbers for it; several where titles normalise alike.
    """

    text: str
    kind: PatternKind
    refs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """One occurrence of a pattern.

    Attributes:
        start: offset of its first character in the text as given.
        end: offset after its last character there; marks that compose with that character are in.
        pattern: index into `Matcher.patterns`.
        norm_start: offset of its first character in the normalised text.
        norm_end: offset after its last character there.
    """

    start: int
    end: int
    pattern: int
    norm_start: int
    norm_end: int


def is_matchable(norm: str) -> bool:
    """Say whether a normalised title can ever match: at least 8 wide, at most 4,096 characters long.

    The upper limit is the matcher's: longer keys bring its automaton down.
    """
    return len(norm) <= MAX_TITLE_CHARS and width(norm) >= MIN_WIDTH


class Matcher:
    """An immutable set of patterns; one instance may serve several threads. To change it, build a new one.

    Attributes:
        patterns: the patterns in the order given, those equal in kind and (normalised) text merged into the first.
            Patterns that can never match (see `is_matchable`) are kept in it, so that indexes stay predictable.
    """

    __slots__ = ("_automaton", "_bounded", "_ending", "_lengths", "_literals", "_longest", "patterns")

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        """Build the automaton: about 10 µs per pattern. Titles are normalised, which leaves normal ones as they are."""
        self.patterns = _merged(patterns)
        self._literals = tuple(map(_literal, self.patterns))
        keys = [_key(pattern, literal) for pattern, literal in zip(self.patterns, self._literals, strict=True)]
        self._lengths = tuple(map(len, keys))
        self._bounded = tuple(
            not literal and width(key) <= MAX_BOUNDED_WIDTH for key, literal in zip(keys, self._literals, strict=True)
        )
        sharing: dict[str, list[int]] = {}
        for index, key in enumerate(keys):
            if key:
                sharing.setdefault(key, []).append(index)
        self._ending = tuple(map(tuple, sharing.values()))
        self._longest = max(self._lengths, default=0)
        self._automaton = _automaton(sharing)

    def could_match(self, text: str) -> bool:
        """Say whether `find(text)` needs to be asked: False means that it finds nothing. Stops at the first hit."""
        if self._automaton is None:
            return False
        if len(text) > WINDOW_CHARS:
            return any(True for _, _, window in self._windows(Haystack(text).norm) for _ in self._hits(window))
        return next(iter(self._hits(normalise(text))), None) is not None

    def find(self, text: str) -> tuple[Match, ...]:
        """Return the matches in `text`, sorted by start; offsets count characters.

        A match inside a longer match of another pattern is left out; two patterns on equal spans both match.
        Of the matches of one pattern that overlap each other, the leftmost is returned, then the next that
        begins after it. After `MAX_MATCHES_PER_PATTERN` in one text a pattern has been found often enough.
        """
        if not self.could_match(text):  # nearly always, at a fraction of what follows
            return ()
        haystack = Haystack(text)
        verified = self._verified(self._candidates(haystack.norm), haystack)
        return tuple(
            Match(*haystack.origin(start, end), index, start, end)
            for start, end, index in _leftmost(_outermost(verified, self._longest))
        )

    def _candidates(self, norm: str) -> Iterator[_Span]:
        """Yield titles that keep their rule, and ids and handles yet to be verified.

        Ends ascend; at one end the longest comes first, and nothing comes after a title.
        """
        before: tuple[str, int] | None = None
        spans: list[_Span] = []
        for offset, fresh, window in self._windows(norm):
            if (window, fresh) != before:
                before = (window, fresh)
                spans = self._spans(window, fresh)
            for start, end, index in spans:
                yield offset + start, offset + end, index

    def _windows(self, norm: str) -> Iterator[tuple[int, int, str]]:
        """Yield (offset, fresh, window): ends of hits in `window` up to `fresh` belong to the windows before.

        The character on either side of each hit that counts is in it, for the boundary rule.
        """
        if self._automaton is None:
            return
        for begin in range(0, len(norm), WINDOW_CHARS):
            offset = max(0, begin - self._longest)
            yield offset, begin - offset, norm[offset : begin + WINDOW_CHARS + 1]

    def _spans(self, window: str, fresh: int) -> list[_Span]:
        spans: list[_Span] = []
        closed = fresh
        for last, key in self._hits(window):
            end = last + 1
            if end <= closed:
                continue
            if end > fresh + WINDOW_CHARS:
                break
            for index in self._ending[key]:
                start = end - self._lengths[index]
                if self._bounded[index] and not stands_alone(window, start, end):
                    continue
                spans.append((start, end, index))
                if not self._literals[index]:
                    closed = end
        return spans

    def _hits(self, window: str) -> Iterable[tuple[int, int]]:
        """Return (offset of the last character, key) of each hit; at one end the longest comes first."""
        if window.isascii():
            hits: Iterable[tuple[int, int]] = self._automaton.iter(window)
            return hits
        return self._hits_in_utf8(window.encode("utf-8", "surrogatepass"))

    def _hits_in_utf8(self, encoded: bytes) -> Iterator[tuple[int, int]]:
        byte_end = char_end = 0
        for last, key in self._automaton.iter(encoded.decode("latin-1")):
            char_end += len(encoded[byte_end : last + 1].decode("utf-8", "surrogatepass"))
            byte_end = last + 1
            yield char_end - 1, key

    def _verified(self, spans: Iterable[_Span], haystack: Haystack) -> Iterator[_Span]:
        """Yield the titles, and those ids and handles that stand in the text as they are written."""
        present: dict[str, bool] = {}
        for start, end, index in spans:
            literal = self._literals[index]
            if literal and literal not in present:
                present[literal] = literal in haystack.text
            if not literal or (present[literal] and self._is_written(index, haystack, start, end)):
                yield start, end, index

    def _is_written(self, index: int, haystack: Haystack, norm_start: int, norm_end: int) -> bool:
        start, end = haystack.origin(norm_start, norm_end)
        if haystack.text[start:end] != self._literals[index]:
            return False
        return self.patterns[index].kind is PatternKind.HANDLE or stands_alone(haystack.text, start, end)


def _merged(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    refs: dict[tuple[PatternKind, str], dict[int, None]] = {}
    for pattern in patterns:
        text = normalise(pattern.text) if pattern.kind is PatternKind.TITLE else pattern.text
        refs.setdefault((pattern.kind, text), {}).update(dict.fromkeys(pattern.refs))
    return tuple(Pattern(text, kind, tuple(numbers)) for (kind, text), numbers in refs.items())


def _literal(pattern: Pattern) -> str:
    """Return what must stand in the text letter by letter; "" for a title."""
    match pattern.kind:
        case PatternKind.TITLE:
            return ""
        case PatternKind.IDENT:
            return pattern.text
        case PatternKind.HANDLE:
            return f"[{pattern.text}]"


def _key(pattern: Pattern, literal: str) -> str:
    """Return the normalised text to scan for; "" if the pattern can never match."""
    if literal:
        return normalise(literal)
    return pattern.text if pattern.kind is PatternKind.TITLE and is_matchable(pattern.text) else ""


def _automaton(keys: Iterable[str]) -> Any:
    """Return an automaton whose hits give the position of their key in `keys`; None without keys."""
    automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    for position, key in enumerate(keys):
        automaton.add_word(key.encode("utf-8", "surrogatepass").decode("latin-1"), position)
    if not len(automaton):
        return None
    automaton.make_automaton()
    return automaton


def _outermost(spans: Iterable[_Span], reach: int) -> Iterator[_Span]:
    """Leave out spans inside longer ones. `spans` come as `_candidates` gives them, none longer than `reach`.

    The open spans ascend in start and in end, so a new one can cover only the last of them. Each is opened and closed
    once: linear, and the open ones lie within one reach.
    """
    pending: deque[_Span] = deque()
    for span in spans:
        start, end, _ = span
        while pending and pending[0][0] < end - reach:
            yield pending.popleft()
        if pending and pending[-1][1] == end and pending[-1][0] < start:
            continue
        while pending and start <= pending[-1][0] and (start, end) != pending[-1][:2]:
            pending.pop()
        pending.append(span)
    yield from pending


def _leftmost(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Leave out spans that overlap the one before of the same pattern, and all over the limit per pattern."""
    ends: dict[int, int] = {}
    counts: dict[int, int] = {}
    for start, end, index in spans:
        count = counts.get(index, 0)
        if start >= ends.get(index, 0) and count < MAX_MATCHES_PER_PATTERN:
            ends[index] = end
            counts[index] = count + 1
            yield start, end, index
