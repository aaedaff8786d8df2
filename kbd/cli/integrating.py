"""Hooks in the settings of agents: shown by `kbd init` as a diff and offered, taken out by `kbd detach`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from kbd.cli.output import confirmed, emit, safe, say, short
from kbd.cli.session import Session
from kbd.errors import KbdError
from kbd.service.integrating import Offer, agents, folder, offer, removal, write


def show_offers(session: Session) -> list[Offer]:
    """Print what kbd's hooks would change, or for agents without a folder how to get them; return the changes."""
    emit("\n" + click.style("Hooks that hand lessons to new sessions (optional)", bold=True))
    changes: list[Offer] = []
    for agent in agents(session.env, session.home):
        path = short(agent.path, session.home)
        if not agent.is_there:
            emit(safe(f"  {agent.name}: not here"))
            continue
        try:
            change = offer(agent)
        except KbdError as error:
            emit(safe(f"  {error.message()}"))
            continue
        if change is None:
            emit(safe(f"  {path}: not of the form that hooks can be added to; they are in {folder()}"))
        elif change.before == change.after:
            emit(safe(f"  {path}: there already"))
        else:
            changes.append(change)
            _show(change, path)
    for line in _commands():
        emit(safe(f"  {line}"))
    return changes


def _commands() -> Iterator[str]:
    yield "or the plugin of Claude Code, with MCP server and skill; in a session of it:"
    yield f"  /plugin marketplace add {folder()}"
    yield "  /plugin install kbd@kbd"
    yield f"for other agents: the lines of {os.path.join(folder(), 'AGENTS.md')}"


def write_offers(session: Session, changes: list[Offer]) -> bool:
    """Write the changes one by one; what cannot be written is told, and the others go on. Return whether all were."""
    done = True
    for change in changes:
        try:
            write(change)
            emit(safe(f"wrote {short(change.path, session.home)}"))
        except KbdError as error:
            emit(safe(error.message()))
            done = False
    return done


def take_out(session: Session, *, yes: bool, dry_run: bool) -> bool:
    """Take kbd's hooks out of the agents' settings, after a diff and a yes; return whether all went well."""
    changes: list[Offer] = []
    done = True
    for agent in agents(session.env, session.home):
        try:
            change = removal(agent)
        except KbdError as error:
            say(error.message())
            done = False
            continue
        if change is not None:
            changes.append(change)
            _show(change, short(agent.path, session.home))
    if not changes or dry_run or not (yes or confirmed("Take these hooks out?")):
        return done
    return write_offers(session, changes) and done


def _show(change: Offer, shown: str) -> None:
    for line in change.diff(shown):
        colour = {"+": "green", "-": "red"}.get(line[:1])
        emit("    " + click.style(safe(line), fg=colour))
