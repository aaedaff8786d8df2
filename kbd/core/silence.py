"""How much of a message names no entry: what listings are measured against, over all its records and blocks.

The records of a message may be read far apart, so the newest messages of a file are remembered from batch to batch. A
message that returns after as many others begins anew: which batches its records came in makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kbd.core.cite import digest
from kbd.core.lean import lean
from kbd.core.normal import normalise

REMEMBERED_MESSAGES = 16

Measured = tuple[int, int, str]
"""Of a block: normalised characters without echo lines, all of them, and a digest in hex."""
Remembered = tuple[bool, int, list[Measured]]
"""Of a message: whether it has named an entry, how long its silent blocks were when last asked, and these."""


@lean(frozen=True, slots=True)
class SilentBlock:
    """A block that may count and names nothing: its text, and how many normalised characters stand on echo lines."""

    text: str
    echoed: int = 0


def measured(silent: Iterable[SilentBlock]) -> int:
    """Return the normalised characters of the silent blocks of a message that is one record."""
    return _Turn(waiting=[*silent]).length()


@dataclass(slots=True)
class _Turn:
    """A message, or as much of it as came in one go; measured when that is asked for, since few ever are."""

    told: bool = False
    asked: int = 0
    blocks: list[Measured] = field(default_factory=list)
    waiting: list[SilentBlock | str] = field(default_factory=list)

    def measured(self) -> list[Measured]:
        """Return the silent blocks; a partial counts once, and not at all if it goes on to name an entry."""
        for block in self.waiting:
            norm = normalise(block if isinstance(block, str) else block.text)
            self.blocks = [b for b in self.blocks if b[1] > len(norm) or digest(norm[: b[1]]).hex() != b[2]]
            if not isinstance(block, str):
                self.blocks.append((max(len(norm) - block.echoed, 0), len(norm), digest(norm).hex()))
        self.waiting = []
        return self.blocks

    def length(self) -> int:
        return sum(length for length, _, _ in self.measured())


class Silence:
    """The silent blocks of messages by the messages' ids."""

    def __init__(self, saved: Mapping[str, Remembered] | None = None) -> None:
        """Begin with what `saved` returned."""
        self._turns = {known: _Turn(told, asked, blocks) for known, (told, asked, blocks) in (saved or {}).items()}
        self._ended: dict[str, list[_Turn]] = {}

    def take(self, message: str, silent: Iterable[SilentBlock], told: Iterable[str]) -> None:
        """Take blocks of one record; `told` are texts of the message that name something and may end a partial."""
        mute, texts = [*silent], [*told]
        if not (mute or texts):
            return
        turn = self._turns.pop(message, None) or _Turn()
        turn.told = turn.told or bool(texts)
        if mute or turn.blocks or turn.waiting:  # a text ends only partials that came before it
            turn.waiting += [*mute, *texts]
        self._turns[message] = turn
        if len(self._turns) > REMEMBERED_MESSAGES:
            oldest = next(iter(self._turns))
            self._ended.setdefault(oldest, []).append(self._turns.pop(oldest))

    def length(self, message: str) -> tuple[int, int] | None:
        """Return the normalised characters of a message's silent blocks, echo lines left out, and what this last said.

        None if there are none, or if the message named no entry while it was remembered.
        """
        turns = [*self._ended.get(message, ()), *filter(None, [self._turns.get(message)])]
        turns = [turn for turn in turns if turn.told and (turn.asked or turn.blocks or turn.waiting)]
        if not turns:
            return None
        now, before = max(turn.length() for turn in turns), max(turn.asked for turn in turns)
        for turn in turns:
            turn.asked = turn.length()
        return now, before

    def saved(self) -> dict[str, Remembered]:
        """Return the newest messages, in a form that JSON keeps."""
        return {message: (turn.told, turn.asked, turn.measured()) for message, turn in self._turns.items()}
