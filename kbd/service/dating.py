"""Creation dates for entries that have none: found in git, shown as a diff, written on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import unified_diff

from kbd.core.dating import Dated, Parse, insert_dates, undated
from kbd.errors import ChangedUnderneath, FileUnreadable
from kbd.store.blame import blame_days
from kbd.store.locks import Locks
from kbd.store.rewrite import Deferred, rewrite


@dataclass(frozen=True, slots=True)
class DateProposal:
    """What could be dated in a file.

    Attributes:
        path: the file.
        data: its content.
        undated: number of entries without any date.
        days: 1-based line of an entry → its day, for those that git knows and that can take one.
        dated: the content with these dates.
        why_not: why git could not be asked; "" if it could.
    """

    path: str
    data: bytes
    undated: int
    days: Mapping[int, date] = field(default_factory=dict)
    dated: bytes = b""
    why_not: str = ""

    def diff(self, shown: str) -> list[str]:
        """Return the change as a unified diff without line ends; `shown` names the file."""
        if not self.days:
            return []
        before, after = (data.decode("utf-8", "replace").split("\n") for data in (self.data, self.dated))
        return list(unified_diff(before, after, shown, shown, lineterm="", n=0))


def propose_dates(path: str, data: bytes, parse: Parse, today: date) -> DateProposal:
    """Return the dates that git has for a file's undated entries; a day after `today` is none."""
    entries = undated(parse(data).entries)
    if not entries:
        return DateProposal(path, data, 0)
    try:
        known = blame_days(path)
    except FileUnreadable as error:
        return DateProposal(path, data, len(entries), why_not=error.what)
    days = {entry.line: known[entry.line] for entry in entries if known.get(entry.line, date.max) <= today}
    dated: Dated = insert_dates(data, days, parse)
    return DateProposal(path, data, len(entries), {line: days[line] for line in dated.lines}, dated.data)


def write_dates(proposal: DateProposal, locks: Locks, now: float) -> str:
    """Write what was shown, under the file's lock; return what a person must know of it, "" for nothing.

    Raises:
        ChangedUnderneath: the file is not the one that was shown.
        LockTimeout, FileUnreadable, FileUnwritable: nothing was written.
    """

    def as_shown(data: bytes) -> bytes:
        if data != proposal.data:
            raise ChangedUnderneath("changed since it was shown", where=proposal.path, hint="run `kbd init` again")
        return proposal.dated

    outcome = rewrite(proposal.path, as_shown, locks, quiet_seconds=0, now=now)
    return f"not now: {outcome.reason}" if isinstance(outcome, Deferred) else ""


def count(proposals: Sequence[DateProposal]) -> tuple[int, int]:
    """Return how many entries have no date, and how many of these would get one."""
    return sum(one.undated for one in proposals), sum(len(one.days) for one in proposals)
