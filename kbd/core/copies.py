"""Which part of a session is a copy of another session's: its beginning, in order.

A fork, a compacted or resumed session and a copied file begin with what another session said, under the old times or
under that of the copying, and parts of it may be left out. So a session is a copy as far as each message has an equal
in the other one, after the equal of the message before: the same words, said at the same time, or no later than when
the copying began. The first message without such an equal ends the copy: words said after it are said anew, whoever
said them before. Only a session that names the other as its origin may leave out parts, unless the times tell what was
left out; all others are copies as long as they are equal place by place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

_UNTIMED = -inf


@dataclass(frozen=True, slots=True)
class Saying:
    """A message as copies are told by.

    Attributes:
        words: digest of its words.
        at: its time in microseconds, None if it carries none.
        place: a number that grows along the transcript.
    """

    words: bytes
    at: int | None
    place: int


class Telling:
    """What one session says, in order."""

    def __init__(self, sayings: Sequence[Saying]) -> None:
        """Take the sayings, ordered by time (those without one first), then place."""
        self.sayings = sayings
        self._by_words: dict[bytes, list[int]] = {}
        self._by_place: dict[int, list[int]] = {}
        for index, saying in enumerate(sayings):
            self._by_words.setdefault(saying.words, []).append(index)
            self._by_place.setdefault(saying.place, []).append(index)

    def saying(self, words: bytes, at: int | None, place: int) -> int | None:
        """Return the index of a message: by its place, else its time, else the first with its words; None if none."""
        here = (i for i in self._by_place.get(place, ()) if self.sayings[i].words == words)
        known = self._by_words.get(words, [])
        return next(chain(here, self._then(known, 0, at), known), None)

    def original(self, copy: Saying, index: int, begun: int | None) -> int | None:
        """Return which saying from `index` on another one may be a copy of, by a session that began at `begun`.

        The one of the same time is, else the first one said by then; None if there is none.
        """
        known = self._by_words.get(copy.words, [])
        first = bisect_left(known, index)
        same = next(self._then(known, first, copy.at), None)
        if same is not None or copy.at is None or begun is None:
            return same
        timed = bisect_right(known, _UNTIMED, first, key=self._moment)
        found = known[timed] if timed < len(known) else None
        return found if found is not None and self._moment(found) <= begun else None

    def _then(self, known: Sequence[int], first: int, at: int | None) -> Iterator[int]:
        """Yield the first of the indices from one on, that is of this time."""
        moment = _UNTIMED if at is None else at
        found = bisect_left(known, moment, first, key=self._moment)
        if found < len(known) and self._moment(known[found]) == moment:
            yield known[found]

    def _moment(self, index: int) -> int | float:
        at = self.sayings[index].at
        return _UNTIMED if at is None else at


def copied_beginning(copy: Telling, origin: Telling, *, is_declared: bool) -> dict[int, int]:
    """Return for each message of the beginning of `copy` that is copied the index of its original in `origin`.

    `is_declared` says that the copy names the other as its origin. Takes time with the length of the beginning, however
    often the same words are said.
    """
    copied: dict[int, int] = {}
    begun = copy.sayings[0].at if copy.sayings else None
    at = 0
    for index, saying in enumerate(copy.sayings):
        found = origin.original(saying, at, begun)
        if found is None:
            break
        if found != at and (saying.at is None or not is_declared and origin.sayings[found].at != saying.at):
            break
        copied[index], at = found, found + 1
    return copied
