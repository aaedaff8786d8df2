"""Relations as facts: one fact may be written under an alias, under its inverse or, if symmetric, from either end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbd.core.graph_state import View
from kbd.core.operations import Edge
from kbd.core.schema import AcyclicGroup, Forms, RelationRule, Schema

Fact = tuple[RelationRule, str, str]


def targets_of(view: View, forms: Forms, ident: str) -> set[str]:
    """Return the objects of all facts with this subject."""
    found = {edge.target for edge in view.edges_from(ident, forms.forward)}
    return found.union(edge.source for edge in view.edges_to(ident, forms.backward)) if forms.backward else found


def sources_of(view: View, forms: Forms, ident: str) -> set[str]:
    """Return the subjects of all facts with this object."""
    found = {edge.source for edge in view.edges_to(ident, forms.forward)}
    return found.union(edge.target for edge in view.edges_from(ident, forms.backward)) if forms.backward else found


def stored_edges(view: View, forms: Forms, source: str, target: str) -> list[Edge]:
    """Return the relations, as written, that say the fact."""
    forward = [view.edge((source, name, target)) for name in sorted(forms.forward)]
    backward = [view.edge((target, name, source)) for name in sorted(forms.backward)] if source != target else []
    return [edge for edge in (*forward, *backward) if edge is not None]


def facts_of(schema: Schema, rule: RelationRule, source: str, target: str) -> Iterator[Fact]:
    """Yield the facts that follow from one: itself, and what it is from the other end."""
    yield rule, source, target
    inverse = schema.relations.get(rule.inverse)
    if inverse is not None:
        yield inverse, target, source
    if rule.symmetric and source != target:
        yield rule, target, source


def successors(view: View, group: AcyclicGroup, ident: str) -> set[str]:
    """Return what follows an entity in relations that may form no cycle."""
    return targets_of(view, group.forms, ident)


def path_back(view: View, group: AcyclicGroup, source: str, target: str) -> list[str]:
    """Return a way from `target` to `source`, both included: what a relation between them would close.

    Searches from both ends, always from where less was looked at, so that a relation at either end of a long chain
    costs little. Empty if there is no way.
    """
    if source == target:
        return [source]
    ahead: dict[str, str] = {target: ""}
    behind: dict[str, str] = {source: ""}
    fronts = [[target], [source]]
    while all(fronts):
        side = 0 if len(ahead) <= len(behind) else 1
        seen, others = (ahead, behind) if side == 0 else (behind, ahead)
        widened: list[str] = []
        for node in fronts[side]:
            for step in _steps(view, group, node, backwards=side == 1):
                if step in seen:
                    continue
                seen[step] = node
                if step in others:
                    return _joined(ahead, behind, step)
                widened.append(step)
        fronts[side] = widened
    return []


def _steps(view: View, group: AcyclicGroup, node: str, *, backwards: bool) -> Iterable[str]:
    return sources_of(view, group.forms, node) if backwards else targets_of(view, group.forms, node)


def _joined(ahead: dict[str, str], behind: dict[str, str], middle: str) -> list[str]:
    way = [middle]
    while ahead[way[-1]]:
        way.append(ahead[way[-1]])
    way.reverse()
    while behind[way[-1]]:
        way.append(behind[way[-1]])
    return way


def cycles_of(edges: dict[str, set[str]], limit: int) -> list[list[str]]:
    """Return up to `limit` cycles of a graph, each with its first node repeated at the end; no two share a node.

    Nodes without a way in are peeled off (Kahn 1962) until only cycles and what hangs on them are left; then any walk
    backwards along what is left comes round. Linear, without recursion.
    """
    into: dict[str, list[str]] = {}
    for node, steps in edges.items():
        for step in steps:
            into.setdefault(step, []).append(node)
    waiting = {node: len(into.get(node, ())) for node in {*edges, *into}}
    free = [node for node, count in waiting.items() if not count]
    for node in free:
        del waiting[node]
        for step in edges.get(node, ()):
            waiting[step] -= 1
            if not waiting[step]:
                free.append(step)
    return _rounds(waiting, into, limit)


def _rounds(left: dict[str, int], into: dict[str, list[str]], limit: int) -> list[list[str]]:
    found: list[list[str]] = []
    done: set[str] = set()
    for start in sorted(left):
        walk: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in walk and node not in done:
            walk[node] = None
            node = next((one for one in into[node] if one in left), None)
        if node in walk and len(found) < limit:
            way = list(walk)
            way = way[way.index(node) :] if node is not None else []
            found.append([way[0], *reversed(way)])
        done.update(walk)
    return found
