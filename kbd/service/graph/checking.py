"""Looks a whole log over: every line, every entity, every relation; and what agents appended to it by themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kbd.core.bridge import Bridged
from kbd.core.constraint_checks import ConstraintChecks
from kbd.core.coverage import Row, coverage, openings
from kbd.core.entity_checks import Tally
from kbd.core.graph_state import GraphState, Overlay, View, updated, value_key
from kbd.core.graph_validation import Validation, validate, validate_touched
from kbd.core.model import Problem
from kbd.core.moments import moment_of
from kbd.core.operations import Edge, Fault, Operation, is_note, problem_of, read_record, record_of
from kbd.core.schema import Schema
from kbd.service.graph.reading import Load, Place, no_knowledge, view_of
from kbd.store import eventlog, graphcache
from kbd.store.eventlines import Line
from kbd.store.eventlog import Position

_FUTURE = timedelta(days=1)
_KEPT = "judged"
_SUSPECTS = 200
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with a graph, what is only to be noted, what was checked, and how much there is."""

    problems: list[Problem]
    notes: list[Problem]
    tally: Tally
    entities: int
    relations: int


def check_graph(place: Place, schema: Schema, now: datetime, load: Load = no_knowledge) -> Findings:
    """Return everything that is wrong with a graph; reads the whole log, whatever the cache says.

    Raises:
        FileUnreadable: the log is there and cannot be read.
    """
    state = GraphState()
    tally = Tally()
    problems: list[Problem] = []
    notes: list[Problem] = []
    constraints = ConstraintChecks(Overlay.of(state, ()), schema, tally)
    name = os.path.basename(place.log)
    for line in _lines(place.log):
        faults = [*line.faults]
        for operation in line.operations:
            faults += _timed(operation, now)
            found = _transitions(state, operation, constraints)
            problems += [replace(one, where=f"{name}:{line.number}: {one.where}") for one, warns in found if not warns]
            notes += [replace(one, where=f"{name}:{line.number}: {one.where}") for one, warns in found if warns]
            code = state.apply(operation)
            faults += [Fault(code, operation.id)] if code else []
        for fault in faults:
            problem = problem_of(fault, f"{name}:{line.number}", line.by)
            (notes if is_note(fault.code) else problems).append(problem)
    own = Overlay.of(state, schema.indexed)
    found_now: Validation = validate(Bridged(own, load), schema, own)
    found_now.tally.checked.update(tally.checked)
    found_now.tally.violated.update(tally.violated)
    problems += found_now.problems
    return Findings(problems, notes + found_now.notes, found_now.tally, len(state.entities), len(state.edges))


def _lines(path: str) -> Iterator[Line]:
    with eventlog.reading(path) as file:
        if file is None:
            return
        log = eventlog.Log(file)
        yield from log
        if log.tail is not None:
            yield log.tail
        elif log.torn_bytes:
            yield Line(log.end.line + 1, (), (Fault("torn_line", f"{log.torn_bytes} bytes"),))


def _timed(operation: Operation, now: datetime) -> Iterator[Fault]:
    moment = moment_of(operation.at)
    if operation.at and moment is None:
        yield Fault("bad_timestamp")
    elif moment is not None and moment > now + _FUTURE:
        yield Fault("future_timestamp")


def _transitions(state: GraphState, operation: Operation, constraints: ConstraintChecks) -> list[tuple[Problem, bool]]:
    before = state.entities.get(operation.id) if operation.kind == "update" else None
    return list(constraints.transition(before, updated(before, operation))) if before else []


@dataclass(frozen=True, slots=True)
class Audit:
    """How much of a schema is enforced: a row for each declared constraint, what is open on purpose, what it found."""

    rows: list[Row]
    openings: list[str]
    findings: Findings


def audit(place: Place, schema: Schema, now: datetime, load: Load = no_knowledge) -> Audit:
    """Return how each declared constraint is enforced and how many facts it was checked against; as `check_graph`."""
    findings = check_graph(place, schema, now, load)
    return Audit(coverage(schema, findings.tally), openings(schema), findings)


_Placed = tuple[int, Operation]


