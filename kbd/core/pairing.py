"""Which parsed entry is which known one: by title, across moves, and through an edited title.

Identity is the title within the base, the section breaks ties (SPEC 2). What stays unpaired is new, or gone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Generic, Protocol, TypeVar

from kbd.core.model import Entry, Pair, State

MIN_BODY = 40
"""Characters of equal body that make an entry without a comment the same under another title."""


class Row(Protocol):
    """What pairing needs of a known entry."""

    @property
    def norm(self) -> str:
        """Normalised title."""
        ...

    @property
    def section(self) -> str:
        """Headings above it."""
        ...

    @property
    def file(self) -> str:
        """Path of its file."""
        ...

    @property
    def place(self) -> int:
        """Number in its file."""
        ...

    @property
    def body(self) -> str:
        """Normalised text after the title."""
        ...

    @property
    def state(self) -> State:
        """Where it is in its life."""
        ...

    @property
    def wrote(self) -> Pair | None:
        """The pair kbd last wrote."""
        ...

    @property
    def gone_on(self) -> date | None:
        """Day it went, None while it is there."""
        ...

    @property
    def moving(self) -> str | None:
        """On its way to the archive or back."""
        ...


R = TypeVar("R", bound=Row)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """A parsed entry with its place: file, whether that is an archive, its number in the file, its last line."""

    path: str
    archive: bool
    place: int
    entry: Entry
    last_line: int = 0


@dataclass(frozen=True, slots=True)
class Paired(Generic[R]):
    """The outcome: the same entries (and whether the title was edited), new ones, and rows that are gone."""

    same: list[tuple[Seen, R, bool]]
    new: list[Seen]
    gone: list[R]


def pair_up(
    seen: Sequence[Seen], rows: Sequence[R], kept: Collection[str], former: Callable[[R], Collection[str]]
) -> Paired[R]:
    """Pair parsed entries with known rows.

    Args:
        seen: the entries of all files that were read anew.
        rows: all rows of the base, also those gone and archived.
        kept: paths whose rows stay as they are (unchanged or unreadable).
        former: tells the normalised titles that a row had before.
    """
    unread: Callable[[R], bool] = lambda r: r.file in kept and r.gone_on is None  # noqa: E731 - a name for its uses
    state = _Pairing(seen, [r for r in rows if not unread(r)], former)
    _pair_live_and_moving(state)
    asleep = [r for r in rows if unread(r) and _archived(r) and r.moving is None]
    state.rows += asleep
    state.take(lambda s: (s.archive, s.entry.norm), lambda r: (False, r.norm), _is_settled_archived)
    state.rows = [r for r in state.rows if not any(r is one for one in asleep)]
    _pair_archived(state)
    # A live entry that was put into the archive by hand, and those gone that stand somewhere again; or once stood.
    state.take(lambda s: s.entry.norm, lambda r: r.norm, lambda r: r.moving is None or r.gone_on is not None)
    for archive in (False, True):
        state.take_former(lambda r: r.moving is None or r.gone_on is not None, archive=archive)
    # A copy of a block on its way is no entry, nor is what an entry of the same title left in an archive.
    moving = {r.norm for r in rows if _is_moving(r)}
    known = {r.norm for r in rows if r.gone_on is None} | {s.entry.norm for s in seen if not s.archive}
    new = [s for s in state.seen if s.entry.norm not in moving and not (s.archive and s.entry.norm in known)]
    taken = {id(r) for _, r, _ in state.same}
    return Paired(state.same, new, [r for r in rows if id(r) not in taken and r.gone_on is None and not unread(r)])


def _pair_live_and_moving(state: _Pairing[R]) -> None:
    """Pair live entries, and those on their way: where they were last, else where they arrived.

    What stands where it stood with the same words is paired first, so that of two entries with one title neither
    takes the place of the other.
    """
    state.take(_exactly, lambda r: (r.file, r.norm, r.section, r.body), _is_settled_live)
    state.take(_exactly, lambda r: (r.file, r.norm, r.section, r.body), _is_moving)
    state.take(lambda s: (s.entry.norm, s.entry.body), lambda r: (r.norm, r.body), _is_moving)
    state.take(lambda s: (s.path, s.entry.norm), lambda r: (r.file, r.norm), _is_moving)
    state.take(lambda s: s.entry.norm, lambda r: r.norm, _is_moving)
    state.take(
        lambda s: (s.archive, s.path, s.entry.norm, s.entry.section),
        lambda r: (False, r.file, r.norm, r.section),
        _is_settled_live,
    )
    state.take(
        lambda s: (s.archive, s.entry.norm, s.entry.section), lambda r: (False, r.norm, r.section), _is_settled_live
    )
    state.take(lambda s: (s.archive, s.entry.norm), lambda r: (False, r.norm), _is_settled_live)
    state.take_former(_is_settled_live, archive=False)
    state.take_edited(archive=False)


def _pair_archived(state: _Pairing[R]) -> None:
    state.take(_exactly, lambda r: (r.file, r.norm, r.section, r.body), _is_settled_archived)
    state.take(
        lambda s: (s.path, s.entry.norm, s.entry.section),
        lambda r: (r.file, r.norm, r.section),
        _is_settled_archived,
    )
    state.take(lambda s: (s.archive, s.entry.norm), lambda r: (True, r.norm), _is_settled_archived)
    state.take_former(_is_settled_archived, archive=True)
    state.take_edited(archive=True)


def _exactly(one: Seen) -> Hashable:
    return one.path, one.entry.norm, one.entry.section, one.entry.body


def _is_moving(row: Row) -> bool:
    """Tell whether the block is on its way between a file and its archive: it may stand in both."""
    return row.moving is not None and row.gone_on is None


def _is_settled_live(row: Row) -> bool:
    return row.moving is None and row.gone_on is None and not _archived(row)


def _is_settled_archived(row: Row) -> bool:
    return row.moving is None and row.gone_on is None and _archived(row)


def _archived(row: Row) -> bool:
    return row.state is State.ARCHIVED


class _Pairing(Generic[R]):
    """What is left to pair, and what is paired."""

    def __init__(self, seen: Sequence[Seen], rows: Sequence[R], former: Callable[[R], Collection[str]]) -> None:
        self.seen, self.rows, self.former = list(seen), list(rows), former
        self.same: list[tuple[Seen, R, bool]] = []

    def take(
        self, key_seen: Callable[[Seen], Hashable], key_row: Callable[[R], Hashable], fits: Callable[[R], bool]
    ) -> None:
        """Pair, in order, those with equal keys."""
        waiting: dict[Hashable, deque[R]] = {}
        for row in self.rows:
            if fits(row):
                waiting.setdefault(key_row(row), deque()).append(row)
        found = [(one, rows.popleft()) for one in self.seen if (rows := waiting.get(key_seen(one)))]
        self._pair(found, renamed=False)

    def _pair(self, found: Sequence[tuple[Seen, R]], *, renamed: bool) -> None:
        seen, rows = {id(one) for one, _ in found}, {id(row) for _, row in found}
        self.same += [(one, row, renamed) for one, row in found]
        self.seen = [one for one in self.seen if id(one) not in seen]
        self.rows = [row for row in self.rows if id(row) not in rows]

    def take_former(self, fits: Callable[[R], bool], *, archive: bool) -> None:
        """Pair entries that stand under an earlier title with their rows, as after a checkout of an old commit."""
        unpaired = {one.entry.norm: one for one in reversed(self.seen) if one.archive is archive}
        found: dict[int, tuple[Seen, R]] = {}
        for row in filter(fits, self.rows if unpaired else ()):
            for title in self.former(row):
                one = unpaired.get(title)
                if one is not None:
                    found.setdefault(id(one), (one, row))
                    break
        self._pair(list(found.values()), renamed=True)

    def take_edited(self, *, archive: bool) -> None:
        """Pair gone and new entries between the same neighbours, if comment or body vouch for it."""
        fresh = self._fresh(archive=archive)
        gone = self._by_neighbours(((r.file, r.place, r) for r in self.rows if r.gone_on is None), of_rows=True)
        new = self._by_neighbours(((s.path, s.place, s) for s in fresh), of_rows=False)
        found = [pair for between, ones in new.items() for pair in _edited(ones, gone.get(between, []))]
        self._pair(found, renamed=True)

    def _fresh(self, *, archive: bool) -> list[Seen]:
        """Return what may be an edited title: not what went earlier and has its title and comment, or no comment."""
        left: dict[str, list[Pair | None]] = {}
        for row in self.rows:
            if row.gone_on is not None:
                left.setdefault(row.norm, [None]).append(row.wrote)
        return [s for s in self.seen if s.archive is archive and _said(s) not in left.get(s.entry.norm, ())]

    def _by_neighbours(self, unpaired: Iterable[tuple[str, int, T]], *, of_rows: bool) -> dict[Hashable, list[T]]:
        """Group what is unpaired by file and the paired titles around it, as they stand, or stood in the ledger."""
        around: dict[str, list[tuple[int, str]]] = {}
        for one, row, renamed in self.same:
            if not renamed:
                path, place = (row.file, row.place) if of_rows else (one.path, one.place)
                around.setdefault(path, []).append((place, row.norm if of_rows else one.entry.norm))
        for pairs in around.values():
            pairs.sort()
        grouped: dict[Hashable, list[T]] = {}
        for path, place, item in unpaired:
            pairs = around.get(path, [])
            at = bisect_left(pairs, (place, ""))
            above, below = pairs[at - 1][1] if at else None, pairs[at][1] if at < len(pairs) else None
            grouped.setdefault((path, above, below), []).append(item)
        return grouped


def _edited(ones: Sequence[Seen], rows: Sequence[R]) -> Iterator[tuple[Seen, R]]:
    """Yield which new entry is which gone one, of those between two neighbours, both in their order.

    Told is what comment and words, the comment, or the words alone leave no choice about. What is left is paired in
    order if each vouches for its like: after a first citation many comments are alike.
    """
    left, free = list(ones), list(rows)
    keys: tuple[tuple[Callable[[Seen], Hashable], Callable[[R], Hashable]], ...] = (
        (lambda one: (_said(one), one.entry.body), lambda row: (row.wrote, row.body)),
        (_said, lambda row: row.wrote),
        (lambda one: one.entry.body if _said(one) is None else None, lambda row: row.body),
    )
    for key_seen, key_row in keys:
        seen_by, rows_by = _grouped(left, key_seen), _grouped(free, key_row)
        told = [
            (found[0], rows_by[key][0])
            for key, found in seen_by.items()
            if len(found) == len(rows_by.get(key, ())) == 1
        ]
        told = [(one, row) for one, row in told if _vouched(one, row)]
        yield from told
        taken = {id(one) for pair in told for one in pair}
        left, free = [one for one in left if id(one) not in taken], [row for row in free if id(row) not in taken]
    if len(left) == len(free) and all(_vouched(one, row) for one, row in zip(left, free, strict=True)):
        yield from zip(left, free, strict=True)


def _grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    grouped: dict[Hashable, list[T]] = {}
    for item in items:
        grouped.setdefault(key(item), []).append(item)
    return grouped


def _said(one: Seen) -> Pair | None:
    """Return the pair in an entry's comment."""
    meta = one.entry.meta
    return None if meta is None or meta.ref is None else Pair(meta.ref, meta.last)


def _vouched(one: Seen, row: Row) -> bool:
    """Tell whether comment or body say that a new title belongs to a row."""
    said = _said(one)
    if said is not None:
        return row.wrote == said
    return len(row.body) >= MIN_BODY and row.body == one.entry.body
