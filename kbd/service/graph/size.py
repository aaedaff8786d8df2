"""How large a graph has grown, in the signs by which a real graph database is due."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from kbd.core.graph_state import View
from kbd.core.schema import Schema
from kbd.service.graph.reading import Place, no_knowledge, view_of
from kbd.store import eventlog, graphcache
from kbd.store.eventlog import Log, Position

HOPS = 3
_TAIL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a graph.

    Attributes:
        entities, relations: how many there are.
        hub: id of the entity with the most relations, "" if there are none.
        reach: how many entities lie within `HOPS` relations of it, at most the limit asked for.
        writers: how many agents and skills signed the newest part of the log.
    """

    entities: int
    relations: int
    hub: str
    reach: int
    writers: int


def measure(place: Place, schema: Schema, reach_limit: int) -> Size:
    """Return how large a graph is; a log that is not there is an empty graph.

    Raises:
        LedgerDamaged: the log is there, and no line of it is an operation.
        FileUnreadable, FileUnwritable: the log cannot be read, the cache cannot be written.
    """
    with graphcache.opened(place.state_dir, place.log, schema.indexed) as cache, eventlog.reading(place.log) as file:
        cache.refresh(file)
        with cache.snapshot():
            view_of(cache, place, schema, no_knowledge)
            hub = cache.view.most_related()
            reach = _reach(cache.view, hub, reach_limit) if hub else 0
            writers = 0
            if file is not None:
                start = max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0)
                file.seek(start)
                start += len(file.readline()) if start else 0
                writers = len({line.by for line in Log(file, Position(start)) if line.by})
            return Size(*cache.view.counts(), hub, reach, writers)


def _reach(view: View, start: str, limit: int) -> int:
    seen, front = {start}, [start]
    for _ in range(HOPS):
        widened: list[str] = []
        for ident in front:
            widened += [one for one in dict.fromkeys(_beside(view, ident)) if one not in seen]
            seen.update(widened)
            if len(seen) > limit:
                return limit
        front = widened
    return len(seen) - 1


def _beside(view: View, ident: str) -> Iterable[str]:
    return [*(edge.target for edge in view.edges_from(ident)), *(edge.source for edge in view.edges_to(ident))]
