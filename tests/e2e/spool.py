"""Files as agents write them: appended in pieces that end anywhere, inside a character too."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Spool:
    """Bytes on their way into files.

    Attributes:
        rng: decides where the pieces end.
        seconds: the world's time, in seconds since the epoch: the modification time of what arrives.
        waiting: by path, what was written by the agent and has not reached the disk.
    """

    rng: random.Random
    seconds: float
    waiting: dict[Path, bytearray] = field(default_factory=dict)

    def append(self, path: Path, data: bytes) -> None:
        self.waiting.setdefault(path, bytearray()).extend(data)

    def flush_piece(self, path: Path) -> None:
        """Let the next 1 to n bytes of a file arrive."""
        waiting = self.waiting[path]
        size = self.rng.choice((1, 2, 7, 100, 1000, len(waiting), len(waiting)))
        self._put(path, bytes(waiting[:size]))
        del waiting[:size]
        if not waiting:
            del self.waiting[path]

    def flush_pieces(self) -> None:
        """Let something arrive in about two thirds of the files."""
        for path in list(self.waiting):
            if self.rng.random() < 0.66:
                self.flush_piece(path)

    def settle(self, *paths: Path) -> None:
        """Let everything arrive, of these files or of all."""
        for path in paths or tuple(self.waiting):
            if path in self.waiting:
                self._put(path, bytes(self.waiting.pop(path)))

    def _put(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as file:
            file.write(data)
        self.seconds += 0.01
        os.utime(path, (self.seconds, self.seconds))
