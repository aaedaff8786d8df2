"""Which part of a session is a copy of another session's: its beginning, in order.

A fork, a compacted or resumed session and a copied file begin with what another session said, under the old times or
under that of the copying, and parts of it may be left out. So a session is a copy as far as each message has an equal
in the other one, after the equal of the message before: the same words, said at the same time, or no later than when
the copying began. The first message without such an equal ends the copy: words said after it are said anew, whoever
said them before. Only a session that names the other as its origin may leave out parts, unless the times tell what was
left out; all others are copies as long as they are equal place by place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain


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
        """Take the sayings, ordered by time, then place."""
        self.sayings = sayings
        self._by_words: dict[bytes, list[int]] = {}
        for index, saying in enumerate(sayings):
            self._by_words.setdefault(saying.words, []).append(index)

    def saying(self, words: bytes, at: int | None, place: int) -> int | None:
        """Return the index of a message: by its place, else its time, else the first with its words; None if none."""
        known = self._by_words.get(words, ())
        here = (i for i in known if self.sayings[i].place == place)
        then = (i for i in known if self.sayings[i].at == at)
        return next(chain(here, then, known), None)

    def after(self, words: bytes, index: int) -> Iterator[int]:
        """Yield the indices from one on that have these words."""
        known = self._by_words.get(words, [])
        yield from known[bisect_left(known, index) :]


def copied_beginning(copy: Telling, origin: Telling, *, is_declared: bool) -> dict[int, int]:
    """Return for each message of the beginning of `copy` that is copied the index of its original in `origin`.

    `is_declared` says that the copy names the other as its origin.
    """
    copied: dict[int, int] = {}
    begun = copy.sayings[0].at if copy.sayings else None
    at = 0
    for index, saying in enumerate(copy.sayings):
        equal = [i for i in origin.after(saying.words, at) if _may_be_copied(saying, origin.sayings[i], begun)]
        found = next((i for i in equal if origin.sayings[i].at == saying.at), equal[0] if equal else None)
        if found is None:
            break
        if found != at and (saying.at is None or not is_declared and origin.sayings[found].at != saying.at):
            break
        copied[index], at = found, found + 1
    return copied


def _may_be_copied(copy: Saying, original: Saying, begun: int | None) -> bool:
    if copy.at is None or original.at is None:
        return copy.at is original.at
    return original.at == copy.at or begun is not None and original.at <= begun
