"""`kbd graph`: the typed graph, with the command line of the public `ontology` skill and what that lacks."""

from __future__ import annotations

import click

from kbd.cli.lazy import LazyGroup

COMMANDS = {
    "apply": ("kbd.cli.graph.writing:apply", "Apply a plan: all its steps, or none."),
    "check": ("kbd.cli.graph.schemas:check", "Check the contract of a skill against the schema."),
    "compact": ("kbd.cli.graph.writing:compact", "Shorten the log; what it held goes to an archive."),
    "coverage": ("kbd.cli.graph.schemas:coverage", "Show what of the schema was ever checked, and how."),
    "create": ("kbd.cli.graph.writing:create", "Create an entity."),
    "delete": ("kbd.cli.graph.writing:delete", "Delete an entity; refused while something is related to it."),
    "get": ("kbd.cli.graph.asking:get", "Show an entity."),
    "history": ("kbd.cli.graph.asking:history", "Show every operation that an entity took part in."),
    "init": ("kbd.cli.graph.schemas:init", "Make an empty log and a schema to begin with."),
    "list": ("kbd.cli.graph.asking:list_entities", "List entities."),
    "path": ("kbd.cli.graph.asking:path", "Show a shortest path between two entities."),
    "query": ("kbd.cli.graph.asking:query", "Find entities under conditions."),
    "relate": ("kbd.cli.graph.writing:relate", "Relate two entities."),
    "related": ("kbd.cli.graph.asking:related", "Show what is related to an entity, over one hop or more."),
    "schema-merge": ("kbd.cli.graph.schemas:schema_merge", "Add types, relations and constraints to the schema."),
    "unrelate": ("kbd.cli.graph.writing:unrelate", "End a relation."),
    "update": ("kbd.cli.graph.writing:update", "Change properties of an entity."),
    "validate": ("kbd.cli.graph.schemas:validate", "Check every line of the log and the whole graph."),
}
ALIASES = {"schema-append": "schema-merge"}


class GraphCommands(LazyGroup):
    """The commands of `kbd graph`."""

    table = COMMANDS
    aliases = ALIASES


@click.command("graph", cls=GraphCommands)
def graph() -> None:
    """Keep a typed graph of entities and relations in an event log, checked against a schema that refuses."""
