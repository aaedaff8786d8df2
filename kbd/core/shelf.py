"""A base as ranking sees it: its entries, and what its relations say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from kbd.core.model import Relation, State
from kbd.core.normal import normalise
from kbd.core.relate import APPLIES_TO


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry as ranking sees it.

    Attributes:
        key: unique over all bases.
        body: normalised text after the title.
        never_cited: nobody cited it yet, whatever number its file has.
    """

    key: int
    title: str
    norm: str
    handle: str
    ident: str | None
    type: str
    body: str
    state: State
    ref: int
    last: date | None
    created: date | None
    never_cited: bool


@dataclass(frozen=True, slots=True)
class Shelf:
    """The entries of a base with what its relations say of them; keys are those of the candidates.

    Attributes:
        candidates: all entries, whatever their state.
        applies: live `applies_to` relations with the entry they begin at.
        companions: entry → those it requires, those it extends or that extend it, and a live one that supersedes it.
        superseded: entry → a live one that supersedes it.
        conflicts: entry → live ones that it conflicts with.
    """

    candidates: tuple[Candidate, ...]
    applies: tuple[tuple[int, Relation], ...] = ()
    companions: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    superseded: Mapping[int, Candidate] = field(default_factory=dict)
    conflicts: Mapping[int, tuple[Candidate, ...]] = field(default_factory=dict)

    @staticmethod
    def of(candidates: Iterable[Candidate], relations: Iterable[Relation]) -> Shelf:
        """Resolve the relations; an end that names no entry is no entry's, an expired relation says nothing."""
        shelf = _Builder(tuple(candidates))
        for relation in relations:
            if relation.e is None:
                shelf.take(relation)
        return Shelf(
            shelf.candidates,
            tuple(shelf.applies),
            {key: tuple(dict.fromkeys(others)) for key, others in shelf.companions.items()},
            shelf.superseded,
            {key: tuple(others.values()) for key, others in shelf.conflicts.items()},
        )


class _Builder:
    def __init__(self, candidates: tuple[Candidate, ...]) -> None:
        self.candidates = candidates
        self.by_name: dict[str, list[Candidate]] = {}
        for one in candidates:
            for name in {one.norm, one.handle, one.ident}:
                if name:
                    self.by_name.setdefault(name, []).append(one)
        self.applies: list[tuple[int, Relation]] = []
        self.companions: dict[int, list[int]] = {}
        self.superseded: dict[int, Candidate] = {}
        self.conflicts: dict[int, dict[int, Candidate]] = {}

    def named(self, name: str) -> Sequence[Candidate]:
        return self.by_name.get(name) or self.by_name.get(normalise(name)) or ()

    def take(self, relation: Relation) -> None:
        if relation.p == APPLIES_TO:
            self.applies += [(one.key, relation) for one in self.named(relation.s)]
        elif relation.p in ("requires", "extends", "supersedes", "conflicts_with"):
            for one in self.named(relation.s):
                for other in self.named(relation.o):
                    if one.key != other.key:
                        self._link(relation.p, one, other)

    def _link(self, predicate: str, one: Candidate, other: Candidate) -> None:
        if predicate == "supersedes":
            if one.state is not State.ARCHIVED:
                self.superseded.setdefault(other.key, one)
                self.companions.setdefault(other.key, []).append(one.key)
        elif predicate == "conflicts_with":
            for a, b in ((one, other), (other, one)):
                if b.state is not State.ARCHIVED:
                    self.conflicts.setdefault(a.key, {})[b.key] = b
        else:
            self.companions.setdefault(one.key, []).append(other.key)
            if predicate == "extends":
                self.companions.setdefault(other.key, []).append(one.key)