@dataclass(frozen=True, slots=True)
class Judged:
    """What was looked at of a log: its problems, each with its line and its author.

    Attributes:
        problems: of the lines looked at, as the graph stands now.
        is_whole: nothing of the log is left to be looked at.
    """

    problems: list[Problem]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a log was looked at: what is new from `new` on, what is old from `old` up to `until`; what was wrong."""

    old: Position
    until: int
    new: Position
    suspects: tuple[_Placed, ...] = ()


@dataclass(frozen=True, slots=True)
class Pieces:
    """How much of a log is looked at in one call: of what is new, and of what was never looked at."""

    new_bytes: int = 1 << 20
    old_bytes: int = 1 << 18


def judge_appended(place: Place, schema: Schema, schema_id: str, load: Load, pieces: Pieces = Pieces()) -> Judged:
    """Check what someone appended to a log, and what of it was never looked at, against the graph as it stands now.

    Call after call covers the whole log at a bounded cost each: what is new, a piece of what is old, and again what was
    wrong, for a later line may have mended it. How far it came is kept beside the cache; another schema, and a log that
    was not only appended to, begin anew.

    Args:
        place, schema: of the graph, and what it may hold.
        schema_id: differs for another schema.
        load: the knowledge beside it.
        pieces: how much is looked at; at least one line.

    Raises:
        LedgerDamaged, FileUnreadable, FileUnwritable: the graph cannot be read.
    """
    name = os.path.basename(place.log)
    with graphcache.opened(place.state_dir, place.log, schema.indexed) as cache:
        with eventlog.reading(place.log) as file:
            cache.refresh(file)
        mark = _recalled(cache.kept(_KEPT), schema_id) or _first(cache.end, pieces.new_bytes)
        old, old_end = _piece(place.log, mark.old, min(mark.until, mark.old.offset + pieces.old_bytes))
        new, new_end = _piece(place.log, mark.new, mark.new.offset + pieces.new_bytes)
        with cache.snapshot():
            graph = view_of(cache, place, schema, load)
            problems = [
                problem_of(fault, f"{name}:{line}", by) for line, fault, by in graph.faults if not is_note(fault.code)
            ]
            suspects: list[_Placed] = []
            for number, operation in (*mark.suspects, *old, *new):
                found = validate_touched(graph.view, schema, *_concerned(graph.own, schema, operation)).problems
                problems += [_placed(one, f"{name}:{number}", operation.by) for one in found]
                suspects += [(number, operation)] if found else []
        cache.keep(_KEPT, _told(schema_id, _Mark(old_end, mark.until, new_end, tuple(suspects[-_SUSPECTS:]))))
        is_whole = old_end.offset >= mark.until and new_end.offset >= graph.end.offset
        return Judged(_last_of_each(problems), is_whole)


def _first(end: Position, most_bytes: int) -> _Mark:
    """Return where to begin: a short log is all new; of a long one what comes now is new."""
    return _Mark(Position(), 0, Position()) if end.offset <= most_bytes else _Mark(Position(), end.offset, end)


def _recalled(text: str, schema_id: str) -> _Mark | None:
    known, old, until, new, held = json.loads(text) if text else ("", (), 0, (), ())
    if known != schema_id:
        return None
    suspects = [(number, one) for number, record in held for one in read_record(record).operations]
    return _Mark(Position(*old), until, Position(*new), tuple(suspects))


def _told(schema_id: str, mark: _Mark) -> str:
    held = [(number, record_of(operation)) for number, operation in mark.suspects]
    return json.dumps([schema_id, mark.old, mark.until, mark.new, held])


def _piece(path: str, since: Position, until: int) -> tuple[list[_Placed], Position]:
    """Return the operations from a position up to the block that reaches `until`, with their lines; and its end."""
    found: list[_Placed] = []
    with eventlog.reading(path) as file:
        if file is None:
            return [], since
        log = eventlog.Log(file, since, _BLOCK_BYTES)
        for piece in log.pieces():
            if log.end.offset >= until:
                break
            step = 0 if isinstance(piece, Line) else 1
            found += [(piece.number + at * step, one) for at, one in enumerate(piece.operations)]
        return found, log.end


def _concerned(own: View, schema: Schema, operation: Operation) -> tuple[list[str], list[Edge]]:
    """Return the entities and relations, as they stand, that an operation may have made wrong."""
    idents = [ident for ident in (operation.id, operation.target) if ident]
    if operation.kind == "relate":
        return idents, [e for e in own.edges_from(operation.id, (operation.rel,)) if e.target == operation.target]
    if operation.kind != "delete":
        return idents, []
    for name in sorted(schema.ref_names):
        idents += own.holders(name, value_key(operation.id))
    return idents, [*own.edges_from(operation.id), *own.edges_to(operation.id)]


def _last_of_each(problems: list[Problem]) -> list[Problem]:
    """Return each problem once, with the last line that has a part in it: `file:line: object` and `file:line` alike."""
    last = {(one.code, one.where.partition(": ")[2] or one.where, one.what): one for one in problems}
    return list(last.values())


def _placed(problem: Problem, where: str, by: str) -> Problem:
    who = f" (by {by})" if by else ""
    return replace(problem, where=f"{where}: {problem.where}", what=problem.what + who)
