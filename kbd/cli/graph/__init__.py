"""`kbd graph`: the typed graph, with the command line of the public `ontology` skill and what that lacks."""

from __future__ import annotations

import click

from kbd.cli.lazy import LazyGroup

COMMANDS = {
    "apply": "kbd.cli.graph.writing:apply",
    "check": "kbd.cli.graph.schemas:check",
    "compact": "kbd.cli.graph.writing:compact",
    "coverage": "kbd.cli.graph.schemas:coverage",
    "create": "kbd.cli.graph.writing:create",
    "delete": "kbd.cli.graph.writing:delete",
    "get": "kbd.cli.graph.asking:get",
    "history": "kbd.cli.graph.asking:history",
    "init": "kbd.cli.graph.schemas:init",
    "list": "kbd.cli.graph.asking:list_entities",
    "path": "kbd.cli.graph.asking:path",
    "query": "kbd.cli.graph.asking:query",
    "relate": "kbd.cli.graph.writing:relate",
    "related": "kbd.cli.graph.asking:related",
    "schema-merge": "kbd.cli.graph.schemas:schema_merge",
    "unrelate": "kbd.cli.graph.writing:unrelate",
    "update": "kbd.cli.graph.writing:update",
    "validate": "kbd.cli.graph.schemas:validate",
}
ALIASES = {"schema-append": "schema-merge"}


class GraphCommands(LazyGroup):
    """The commands of `kbd graph`."""

    places = COMMANDS
    aliases = ALIASES


@click.command("graph", short_help="Keep a typed graph of entities and relations.", cls=GraphCommands)
def graph() -> None:
    """Keep a typed graph of entities and relations in an event log, checked against a schema that refuses."""
