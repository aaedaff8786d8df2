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

from kbd.core.model import State
from kbd.core.query import Overlap, overlap
from kbd.core.relate import is_stale
from kbd.core.shelf import Candidate, Shelf


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


@dataclass(frozen=True, slots=True)
class Score:
    """The terms of the sum."""

    relation: float = 0.0
    hop: float = 0.0
    title: float = 0.0
    text: float = 0.0
    recency: float = 0.0
    refs: float = 0.0
    exploration: float = 0.0

    @property
    def total(self) -> float:
        """Their sum, rounded so that the order of adding cannot show."""
        parts = (self.relation, self.hop, self.title, self.text, self.recency, self.refs, self.exploration)
        return round(math.fsum(parts), 6)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry with its score; `is_asked_for`: a file relates to it, or two words of the query or its id name it."""

    candidate: Candidate
    score: Score
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
    ranked = [_ranked(one, near.get(one.key, 0.0), hops.get(one.key, 0.0), query, today, policy) for one in eligible]
    ranked.sort(key=lambda one: (-one.score.total, one.candidate.handle, one.candidate.key))
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
    days = [day for day in (one.last, one.created) if day is not None and day <= today]
    idle_days = (today - max(days)).days if days else None
    age_days = (today - one.created).days if one.created and one.created <= today else None
    is_young = one.never_cited and age_days is not None and age_days < policy.exploration_days
    score = Score(
        relation=policy.relation * near,
        hop=policy.relation * max(hop - near, 0.0),
        title=policy.title * title,
        text=policy.text * text,
        recency=0.0 if idle_days is None else policy.recency * 0.5 ** (idle_days / policy.recency_half_days),
        refs=policy.refs * math.log2(1 + max(one.ref, 0)),
        exploration=policy.exploration * (1 - (age_days or 0) / policy.exploration_days) if is_young else 0.0,
    )
    return Ranked(one, score, near > 0 or hop > 0 or one.key in query.named)


def _fits(shelf: Shelf, files: Sequence[tuple[str, ...]], today: date, policy: RankPolicy) -> dict[int, float]:
    """Return entry → how well its best relation fits one of the files, from 0 to 1."""
    names = [tuple(_parts(name)) for file in files for name in file]
    names = [name for name in dict.fromkeys(names) if name]
    lasts = {name[-1] for name in names}
    folders = tuple({"/".join(name) + "/" for name in names})
    best: dict[int, float] = {}
    for key, relation in shelf.applies if names else ():
        path = relation.o.removeprefix("./").strip("/")
        if (
            path.rpartition("/")[2] in lasts
            or any(name.startswith(path + "/") for name in folders)
            or (path.startswith(folders))
        ):
            fit = max(_fit(tuple(_parts(path)), name) for name in names)
            best[key] = max(best.get(key, 0.0), fit * (policy.stale if is_stale(relation, today) else 1.0))
    return {key: fit for key, fit in best.items() if fit > 0}


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def _fit(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if not short:
        return 0.0
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
