"""Opens a graph as a view: the log through its cache, a last line without its end included, the knowledge beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kbd.core.bridge import Bridged, Knowledge
from kbd.core.graph_state import Overlay, View
from kbd.core.operations import Fault
from kbd.core.schema import Schema
from kbd.errors import LedgerDamaged
from kbd.store import eventlog, graphcache
from kbd.store.graphcache import GraphCache

Load = Callable[[], Knowledge]


def no_knowledge() -> Knowledge:
    """Return a knowledge without entries."""
    return Knowledge((), ())


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph is kept: its log, its schema, the state directory for its cache; real paths."""

    log: str
    schema: str
    state_dir: Path


@dataclass(frozen=True, slots=True)
class Opened:
    """A graph to be asked.

    Attributes:
        own: what the log says.
        view: that, and the knowledge beside it.
        faults: line, fault and author of what is odd about the log.
        end: how far it was read.
    """

    own: View
    view: View
    faults: tuple[tuple[int, Fault, str], ...]
    end: eventlog.Position


@contextmanager
def opened(place: Place, schema: Schema, load: Load = no_knowledge) -> Iterator[Opened]:
    """Open a graph for questions; a log that is not there is an empty graph.

    Raises:
        LedgerDamaged: the log is there, and no line of it is an operation.
        FileUnreadable, FileUnwritable: the log cannot be read, the cache cannot be written.
    """
    with graphcache.opened(place.state_dir, place.log, schema.indexed) as cache:
        with eventlog.reading(place.log) as file:
            cache.refresh(file)
        with cache.snapshot():
            yield view_of(cache, place, schema, load)


def view_of(cache: GraphCache, place: Place, schema: Schema, load: Load) -> Opened:
    """Return the graph of a cache that was just refreshed; raises LedgerDamaged as `opened`."""
    faults = cache.faults()
    own: View = cache.view
    tail = cache.tail
    if tail is not None:
        overlay = Overlay(own, schema.indexed)
        for operation in tail.operations:
            overlay.apply(operation)
        own = overlay
        faults += [(tail.number, fault, tail.by) for fault in tail.faults]
    elif cache.torn_bytes:
        faults.append((cache.end.line + 1, Fault("torn_line", f"{cache.torn_bytes} bytes"), ""))
    unread = sum(1 for _, fault, _ in faults if fault.code in ("bad_json", "not_text", "not_an_object"))
    if unread and unread >= cache.end.line and next(iter(own.entities()), None) is None:
        raise LedgerDamaged("no line of it is an operation", where=place.log, hint="is it a graph's log? Move it away")
    return Opened(own, Bridged(own, load), tuple(faults), cache.end)
