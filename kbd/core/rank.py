"""Which entries the next session should know, best first: a documented sum, the same for the same input.

    score = relation + hop + title + text + recency + refs + exploration

| term | value (weights: `RankPolicy`) |
|---|---|
| relation | 8 × how well the best `applies_to` of the entry fits a file asked for (1 the same, 0.8 the same end of two or more parts, 0.5 the same name, 0.4 a folder of it), × 0.25 if unused for 180 days |
| hop | half the relation of an entry that requires this one, extends or is extended by it, or is superseded by it |
| title, text | 6 and 3 × the share of the query's words that stand there; rare words weigh more: ln(1 + entries / entries with it) |
| recency | 2 × 0.5 ^ (days since it was cited or made / 30) |
| refs | 0.5 × log2(1 + ref) |
| exploration | 1 for an entry made today that was never cited, falling to 0 in 14 days |

Equal scores go by handle, a hash of the title: never by the order of the file.
"""  # noqa: E501 - a table

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import NamedTuple

from kbd.core.model import State
from kbd.core.query import Overlap, overlap
from kbd.core.relate import is_stale
from kbd.core.shelf import Candidate, Shelf, path_parts


@dataclass(frozen=True, slots=True)
class RankPolicy:
    """The weights of the sum; see the module."""

    relation: float = 8.0
    stale: float = 0.25
    hop: float = 0.5
    title: float = 6.0
    text: float = 3.0
    recency: float = 2.0
    recency_half_days: float = 30.0
    refs: float = 0.5
    exploration: float = 1.0
    exploration_days: float = 14.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the session is about.

    Attributes:
        files: each file by all its names (relative to its git root, absolute), any of which a relation may use.
        types: types asked for; None for all.
        query: words; what lies beyond 10,000 characters and 64 words is not read.
    """

    files: tuple[tuple[str, ...], ...] = ()
    types: frozenset[str] | None = None
    query: str = ""


class Score(NamedTuple):
    """The terms of the sum. A tuple, as `Ranked`: thousands are made at each call, in half of the time."""

    relation: float
    hop: float
    title: float
    text: float
    recency: float
    refs: float
    exploration: float


class Ranked(NamedTuple):
    """An entry with its score.

    Attributes:
        candidate: the entry.
        score: the terms.
        total: their sum.
        is_asked_for: a file relates to it, or two words of the query or its id name it.
    """

    candidate: Candidate
    score: Score
    total: float
    is_asked_for: bool


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that is not handed out, and why, in words."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Entries that may be handed out, best first, and those that may not, in order of their handles."""

    ranked: tuple[Ranked, ...]
    left: tuple[Left, ...]


def rank(shelves: Sequence[Shelf], wanted: Wanted, today: date, policy: RankPolicy | None = None) -> Ranking:
    """Return all entries of the shelves, ranked or left out; no term looks at their order. Linear but for the sort."""
    policy = policy or RankPolicy()
    left = [one for shelf in shelves for one in _left_out(shelf, wanted.types)]
    gone = {one.candidate.key for one in left}
    eligible = [one for shelf in shelves for one in shelf.candidates if one.key not in gone]
    near = {key: fit for shelf in shelves for key, fit in _fits(shelf, wanted.files, today, policy).items()}
    hops = {key: fit for shelf in shelves for key, fit in _hops(shelf, near, policy).items()}
    query = overlap(wanted.query, eligible)
    eligible.sort(key=lambda one: (one.handle, one.key))
    ranked = [_ranked(one, near.get(one.key, 0.0), hops.get(one.key, 0.0), query, today, policy) for one in eligible]
    ranked.sort(key=attrgetter("total"), reverse=True)  # stable: equal ones stay in the order of their handles
    left.sort(key=lambda one: (one.candidate.handle, one.candidate.key))
    return Ranking(tuple(ranked), tuple(left))


def _left_out(shelf: Shelf, types: frozenset[str] | None) -> Iterator[Left]:
    for one in shelf.candidates:
        newer = shelf.superseded.get(one.key)
        if one.state is not State.ACTIVE:
            yield Left(one, one.state.value)
        elif newer is not None:
            yield Left(one, f"superseded by [{newer.handle}] {newer.title}")
        elif types is not None and one.type not in types:
            yield Left(one, f"a {one.type}, not asked for")


def _ranked(one: Candidate, near: float, hop: float, query: Overlap, today: date, policy: RankPolicy) -> Ranked:
    title, text = query.shares.get(one.key, (0.0, 0.0))
    made_days = math.inf if one.created is None or one.created > today else (today - one.created).days
    cited_days = math.inf if one.last is None or one.last > today else (today - one.last).days
    idle_days = min(made_days, cited_days)
    chance = 1 - made_days / policy.exploration_days if one.never_cited else 0.0
    score = Score(
        policy.relation * near,
        policy.relation * (hop - near) if hop > near else 0.0,
        policy.title * title,
        policy.text * text,
        policy.recency * 0.5 ** (idle_days / policy.recency_half_days),
        policy.refs * math.log2(1 + one.ref) if one.ref > 0 else 0.0,
        policy.exploration * chance if chance > 0 else 0.0,
    )
    # Rounded, so that the last bit of a product never decides an order.
    return Ranked(one, score, round(sum(score), 6), near > 0 or hop > 0 or one.key in query.named)


def _fits(shelf: Shelf, files: Sequence[tuple[str, ...]], today: date, policy: RankPolicy) -> dict[int, float]:
    """Return entry → how well its best relation fits one of the files, from 0 to 1."""
    names = {parts for file in files for name in file if (parts := path_parts(name))}
    # A path that ends in a part of the name may be the same file or a folder of it; others may lie in it.
    places = {place for name in names for part in name for place in shelf.by_name.get(part, ())}
    inside = tuple("/".join(name) + "/" for name in names)
    if inside:
        places |= {place for place, (_, path, _) in enumerate(shelf.applies) if path.startswith(inside)}
    best: dict[int, float] = {}
    for key, path, relation in (shelf.applies[place] for place in places):
        parts = tuple(path.split("/"))
        fit = max(_fit(parts, name) for name in names)
        if fit > 0:
            best[key] = max(best.get(key, 0.0), fit * (policy.stale if is_stale(relation, today) else 1.0))
    return best


def _fit(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if long[-len(short) :] == short:
        return 0.8 if len(short) > 1 else 0.5
    return 0.4 if long[: len(short)] == short else 0.0


def _hops(shelf: Shelf, near: Mapping[int, float], policy: RankPolicy) -> dict[int, float]:
    """Return entry → what it gets from those that lead to it: one hop, never further."""
    best: dict[int, float] = {}
    for key, others in shelf.companions.items():
        given = policy.hop * near.get(key, 0.0)
        for other in others if given else ():
            best[other] = max(best.get(other, 0.0), given)
    return best
