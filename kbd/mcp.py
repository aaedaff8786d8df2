"""`kbd mcp`: context, search, show, add, relate and status as an MCP server on stdio.

The answers are those of the commands of the same names, so there is one rule for each. stdout belongs to the
protocol; what commands say to a person goes to stderr.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from kbd import __version__
from kbd.cli import adding, linking, searching, seeing
from kbd.cli.context import BUDGET, gather, wanted_of
from kbd.cli.editors import wait_for_editors
from kbd.cli.health import said_now
from kbd.cli.session import Session
from kbd.errors import KbdError, UsageError
from kbd.service.context import Request

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = (
    "Lessons from earlier sessions. Ask `context` for those that fit the files and the question at hand. When one "
    "guides your work, name its handle in brackets, as in [k-7fq2mz], where you say what you did: cited lessons live, "
    "others fade. `add` a lesson that cost effort to learn and will be needed again; one lesson, one title."
)
SHOWN_EVIDENCE = 20
SHOWN_HITS = 20


@click.command("mcp")
@click.pass_obj
def mcp(session: Session) -> int:
    """Serve agents as an MCP server on stdio, until stdin closes."""
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an extra, and half a second
    except ImportError as error:
        raise UsageError("the MCP SDK is not installed", hint="pip install 'kbd[mcp]'") from error
    server = MCPServer("kbd", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    offer(server, Tools(session))
    server.run("stdio")
    return 0


def offer(server: MCPServer[Any], tools: Tools) -> None:
    """Register the tools on a server; what a KbdError says becomes the error that the agent reads."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - see above

    def guarded(tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return tool(*args, **kwargs)
            except KbdError as error:
                raise ToolError(error.message()) from error
            finally:
                wait_for_editors()  # this process may live for weeks, and end without a word

        return call

    for tool in (tools.context, tools.search, tools.show, tools.add, tools.relate, tools.status):
        server.add_tool(guarded(tool))


class Tools:
    """What an agent can call; the docstrings are what it reads."""

    def __init__(self, session: Session) -> None:
        """Answer from the configuration of a call of the command line."""
        self._session = session

    def context(
        self,
        files: list[str] | None = None,
        query: str = "",
        types: list[str] | None = None,
        stage: str | None = None,
        budget: int = BUDGET,
    ) -> str:
        """Lessons that the work at hand should know, best first, as Markdown with handles.

        Args:
            files: files that are worked on, relative to the working directory or absolute.
            query: what the work is about, in a few words.
            types: only these: guideline, pitfall, decision, model, process.
            stage: plan, build or review, for the types of that stage.
            budget: tokens at most.
        """
        wanted = wanted_of(self._session.config, files or (), types or (), stage, query)
        return gather(self._session, Request(wanted, max(budget, 1))).text() or "No lessons for this yet."

    def search(self, query: str, type: str | None = None, state: str | None = None) -> dict[str, Any]:
        """Find lessons by words of title, text and files, dormant and archived ones too.

        Args:
            query: words; those that hold all of them, else most of them, are found.
            type: only this type.
            state: only active, dormant or archived ones.
        """
        found = searching.find(self._session, query, type, state, None)
        return {"entries": [searching.as_answer(*one) for one in found[:SHOWN_HITS]], "found": len(found)}

    def show(self, title: str) -> dict[str, Any]:
        """One lesson with the evidence of its citations, its relations, its history and its rank.

        Args:
            title: its title, a part that only it has, its handle or its id.
        """
        return seeing.shown_now(self._session, title, None, SHOWN_EVIDENCE)

    def add(
        self,
        title: str,
        text: str,
        type: str | None = None,
        supersedes: list[str] | None = None,
        applies_to: list[str] | None = None,
        section: str | None = None,
        base: str | None = None,
    ) -> dict[str, Any]:
        """Add a lesson that will be needed again. Refused if one of the same or a like title is there.

        Args:
            title: the lesson in one short sentence that could stand in another text; 8 letters at least.
            text: why, and what to do; no secrets.
            type: guideline, pitfall, decision, model or process; by default what the words show.
            supersedes: lessons that are no longer true because of it.
            applies_to: files that it is about.
            section: heading to put it under.
            base: knowledge base, if there are several.
        """
        session = self._session
        places = (tuple(supersedes or ()), tuple(applies_to or ()))
        wish = adding.wish_of(session, (title, text), type, None, section, *places)
        config = adding.one_base(session, base)
        return adding.as_answer(config.name, adding.write(session, config, wish))

    def relate(self, subject: str, predicate: str, object: str, base: str | None = None) -> dict[str, Any]:
        """Say how two lessons, or a lesson and a file, relate.

        Args:
            subject: title, handle or id of a lesson.
            predicate: applies_to (a file), supersedes, extends, requires, conflicts_with, motivated_by, addresses,
                serves_thesis, informs or produced_by.
            object: title, handle or id of a lesson; of applies_to a file.
            base: knowledge base, if there are several.
        """
        relation = linking.related(self._session, subject, predicate, object, base)
        return {"s": relation.s, "p": relation.p, "o": relation.o}

    def status(self) -> dict[str, Any]:
        """How kbd fares: health with reasons, sources, bases, what fades next."""
        return asdict(said_now(self._session))
