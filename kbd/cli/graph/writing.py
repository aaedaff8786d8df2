"""`kbd graph create|update|delete|relate|unrelate|apply|compact`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import click

from kbd.cli.graph.ground import Ground, for_skill, json_object, on_graph, warn
from kbd.cli.output import counted, emit, emit_json, safe, say
from kbd.core.graph import cascade as cascaded
from kbd.core.graph_state import View
from kbd.core.operations import Operation, record_of
from kbd.core.plans import PlanFault, operations_of, read_plan, shown_steps
from kbd.core.yamltext import MAX_BYTES
from kbd.errors import UsageError
from kbd.service.graph import past
from kbd.service.graph.changing import Changed, Make, Request, change
from kbd.service.graph.schemas import Faulty
from kbd.store.confined import confined
from kbd.store.files import read_regular


def changing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a changing command."""
    dry_run = click.option("--dry-run", is_flag=True, help="Check only; write nothing.")
    return for_skill(dry_run(on_graph(function)))


def _run(ground: Ground, make: Make, dry_run: bool, after: Callable[[View], None] = lambda _: None) -> Changed:
    request = Request(make, secrets.token_hex(8), ground.contract, dry_run)
    changed = change(ground.place, ground.schema, request, ground.knowledge, after)
    warn(changed.warnings)
    if dry_run:
        say(f"would write {counted(len(changed.operations), 'operation')}; nothing was written")
    return changed


def _show_entity(ground: Ground, ident: str) -> Callable[[View], None]:
    def show(view: View) -> None:
        entity = view.entity(ident)
        if entity is not None:
            ground.answer("entity", entity.as_json())

    return show


def new_id(type_: str) -> str:
    """Return an id as the skill makes them: `task_1f2e3d4c`."""
    return f"{type_.lower()[:4].strip() or 'e'}_{secrets.token_hex(4)}"


@click.command("create")
@click.option("--type", "-t", "type_", required=True, help="Type of the entity.")
@click.option("--props", "-p", default="{}", metavar="JSON", help="Its properties.")
@click.option("--id", "ident", help="Its id; else one is made.")
@changing
def create(ground: Ground, type_: str, props: str, ident: str | None, dry_run: bool) -> None:
    """Create an entity."""
    properties = json_object(props, "--props")
    given = new_id(type_) if ident is None else ident
    operation = Operation("create", given, type_, properties, at=ground.stamp())
    _run(ground, lambda _: [operation], dry_run, _show_entity(ground, given))


@click.command("update")
@click.option("--id", "ident", required=True, help="Id of the entity.")
@click.option("--props", "-p", required=True, metavar="JSON", help="The properties that change; null takes one away.")
@changing
def update(ground: Ground, ident: str, props: str, dry_run: bool) -> None:
    """Change properties of an entity."""
    operation = Operation("update", ident, "", json_object(props, "--props"), at=ground.stamp())
    _run(ground, lambda _: [operation], dry_run, _show_entity(ground, ident))


@click.command("delete")
@click.option("--id", "ident", required=True, help="Id of the entity.")
@click.option("--cascade", is_flag=True, help="End its relations, and take it out of properties that name it, as well.")
@changing
def delete(ground: Ground, ident: str, cascade: bool, dry_run: bool) -> None:
    """Delete an entity; refused while something is related to it."""
    at = ground.stamp()

    def make(view: View) -> Sequence[Operation]:
        return cascaded(view, ground.schema, ident, at) if cascade else [Operation("delete", ident, at=at)]

    changed = _run(ground, make, dry_run)
    if ground.as_json:
        emit_json({"deleted": ident, "operations": [record_of(one) for one in changed.operations]})
    else:
        emit(safe(f"{'Would delete' if dry_run else 'Deleted'}: {ident}"))


@click.command("relate")
@click.option("--from", "from_id", required=True, metavar="ID", help="Id of the source.")
@click.option("--rel", "-r", required=True, help="The relation.")
@click.option("--to", "to_id", required=True, metavar="ID", help="Id of the target.")
@click.option("--props", "-p", default="{}", metavar="JSON", help="Properties of the relation.")
@changing
def relate(ground: Ground, from_id: str, rel: str, to_id: str, props: str, dry_run: bool) -> None:
    """Relate two entities."""
    operation = Operation("relate", from_id, "", json_object(props, "--props"), rel, to_id, ground.stamp())
    changed = _run(ground, lambda _: [operation], dry_run)
    if not changed.operations:
        say("is so already; nothing was written")
    ground.answer("relation", record_of(changed.operations[0] if changed.operations else operation))


@click.command("unrelate")
@click.option("--from", "from_id", required=True, metavar="ID", help="Id of the source.")
@click.option("--rel", "-r", required=True, help="The relation.")
@click.option("--to", "to_id", required=True, metavar="ID", help="Id of the target.")
@changing
def unrelate(ground: Ground, from_id: str, rel: str, to_id: str, dry_run: bool) -> None:
    """End a relation."""
    operation = Operation("unrelate", from_id, "", {}, rel, to_id, ground.stamp())
    changed = _run(ground, lambda _: [operation], dry_run)
    if ground.as_json:
        emit_json({"operations": [record_of(one) for one in changed.operations]})
    else:
        emit(safe(f"{'Would end' if dry_run else 'Ended'}: {from_id} {rel} {to_id}"))


@click.command("apply")
@click.argument("plan_path", metavar="PLAN")
@changing
def apply(ground: Ground, plan_path: str, dry_run: bool) -> None:
    """Apply a plan: all its steps, or none."""
    path = confined(plan_path, os.getcwd(), "the plan")
    try:
        plan = read_plan(read_regular(path, MAX_BYTES), os.path.basename(path))
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=plan_path) from error
    if plan.problems:
        raise Faulty("the plan cannot be read", plan.problems)
    at = ground.stamp()

    def make(view: View) -> Sequence[Operation]:
        try:
            return operations_of(
                plan, view, ground.schema, new_id, at, lambda ident: cascaded(view, ground.schema, ident, at)
            )
        except PlanFault as fault:
            raise UsageError(str(fault), where=plan_path, hint="name a step before it, or an id") from fault

    changed = _run(ground, make, dry_run)
    if ground.as_json:
        emit_json({"operations": [record_of(one) for one in changed.operations]})
    else:
        for line in shown_steps(list(changed.operations)):
            emit(safe(line))


@click.command("compact")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@on_graph
def compact(ground: Ground, dry_run: bool) -> None:
    """Replace the log by the operations that make its state; what it held goes to the archive beside it."""
    before, after = past.compact(ground.place, ground.schema, ground.stamp(), dry_run=dry_run)
    archive = past.archive_of(ground.place.log)
    if ground.as_json:
        emit_json({"lines_before": before, "lines_after": after, "archive": archive})
    else:
        emit(safe(f"{counted(before, 'line')} {'would become' if dry_run else 'became'} {after:,}; archive {archive}"))
