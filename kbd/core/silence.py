"""How much of a message names no entry: what listings are measured against, over all its records and blocks.

The records of a message may be read far apart, so the newest messages of a file are remembered from batch to batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kbd.core.cite import digest
from kbd.core.normal import normalise

REMEMBERED_MESSAGES = 16

Measured = tuple[int, int, str]
"""Of a block: normalised characters without echo lines, all of them, and a digest in hex."""


@dataclass(frozen=True, slots=True)
class SilentBlock:
    """A block that may count and names nothing: its text, and how many normalised characters stand on echo lines."""

    text: str
    echoed: int = 0


def measured(silent: Iterable[SilentBlock]) -> int:
    """Return the normalised characters of the silent blocks of a message that is one record."""
    one = Silence()
    one.take("", silent, ())
    return one.length("")


class Silence:
    """The silent blocks of messages by the messages' ids; measured when they are asked for, since few ever are."""

    def __init__(self, saved: Mapping[str, Iterable[Measured]] | None = None) -> None:
        """Begin with what `saved` returned."""
        self._measured = {known: [*blocks] for known, blocks in (saved or {}).items()}
        self._waiting: dict[str, list[SilentBlock | str]] = {}

    def take(self, message: str, silent: Iterable[SilentBlock], told: Iterable[str]) -> None:
        """Take blocks of one record; `told` are texts of the message that name something and may end a partial."""
        blocks: list[SilentBlock | str] = [*silent, *told]
        if blocks and (self.knows(message) or not isinstance(blocks[0], str)):
            self._waiting.setdefault(message, []).extend(blocks)

    def knows(self, message: str) -> bool:
        """Tell whether a message had silent blocks."""
        return message in self._measured or message in self._waiting

    def length(self, message: str) -> int:
        """Return the normalised characters of a message's silent blocks, echo lines left out; a partial counts once."""
        return sum(length for length, _, _ in self._blocks(message))

    def saved(self) -> dict[str, list[Measured]]:
        """Return the newest messages, in a form that JSON keeps."""
        newest = [*(known for known in self._measured if known not in self._waiting), *self._waiting]
        return {message: self._blocks(message) for message in newest[-REMEMBERED_MESSAGES:]}

    def _blocks(self, message: str) -> list[Measured]:
        found = self._measured.setdefault(message, [])
        for block in self._waiting.get(message, ()):
            norm = normalise(block if isinstance(block, str) else block.text)
            found[:] = [b for b in found if b[1] > len(norm) or digest(norm[: b[1]]).hex() != b[2]]
            if not isinstance(block, str):
                found.append((max(len(norm) - block.echoed, 0), len(norm), digest(norm).hex()))
        self._waiting.pop(message, None)
        return found
