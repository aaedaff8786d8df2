"""`kbd graph init|validate|coverage|check|schema-merge`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from kbd.cli.graph.ground import Ground, json_object, on_graph
from kbd.cli.output import Column, counted, emit, emit_json, safe, say, table, terminal_width
from kbd.core.contracts import as_rows
from kbd.core.coverage import Row
from kbd.core.model import Problem
from kbd.core.operations import MAX_NESTING, is_too_deep
from kbd.core.yamltext import MAX_BYTES, compose
from kbd.core.yamlvalues import value_of
from kbd.errors import UsageError
from kbd.service.graph import checking, schema_writing
from kbd.service.graph.skills import contract_reading
from kbd.store import eventlog
from kbd.store.confined import confined
from kbd.store.files import read_regular
from kbd.store.locks import Locks

SHOWN = 200


def _as_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [{"code": p.code, "where": p.where, "what": p.what, "hint": p.hint} for p in problems]


@click.command("init")
@click.option("--dry-run", is_flag=True, help="Say what would be made; make nothing.")
@on_graph
def init(ground: Ground, dry_run: bool) -> None:
    """Make an empty log and a schema with the usual types; what is there stays."""
    place = ground.place
    missing = [path for path in (place.schema, place.log) if not os.path.lexists(path)]
    if not dry_run:
        schema_writing.write_default_schema(place.schema)
        with eventlog.writing(place.log, timeout_seconds=10.0):
            pass
    if ground.as_json:
        emit_json({"log": place.log, "schema": place.schema, "made": missing})
        return
    for path in (place.schema, place.log):
        told = ("would make " if dry_run else "made ") if path in missing else "is there: "
        emit(safe(told + path))


@click.command("validate")
@on_graph
def validate(ground: Ground) -> int:
    """Check every line of the log and the whole graph against the schema. Exit 1 with findings."""
    problems = []
    if not os.path.lexists(ground.place.schema):
        what, hint = "there is no schema, so nothing can be checked", "`kbd graph init` writes one"
        problems.append(Problem("schema_missing", ground.place.schema, what, hint))
    found = checking.check_graph(ground.place, ground.schema, ground.session.now(), ground.knowledge)
    problems += found.problems
    if ground.as_json:
        sums = {"entities": found.entities, "relations": found.relations}
        emit_json({"valid": not problems, **sums, "problems": _as_json(problems), "notes": _as_json(found.notes)})
        return 1 if problems else 0
    emit("Validation errors:" if problems else "Graph is valid.")
    for problem in problems[:SHOWN]:
        emit(safe(f"  - {problem.where}: {problem.code}: {problem.what}; {problem.hint}"))
    if len(problems) > SHOWN:
        emit(f"  … and {len(problems) - SHOWN:,} more; --json has all")
    _say_notes(found.notes)
    return 1 if problems else 0


def _say_notes(notes: list[Problem]) -> None:
    counts = Counter(note.code for note in notes)
    first = {note.code: note for note in reversed(notes)}
    for code, count in counts.items():
        note = first[code]
        say(f"note: {code}: {counted(count, 'time')}, first {note.where}: {note.what}; {note.hint}")


@click.command("coverage")
@on_graph
def coverage(ground: Ground) -> int:
    """Show each constraint that the schema declares, how it is enforced, and how many facts it was checked against.

    Enforced at the write: before a byte of it is written; at the end: when all steps of a plan are done; at an
    update: of a value that is there; in writing: brought into this form. NOTHING: no fact was ever checked against it.
    """
    audit = checking.audit(ground.place, ground.schema, ground.session.now(), ground.knowledge)
    if ground.as_json:
        rows = [
            {
                "where": r.where,
                "says": r.says,
                "how": r.how,
                "checked": r.checked,
                "violated": r.violated,
                "idle": r.is_idle,
            }
            for r in audit.rows
        ]
        emit_json({"constraints": rows, "open": audit.openings})
        return 0
    _print_rows(audit.rows)
    for opening in audit.openings:
        emit(safe(f"not checked, on purpose: {opening}"))
    idle = sum(1 for row in audit.rows if row.is_idle)
    if idle:
        say(f"{counted(idle, 'constraint')} checked nothing so far")
    return 0


def _print_rows(rows: Sequence[Row]) -> None:
    """Print the constraints; on a terminal under the type or relation that they are of, which leaves room for words."""
    grouped = terminal_width() is not None
    owners: dict[str, list[Row]] = {}
    for row in rows:
        owners.setdefault(_owner(row), []).append(row)
    sorted_rows = [row for own in owners.values() for row in own]
    columns = [
        Column("constraint"),
        Column("checked", "right", (("NOTHING", "yellow"),)),
        Column("broken", "right"),
        Column("enforced"),
        Column("says"),
    ]
    cells = [
        [
            safe(row.where.removeprefix(f"{_owner(row)}.") if grouped else row.where),
            "-" if row.checked is None else f"{row.checked:,}" if row.checked else "NOTHING",
            f"{row.violated:,}" if row.violated else "-",
            row.how,
            safe(row.says),
        ]
        for row in sorted_rows
    ]
    header, *lines = table(columns, cells, indent="  " if grouped else "")
    emit(header)
    for row, line in zip(sorted_rows, lines, strict=True):
        if grouped and row is owners[_owner(row)][0]:
            emit(safe(_owner(row)))
        emit(line)


def _owner(row: Row) -> str:
    """Return what a constraint is of: `types.Task`, `relations.blocks` or `constraints`."""
    section, _, rest = row.where.partition(".")
    return f"{section}.{rest.partition('.')[0]}" if rest else section.partition("[")[0]


@click.command("check")
@click.argument("skill_path", metavar="SKILL.md")
@on_graph
def check(ground: Ground, skill_path: str) -> int:
    """Check the contract of a skill against the schema. Exit 1 with findings."""
    reading = contract_reading(confined(skill_path, os.getcwd(), "the skill"), ground.schema)
    if ground.as_json:
        contract = as_rows(reading.contract) if reading.contract else None
        emit_json({"contract": contract, "problems": _as_json(reading.problems)})
        return 1 if reading.problems else 0
    for problem in reading.problems:
        emit(safe(f"{problem.where}: {problem.code}: {problem.what}; {problem.hint}"))
    if reading.contract is not None:
        for key, values in as_rows(reading.contract).items():
            emit(safe(f"{key}: {', '.join(values) or 'none'}"))
    return 1 if reading.problems else 0


@click.command("schema-merge")
@click.option("--data", "-d", metavar="JSON", help="The fragment.")
@click.option("--file", "-f", "path", metavar="FILE", help="A file with the fragment, YAML or JSON.")
@click.option("--dry-run", is_flag=True, help="Print the new schema; write nothing.")
@on_graph
def schema_merge(ground: Ground, data: str | None, path: str | None, dry_run: bool) -> None:
    """Add types, relations and constraints to the schema; comments and order stay. Refused if it would have faults."""
    if (data is None) == (path is None):
        raise UsageError("schema-merge takes --data or --file", hint="give one of them")
    fragment = json_object(data, "--data") if data is not None else _fragment(str(path))
    if is_too_deep(fragment):
        raise UsageError(f"the fragment is nested more than {MAX_NESTING} deep", hint="no schema needs that")
    locks = Locks(ground.session.state_dir)
    now = ground.session.real_now().timestamp()
    text = schema_writing.merge_schema(ground.place.schema, fragment, locks, now, dry_run=dry_run)
    merged = value_of(compose(text, ground.place.schema).root)
    if dry_run and not ground.as_json:
        emit(text.decode().rstrip("\n"))
    else:
        ground.answer("schema", merged)


def _fragment(given: str) -> Mapping[str, Any]:
    path = confined(given, os.getcwd(), "the fragment")
    try:
        value = value_of(compose(read_regular(path, MAX_BYTES), given).root)
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=given) from error
    if not isinstance(value, dict):
        raise UsageError("the fragment is no mapping", where=given, hint="write `types:` and `relations:`")
    return value
