"""The one way to write to a graph's log: under its lock, checked against the state it would produce, all or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from kbd.core.contracts import Contract
from kbd.core.graph import Prepared, prepare
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import Operation
from kbd.core.schema import Schema
from kbd.errors import ChangedUnderneath
from kbd.service.graph.reading import Load, Opened, Place, no_knowledge, opened, view_of
from kbd.service.graph.refusal import GraphRefused
from kbd.store import eventlog, graphcache
from kbd.store.eventlog import Writer
from kbd.store.graphcache import GraphCache

LOCK_SECONDS = 10.0
_SETTLE_SECONDS = 0.05
_ATTEMPTS = 5
Make = Callable[[View], Sequence[Operation]]


@dataclass(frozen=True, slots=True)
class Request:
    """A change that someone wants.

    Attributes:
        make: returns the steps for a state of the graph.
        plan_id: under which several steps are one plan.
        contract: of the skill on whose behalf it is made.
        dry_run: nothing is written.
    """

    make: Make
    plan_id: str
    contract: Contract | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change came to: what was appended, warnings, and the graph afterwards (only while the cache is open)."""

    operations: tuple[Operation, ...]
    warnings: tuple[Problem, ...]


def change(
    place: Place,
    schema: Schema,
    request: Request,
    load: Load = no_knowledge,
    after: Callable[[View], None] = lambda _: None,
) -> Changed:
    """Make a change, or refuse it; `after` is shown the graph as it then is, before the lock is let go.

    Raises:
        GraphRefused: with all reasons; no byte was changed.
        LockTimeout, LedgerDamaged, FileUnreadable, FileUnwritable: nothing was written.
    """
    if request.dry_run or not os.path.lexists(place.log):
        # A log is not made for a change that is refused.
        with opened(place, schema, load) as graph:
            prepared = _prepared(graph, schema, request)
            if request.dry_run:
                after(prepared.view)
                return Changed(tuple(prepared.operations), tuple(prepared.warnings))
    with (
        eventlog.writing(place.log, LOCK_SECONDS) as writer,
        eventlog.reading(place.log) as file,
        graphcache.opened(place.state_dir, place.log, schema.indexed) as cache,
    ):
        if file is None:
            raise ChangedUnderneath("the log was removed", where=place.log, hint="try again")
        prepared = _ready(place, schema, request, load, _Held(writer, file, cache))
        after(prepared.view)
        if prepared.operations:
            end = writer.append(prepared.operations, cache.end, request.plan_id)
            if end is None:
                cache.refresh(file)
            else:
                cache.take_own(file, prepared.operations, end)
        return Changed(tuple(prepared.operations), tuple(prepared.warnings))


@dataclass(frozen=True, slots=True)
class _Held:
    """A log whose lock is held, and its cache."""

    writer: Writer
    file: IO[bytes]
    cache: GraphCache


def _ready(place: Place, schema: Schema, request: Request, load: Load, held: _Held) -> Prepared:
    """Return the change upon a log that ends with a whole line; only a change that holds mends its end."""
    for _ in range(_ATTEMPTS):
        held.cache.refresh(held.file)
        prepared = _prepared(view_of(held.cache, place, schema, load), schema, request)
        if not prepared.operations or not held.cache.torn_bytes:
            return prepared
        if held.cache.tail is not None:
            held.writer.close_tail()
        else:
            # Unless someone is writing it right now, a crash has left it.
            eventlog.pause(_SETTLE_SECONDS)
            held.writer.cut(held.cache.end, held.cache.torn_bytes)
    raise ChangedUnderneath("someone goes on writing to it without its lock", where=place.log, hint="try again")


def _prepared(graph: Opened, schema: Schema, request: Request) -> Prepared:
    operations = request.make(graph.view)
    if request.contract is not None:
        operations = [operation._replace(by=request.contract.skill) for operation in operations]
    prepared = prepare(graph.view, schema, operations, request.contract)
    if prepared.problems:
        raise GraphRefused(prepared.problems)
    return prepared
