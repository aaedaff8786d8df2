"""Looks a whole log over: every line, every entity, every relation; and what agents appended to it by themselves."""

from __future__ import annotations

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
from kbd.core.operations import Edge, Fault, Operation, is_note, problem_of
from kbd.core.schema import Schema
from kbd.service.graph.reading import Load, Place, no_knowledge, opened
from kbd.store import eventlog
from kbd.store.eventlines import Line
from kbd.store.eventlog import Position

_FUTURE = timedelta(days=1)


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


@dataclass(frozen=True, slots=True)
class Appended:
    """What was appended to a log: its problems, each with its line and its author, and the new end."""

    problems: list[Problem]
    end: Position


def validate_appended(place: Place, schema: Schema, since: Position, load: Load = no_knowledge) -> Appended:
    """Check what someone appended to a log after a position, against the graph as it stands now.

    What a later line has mended is no problem any more. Costs the new lines and what they touch.

    Args:
        place: of the graph.
        schema: what it may hold.
        since: `Position()`, or the `end` that an earlier call returned. A log that has shrunk is read from its start.
        load: the knowledge beside it.

    Raises:
        LedgerDamaged, FileUnreadable, FileUnwritable: the graph cannot be read.
    """
    name = os.path.basename(place.log)
    with opened(place, schema, load) as graph:
        if graph.end.offset < since.offset:
            since = Position()
        problems = [
            problem_of(fault, f"{name}:{line}", by)
            for line, fault, by in graph.faults
            if line > since.line and not is_note(fault.code)
        ]
        for number, operation in _operations_since(place.log, since):
            idents, edges = _concerned(graph.own, schema, operation)
            found = validate_touched(graph.view, schema, idents, edges)
            problems += [_placed(one, f"{name}:{number}", operation.by) for one in found.problems]
        return Appended(_last_of_each(problems), graph.end)


def _operations_since(path: str, since: Position) -> Iterator[tuple[int, Operation]]:
    with eventlog.reading(path) as file:
        for line in eventlog.Log(file, since) if file else ():
            yield from ((line.number, operation) for operation in line.operations)


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
