"""The three-way merge of one entry's metadata: what kbd wrote, what the file says, what the ledger says.

`(ref, last)` is compared as one value. Nothing is ever added up from a file: a pair that kbd knows is replaced,
one that it does not know is a person's, whose difference to the pair last written becomes an adjustment.
"""

from __future__ import annotations

import enum
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date

from kbd.core.model import Metadata, Pair, State


class Outcome(enum.Enum):
    """What the file said.

    UNCHANGED: the target already. OURS: what kbd last wrote. STALE: a pair kbd knows from earlier. PERSON: a pair
    kbd does not know. ABSENT: no readable counter.
    """

    UNCHANGED = "unchanged"
    OURS = "ours"
    STALE = "stale"
    PERSON = "person"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Written:
    """What kbd last wrote about an entry, or took in from the file where it has not written yet.

    Attributes:
        pair: None if there was no readable counter when the entry was taken in.
        state: the state that the comment and the marker showed.
        marker: the dormancy marker stood there; None if markers were off or another symbol: then it says nothing.
        landed: the file is known to have been replaced. False after a crash between intent and rename: then the
            file may still show the state before, which is no person's doing.
    """

    pair: Pair | None
    state: State
    marker: bool | None = None
    landed: bool = True


@dataclass(frozen=True, slots=True)
class Merged:
    """What to record and what to write.

    Attributes:
        outcome: see `Outcome`; UNCHANGED means that nothing need be written.
        adjustment: to be added to the ledger's ref, for good. Never takes it below 0.
        last_floor: a newer day that a person set, to be kept as the least `last`; None if none.
        overruled: what a person wrote and kbd does not follow, in words, for the report.
        person_state: the state that a person set by hand; None if none.
        target: pair to write.
        target_state: state to write.
        target_marker: whether the marker stands after the bullet.
    """

    outcome: Outcome
    adjustment: int
    last_floor: date | None
    overruled: tuple[str, ...]
    person_state: State | None
    target: Pair
    target_state: State
    target_marker: bool


@dataclass(frozen=True, slots=True)
class _Edit:
    adjustment: int = 0
    last_floor: date | None = None
    overruled: tuple[str, ...] = ()


def merge(
    wrote: Written | None,
    earlier: AbstractSet[Pair],
    found: Metadata | None,
    found_marker: bool,
    ledger: Pair,
    ledger_state: State,
    today: date,
    *,
    markers: bool = True,
) -> Merged:
    """Merge one entry.

    The caller then records in one transaction: the adjustment and the floor, the person's state, the target as
    `wrote`, and both the pair written before and the pair found as `earlier`. Merging its own output again is
    UNCHANGED and adjusts nothing.

    Args:
        wrote: what kbd last wrote or took in; None if neither ever happened.
        earlier: every other pair that kbd wrote or took in for this entry.
        found: the merged metadata of the file; None if there is no comment.
        found_marker: the dormancy marker stands after the bullet.
        ledger: ref and last as counted, adjustments so far included.
        ledger_state: the state the ledger holds.
        today: a `last` after it is not believed.
        markers: dormant entries get a marker (`marker` is not "").
    """
    outcome = _read(wrote, earlier, found)
    edit = _edit(wrote, found, ledger, today) if outcome is Outcome.PERSON else _Edit()
    person_state = _person_state(wrote, found, found_marker) if _is_last_written(wrote, found) else None
    target = Pair(ledger.ref + edit.adjustment, max(filter(None, (ledger.last, edit.last_floor)), default=None))
    state = person_state or ledger_state
    marker = found_marker if state is State.ARCHIVED else markers and state is State.DORMANT
    if outcome is Outcome.OURS and found is not None and _shows(found, found_marker, target, state, marker):
        outcome = Outcome.UNCHANGED
    return Merged(outcome, edit.adjustment, edit.last_floor, edit.overruled, person_state, target, state, marker)


def _read(wrote: Written | None, earlier: AbstractSet[Pair], found: Metadata | None) -> Outcome:
    if found is None or found.ref is None:
        return Outcome.ABSENT
    if _is_last_written(wrote, found):
        return Outcome.OURS
    return Outcome.STALE if Pair(found.ref, found.last) in earlier else Outcome.PERSON


def _is_last_written(wrote: Written | None, found: Metadata | None) -> bool:
    """Return whether the file's counter is the one kbd last wrote; a missing or unreadable `last` says nothing."""
    if wrote is None:
        return False
    if found is None or found.ref is None or wrote.pair is None:
        return wrote.pair is None and (found is None or found.ref is None)
    return found.ref == wrote.pair.ref and (not found.last_given or found.last == wrote.pair.last)


def _edit(wrote: Written | None, found: Metadata | None, ledger: Pair, today: date) -> _Edit:
    """Return what a person's pair changes, measured from the pair last written (no pair counts as 0 and no day)."""
    if found is None or found.ref is None:
        return _Edit()
    before = wrote.pair if wrote is not None and wrote.pair is not None else Pair(0, None)
    adjustment = max(found.ref - before.ref, -ledger.ref)
    overruled = []
    last_floor = None
    if found.last_given and found.last != before.last:
        if found.last is None:
            overruled.append(f"last cleared, was {before.last}")
        elif found.last > today:
            overruled.append(f"last {found.last} lies in the future")
        elif before.last is not None and found.last < before.last:
            overruled.append(f"last {found.last} is older than {before.last}")
        else:
            last_floor = found.last
    if wrote is not None and found.state is not None and found.state is not wrote.state:
        overruled.append(f"decay {found.state.value}, set together with a new count")
    return _Edit(adjustment, last_floor, tuple(overruled))


def _person_state(wrote: Written | None, found: Metadata | None, found_marker: bool) -> State | None:
    """Return the state a person set, given that the counter is kbd's last: the comment speaks before the marker."""
    if wrote is None or not wrote.landed:
        return None
    if found is not None and found.state is not None and found.state is not wrote.state:
        return found.state
    if wrote.marker is None or wrote.marker is found_marker or wrote.state is State.ARCHIVED:
        return None
    return State.DORMANT if found_marker else State.ACTIVE


def _shows(found: Metadata, found_marker: bool, target: Pair, state: State, marker: bool) -> bool:
    """Return whether the file says the target, so that it may stay as it is."""
    says_pair = found.ref == target.ref and found.last == target.last
    says_state = found.state is state or (found.state is None and state is State.ACTIVE)
    return says_pair and says_state and found_marker is marker
