"""Two kbds on one base: who may write, and how files are taken in that another kbd wrote."""

from __future__ import annotations

from dataclasses import dataclass

from kbd.config import BaseConfig
from kbd.core.model import Problem
from kbd.engine.frame import Clock, Frame
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable
from kbd.store import writers
from kbd.store.writers import Standing, Writer


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether this kbd may write into a base now; `problem` says why not, or what else is wrong."""

    may_write: bool
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Sharing:
    """Looks at, and stamps, the writers of the bases.

    Attributes:
        frame: ledger and configuration.
    """

    frame: Frame

    def sees_others(self, base: BaseConfig, clock: Clock) -> bool:
        """Look for writers that write here without agreement; their numbers are then no person's edits."""
        if self.frame.config.write.shared:
            return False
        path = writers.path_beside(base.relations)
        try:
            standing = writers.look(path, self._me(), self._seen(path), clock.real)
        except FileUnreadable:
            return False  # `turn` says so, and lets nothing be written
        self._remember(path, standing)
        return bool(standing.sightings)

    def turn(self, base: BaseConfig, clock: Clock, *, wants: bool) -> Turn:
        """Return whether to write, and stamp this writer: if it wants to write, or has its line there already."""
        path, shared = writers.path_beside(base.relations), self.frame.config.write.shared
        try:
            standing = writers.look(path, self._me(), self._seen(path), clock.real)
            if wants or standing.known:
                standing = writers.claim(path, self._me(), self._seen(path), clock.real, shared=shared)
        except FileUnreadable as exc:
            return Turn(False, Problem("two_writers", path, exc.what, "mend or remove it; until then kbd only counts"))
        except (FileUnwritable, ChangedUnderneath) as exc:
            # Where not even this can be written, the files say so themselves once there is something to write.
            return Turn(True, Problem("write_failed", path, exc.what, exc.hint) if wants else None)
        self._remember(path, standing)
        if standing.others and not shared:
            return Turn(False, _two(path, standing.others[0]))
        return Turn(True)

    def _me(self) -> Writer:
        return writers.writer_here(self.frame.ledger.meta("id") or "", self.frame.state_dir)

    def _seen(self, path: str) -> writers.Sightings:
        return writers.decode_sightings(self.frame.ledger.meta(f"writers:{path}"))

    def _remember(self, path: str, standing: Standing) -> None:
        text = writers.encode_sightings(standing.sightings)
        if text != (self.frame.ledger.meta(f"writers:{path}") or "{}"):
            with self.frame.ledger.transaction():
                self.frame.ledger.set_meta(f"writers:{path}", text)


def _two(path: str, other: Writer) -> Problem:
    what = f"another kbd (ledger {other.id} on {other.host}) writes into this base, last seen {other.at}"
    hint = "stop one of them; `write.shared: true` in both if they read separate transcripts"
    return Problem("two_writers", path, what, hint)
