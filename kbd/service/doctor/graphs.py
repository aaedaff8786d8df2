"""Checks of typed graphs: whether a real graph database is due, by signs that can be measured.

kbd keeps one log, one writer at a time, and looks relations up one by one. That holds for the work of some agents; the
limits are those of the public skill's own advice for growing out of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbd.service.doctor.check import Check, fine, note

MANY = 10_000
"""So many entities, entries, or entities within three relations of one, are a database's work."""
MANY_WRITERS = 8


@dataclass(frozen=True, slots=True)
class GraphSeen:
    """A graph as it was found: its base and log, its numbers, and the entries of the base beside it."""

    base: str
    log: str
    entities: int
    relations: int
    hub: str
    reach: int
    writers: int
    entries: int


def check_graph(seen: GraphSeen) -> Iterator[Check]:
    """Say how large a graph is, and what of it is a reason for a real graph database."""
    signs = list(_signs(seen))
    entities, relations = "entity" if seen.entities == 1 else "entities", "relation" + "s" * (seen.relations != 1)
    size = f"{seen.entities:,} {entities}, {seen.relations:,} {relations}"
    if not signs:
        yield fine("graph", seen.log, f"{size}; well within what a log can bear")
        return
    remedy = f"a real graph database is due: `kbd export --base {seen.base} --format cypher` moves it there"
    yield note("graph", seen.log, f"{size}; {'; '.join(signs)}", remedy)


def _signs(seen: GraphSeen) -> Iterator[str]:
    if seen.entities > MANY:
        yield f"over {MANY:,} entities"
    if seen.entries > MANY:
        yield f"over {MANY:,} entries of knowledge beside them"
    if seen.reach >= MANY:
        yield f"three hops from {seen.hub} reach over {MANY:,} entities"
    if seen.writers > MANY_WRITERS:
        yield f"{seen.writers} writers, and one waits for the other"
