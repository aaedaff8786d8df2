"""`kbd export`: knowledge and graph together, in the formats of other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from kbd.cli.graph.ground import Ground, on_graph
from kbd.cli.output import emit, safe
from kbd.core.graph_export import FORMATS, with_ends
from kbd.core.operations import Edge, Entity
from kbd.service.graph.reading import opened


@click.command("export")
@click.option("--format", "format_", type=click.Choice(sorted(FORMATS)), required=True, help="Format of the output.")
@click.option("--graph-only", is_flag=True, help="Without the entries of the knowledge and their relations.")
@on_graph
def export(ground: Ground, format_: str, graph_only: bool) -> None:
    """Print the graph, with the entries of the knowledge as entities, for a graph database or another tool."""
    with opened(ground.place, ground.schema, ground.knowledge) as graph:
        knowledge = None if graph_only else ground.knowledge()

        def entities() -> Iterator[Entity]:
            yield from graph.own.entities()
            yield from knowledge.entities() if knowledge else ()

        def edges() -> Iterator[Edge]:
            yield from graph.own.edges()
            yield from knowledge.edges() if knowledge else ()

        for line in FORMATS[format_](with_ends(entities(), edges(), graph.view.entity), edges()):
            # A terminal gets what is safe to see; a file the exact text.
            emit(safe(line) if sys.stdout.isatty() else line)
