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
        applies: live `applies_to` relations, each with the entry it begins at and the path it names.
        by_name: path's last part → places in `applies`.
        companions: entry → those it requires, those it extends or that extend it, and a live one that supersedes it.
        superseded: entry → a live one that supersedes it.
        conflicts: entry → live ones that it conflicts with.
    """

    candidates: tuple[Candidate, ...]
    applies: tuple[tuple[int, str, Relation], ...] = ()
    by_name: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
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
            {name: tuple(places) for name, places in shelf.by_last_part.items()},
            {key: tuple(dict.fromkeys(others)) for key, others in shelf.companions.items()},
            shelf.superseded,
            {key: tuple(others.values()) for key, others in shelf.conflicts.items()},
        )


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path as named in a relation; back slashes count as slashes."""
    return tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))


class _Builder:
    def __init__(self, candidates: tuple[Candidate, ...]) -> None:
        self.candidates = candidates
        self.by_name: dict[str, list[Candidate]] = {}
        for one in candidates:
            for name in {one.norm, one.handle, one.ident}:
                if name:
                    self.by_name.setdefault(name, []).append(one)
        self.applies: list[tuple[int, str, Relation]] = []
        self.by_last_part: dict[str, list[int]] = {}
        self.normal: dict[str, str] = {}
        self.companions: dict[int, list[int]] = {}
        self.superseded: dict[int, Candidate] = {}
        self.conflicts: dict[int, dict[int, Candidate]] = {}

    def named(self, name: str) -> Sequence[Candidate]:
        if name in self.by_name:
            return self.by_name[name]
        if name not in self.normal:
            self.normal[name] = normalise(name)
        return self.by_name.get(self.normal[name], ())

    def take(self, relation: Relation) -> None:
        if relation.p == APPLIES_TO:
            path = "/".join(path_parts(relation.o))
            for one in self.named(relation.s) if path else ():
                self.by_last_part.setdefault(path.rpartition("/")[2], []).append(len(self.applies))
                self.applies.append((one.key, path, relation))
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
