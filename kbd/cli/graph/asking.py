"""`kbd graph get|list|query|related|path|history`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kbd.cli.graph.ground import Ground, for_skill, json_object, on_graph
from kbd.cli.output import say
from kbd.core.constraints import Expression, RuleFault, parse_condition
from kbd.core.graph_query import Query, condition_of, hops_of
from kbd.core.operations import Entity, record_of
from kbd.core.schema import near
from kbd.errors import UsageError

MAX_STEPS = 100


def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that asks."""
    at = click.option("--at", metavar="TIME", help="The graph as it was at this time, or at the end of this day.")
    return for_skill(at(on_graph(function)))


@click.command("get")
@click.option("--id", "ident", required=True, help="Id of the entity, a handle of an entry, or file:PATH.")
@asking
def get(ground: Ground, ident: str) -> int:
    """Show an entity. Exit 1 if there is none."""
    with ground.asking() as view:
        entity = view.entity(ident)
    if entity is None:
        if ground.as_json:
            ground.answer("entity", None)
        say(f"Entity not found: {ident}")
        return 1
    ground.answer("entity", ground.require(entity).as_json())
    return 0


@click.command("list")
@click.option("--type", "-t", "type_", help="Only entities of this type.")
@asking
def list_entities(ground: Ground, type_: str | None) -> None:
    """List entities."""
    _answer_entities(ground, type_, None)


@click.command("query")
@click.option("--type", "-t", "type_", help="Only entities of this type.")
@click.option("--where", "-w", default="{}", metavar="JSON|TEXT", help="As the skill has it, or: due < 2026-02-01.")
@asking
def query(ground: Ground, type_: str | None, where: str) -> None:
    """Find entities under conditions: =, !=, <, <=, >, >=, in, contains, exists, and, or, not."""
    _answer_entities(ground, type_, _condition(ground, type_, where))


def _answer_entities(ground: Ground, type_: str | None, condition: Expression | None) -> None:
    if type_ is not None:
        ground.require(Entity("", type_, {}))
    with ground.asking() as view:
        found = [entity.as_json() for entity in ground.readable(Query(view, ground.schema).entities(type_, condition))]
        ground.answer("entities", found)
    if type_ is not None and not found and ground.schema.type_rule(type_) is None:
        say(f"the schema has no type {type_!r}; {near(type_, ground.schema.type_names)}".rstrip("; "))


def _condition(ground: Ground, type_: str | None, where: str) -> Expression | None:
    rule = ground.schema.type_rule(type_) if type_ else None
    try:
        if where.lstrip().startswith("{"):
            return condition_of(json_object(where, "--where"))
        return parse_condition(where, rule.known if rule else ()) if where.strip() else None
    except RuleFault as fault:
        hint = "write 'status = open and due < 2026-02-01'"
        raise UsageError(f"--where {fault}", hint=hint) from fault


@click.command("related")
@click.option("--id", "ident", required=True, help="Id of the entity.")
@click.option("--rel", "-r", help="A relation, or a walk: 'has_task[status = open]/touches/~applies_to'.")
@click.option("--dir", "-d", "direction", type=click.Choice(["outgoing", "incoming", "both"]), default="outgoing")
@asking
def related(ground: Ground, ident: str, rel: str | None, direction: str) -> None:
    """Show what is related to an entity, over one relation or several hops."""
    try:
        hops = hops_of(rel, ground.schema.relation_names) if rel else ()
    except RuleFault as fault:
        raise UsageError(f"--rel {fault}", hint="write 'has_task/touches/~applies_to'") from fault
    with ground.asking() as view:
        start = view.entity(ident)
        if start is None:
            say(f"Entity not found: {ident}")
        else:
            ground.require(start)
        asked = Query(view, ground.schema)
        if len(hops) > 1 or any(hop.backwards or hop.condition for hop in hops):
            found = ground.readable(asked.walk(ident, hops))
            answer = [{"relation": rel, "entity": entity.as_json()} for entity in found]
        else:
            triples = list(asked.related(ident, hops[0].rel if hops else None, direction))
            may = {entity.id for entity in ground.readable(entity for _, _, entity in triples)}
            answer = [_related(name, way, entity, direction) for name, way, entity in triples if entity.id in may]
    ground.answer("related", answer)


def _related(name: str, way: str, entity: Entity, direction: str) -> dict[str, Any]:
    told: dict[str, Any] = {"relation": name}
    return told | ({"direction": way} if direction == "both" else {}) | {"entity": entity.as_json()}


@click.command("path")
@click.option("--from", "from_id", required=True, metavar="ID", help="Id of one entity.")
@click.option("--to", "to_id", required=True, metavar="ID", help="Id of the other.")
@click.option("--rel", "-r", "rels", multiple=True, help="Only over these relations.")
@click.option("--max", "most", type=click.IntRange(1, MAX_STEPS), default=6, help="At most so many steps; default 6.")
@asking
def path(ground: Ground, from_id: str, to_id: str, rels: tuple[str, ...], most: int) -> int:
    """Show a shortest path between two entities. Exit 1 if there is none."""
    with ground.asking() as view:
        for ident in (from_id, to_id):
            entity = view.entity(ident)
            if entity is None:
                raise UsageError(f"{ident!r} does not exist")
            ground.require(entity)
        edges = Query(view, ground.schema).path(from_id, to_id, rels, most)
        ends = [end for edge in edges for end in (edge.source, edge.target)]
        for ident in ends:
            entity = view.entity(ident)
            if entity is not None:
                ground.require(entity)
    ground.answer("path", [{"from": edge.source, "rel": edge.rel, "to": edge.target} for edge in edges])
    if not edges and from_id != to_id:
        say(f"no path of at most {most} steps")
        return 1
    return 0


@click.command("history")
@click.option("--id", "ident", required=True, help="Id of the entity.")
@for_skill
@on_graph
def history(ground: Ground, ident: str) -> int:
    """Show every operation that an entity took part in, oldest first. Exit 1 if there is none."""
    from kbd.service.graph.past import history as history_of  # noqa: PLC0415 - for going back only

    found = history_of(ground.place, ident)
    for one in found:
        if one.operation.kind == "create" and one.operation.id == ident:
            ground.require(Entity(ident, one.operation.type, {}))
    ground.answer("history", [{"file": one.file, "line": one.line, **record_of(one.operation)} for one in found])
    if not found:
        say(f"Entity not found: {ident}")
    return 0 if found else 1
