"""Cycles over the relations that must not form any: supersedes, extends and requires, taken together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from kbd.core.model import Relation
from kbd.core.normal import normalise

ACYCLIC = frozenset({"supersedes", "extends", "requires"})


def cycle(relations: Iterable[Relation]) -> list[str]:
    """Return a cycle of normalised names, its first one repeated at the end; empty if there is none.

    Expired relations do not count.
    """
    try:
        TopologicalSorter(_graph(relations)).prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        # The sorter reads edges as dependencies, so its path runs against them.
        return names[::-1]
    return []


def closed_cycle(relations: Iterable[Relation], edge: Relation) -> list[str]:
    """Return a shortest cycle that runs over `edge`, one of the relations; as `cycle`."""
    if edge.p not in ACYCLIC or edge.e is not None:
        return []
    start, goal = normalise(edge.o), normalise(edge.s)
    path = _path(_graph(relations), start, goal)
    return [goal, *path] if path else []


def _graph(relations: Iterable[Relation]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for relation in relations:
        if relation.p in ACYCLIC and relation.e is None:
            graph.setdefault(normalise(relation.s), set()).add(normalise(relation.o))
    return graph


def _path(graph: dict[str, set[str]], start: str, goal: str) -> list[str]:
    """Return a shortest path from `start` to `goal`, both included; empty if there is none."""
    came_from = {start: start}
    queue = deque([start])
    while queue and goal not in came_from:
        node = queue.popleft()
        for step in sorted(graph.get(node, set()) - came_from.keys()):
            came_from[step] = node
            queue.append(step)
    if goal not in came_from:
        return []
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]
