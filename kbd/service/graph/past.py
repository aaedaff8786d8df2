"""Going back in a graph's log: the history of one entity, the state as of a time; and compacting what has grown long.

Compacting appends the log to an archive beside it and replaces it by the operations that make the present state, led by
a line that names the archive. Nothing is lost: history and earlier states are read from the archive.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kbd.core.graph_state import GraphState, Overlay
from kbd.core.moments import moment_of
from kbd.core.operations import COMPACT, Operation, record_of
from kbd.core.schema import Schema
from kbd.core.value_checks import canonical_value
from kbd.errors import Refused
from kbd.service.graph.reading import Place
from kbd.store import eventlog
from kbd.store.eventlines import Line
from kbd.store.files import create_file, read_regular
from kbd.store.replacing import replace_file

MAX_BYTES = 1 << 32
_LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Past:
    """An operation in the past: the file and the line it stands in, and the time that counts for it."""

    file: str
    line: int
    operation: Operation
    at: str


def archive_of(log: str) -> str:
    """Return the archive of a log: `graph-archive.jsonl` beside `graph.jsonl`."""
    stem, suffix = os.path.splitext(log)
    return f"{stem}-archive{suffix}"


def history(place: Place, ident: str) -> list[Past]:
    """Return the operations that an entity took part in, oldest first, as its own or as the target of a relation."""
    return [past for past in _all(place) if ident in (past.operation.id, past.operation.target)]


def as_of(place: Place, schema: Schema, at: datetime) -> Overlay:
    """Return the graph as it stood at a time: every operation up to it, in the order of the log.

    An operation without a readable time has that of the one before it.
    """
    state = GraphState()
    mark = _marker(place.log)
    compacted = moment_of(mark.at) if mark else None
    path = archive_of(place.log) if compacted is not None and at < compacted else place.log
    for past in _operations(path):
        moment = moment_of(past.at)
        if moment is None or moment <= at or (mark is not None and path == place.log and past.line <= mark.lines):
            state.apply(past.operation)
    return Overlay.of(state, schema.indexed)


def _all(place: Place) -> Iterator[Past]:
    mark = _marker(place.log)
    if mark is not None:
        yield from _operations(archive_of(place.log))
    # What a compacted log begins with repeats the archive.
    yield from (past for past in _operations(place.log) if mark is None or past.line > mark.lines)


def _operations(path: str) -> Iterator[Past]:
    last = ""
    with eventlog.reading(path) as file:
        if file is None:
            return
        for line in _with_tail(eventlog.Log(file)):
            for operation in line.operations:
                last = operation.at if moment_of(operation.at) else last
                yield Past(os.path.basename(path), line.number, operation, last)


def _with_tail(log: eventlog.Log) -> Iterator[Line]:
    yield from log
    if log.tail is not None:
        yield log.tail


class _Marker(NamedTuple):
    """When a log was compacted, and how many lines, this one included, are what it was compacted to."""

    at: str
    lines: int


def _marker(path: str) -> _Marker | None:
    with eventlog.reading(path) as file:
        first = file.readline(4096) if file else b""
    try:
        record = json.loads(first)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("op") != COMPACT:
        return None
    at, lines = record.get("timestamp"), record.get("lines")
    return _Marker(at, lines) if isinstance(at, str) and isinstance(lines, int) else None


def compact(place: Place, schema: Schema, at: str, *, dry_run: bool) -> tuple[int, int]:
    """Replace the log by the operations that make its state, in canonical form; return lines before and after.

    Raises:
        Refused: the log has lines that would be lost, or there is no log.
        ChangedUnderneath, LockTimeout, FileUnreadable, FileUnwritable: the log is as it was.
    """
    if not os.path.lexists(place.log):
        raise Refused("there is no log", where=place.log, hint="nothing to compact")
    with eventlog.writing(place.log, _LOCK_SECONDS):
        data = read_regular(place.log, MAX_BYTES)
        state, before = _replayed(place)
        made = [_line(one, place.log) for one in _made(state, schema, at)]
        mark = {
            "op": COMPACT,
            "timestamp": at,
            "lines": len(made) + 1,
            "archive": os.path.basename(archive_of(place.log)),
        }
        lines = [json.dumps(mark), *made]
        if not dry_run:
            known = _marker(place.log)
            _archive(place.log, b"".join(data.splitlines(keepends=True)[known.lines if known else 0 :]))
            replace_file(place.log, data, "".join(f"{line}\n" for line in lines).encode(), is_locked=True)
        return before, len(lines)


def _line(operation: Operation, log: str) -> str:
    line = json.dumps(record_of(operation), ensure_ascii=False)
    if len(line) >= eventlog.MAX_LINE_BYTES // 4 and len(line.encode()) >= eventlog.MAX_LINE_BYTES:
        what = f"{operation.id[:80]} has grown longer than a line may be ({eventlog.MAX_LINE_BYTES} bytes)"
        raise Refused(what, where=log, hint="keep long texts in files, and their paths in the graph")
    return line


def _replayed(place: Place) -> tuple[GraphState, int]:
    state = GraphState()
    with eventlog.reading(place.log) as file:
        log = eventlog.Log(file) if file else None
        for line in log or ():
            lost = [fault.code for fault in line.faults if not line.operations]
            if lost and lost != ["comment_line"] and lost != ["byte_order_mark"]:
                what = f"line {line.number} cannot be read ({', '.join(lost)})"
                raise Refused(what, where=place.log, hint="mend or remove it first: `kbd graph validate`")
            for operation in line.operations:
                state.apply(operation)
    if log is not None and log.torn_bytes:
        raise Refused("its last line has no end", where=place.log, hint="mend it first")
    return state, log.end.line if log else 0


def _made(state: GraphState, schema: Schema, now: str) -> Iterator[Operation]:
    """Yield the operations that make a state, types, relations and values in their one form."""
    for entity in state.entities.values():
        rule = schema.type_rule(entity.type)
        rules = rule.properties if rule else {}
        properties = {k: canonical_value(rules[k], v) if k in rules else v for k, v in entity.properties.items()}
        type_, at = schema.canonical_type(entity.type), entity.updated or now
        yield Operation("create", entity.id, type_, properties, at=at, created=entity.created)
    for (source, rel, target), own in state.edges.items():
        name, swapped = schema.relation_names.get(rel, (rel, False))
        start, end = (target, source) if swapped else (source, target)
        yield Operation("relate", start, "", own, name, end, now)


def _archive(log: str, data: bytes) -> None:
    path = archive_of(log)
    try:
        held = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        create_file(path, data, log)
        return
    if not held.endswith(data):
        replace_file(path, held, held + data)
