"""`kbd sources`: where transcripts lie, and whether kbd reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import click

from kbd.cli.output import ago, counted, emit, emit_json, safe, short, sized
from kbd.cli.session import Session
from kbd.config import Config, SourceConfig
from kbd.errors import FileUnreadable
from kbd.service.agents import Root, find_agents, look_into
from kbd.sources.contract import SourceFormat
from kbd.sources.registry import formats
from kbd.store.heartbeat import read_heartbeat
from kbd.store.locks import running_pid


@dataclass(frozen=True, slots=True)
class Place:
    """A root with the name of the source that reads it; None if it is not configured."""

    root: Root
    source: str | None


def configured_roots(config: Config, session: Session) -> list[Place]:
    """Return all roots of the configured sources, looked into."""
    known = formats()
    return [
        Place(look_into(form, path, source.exclude), source.name)
        for source in config.sources
        if (form := known.get(source.agent or source.format or "")) is not None
        for path in _roots(source, form, session.env, session.home)
    ]


def _roots(source: SourceConfig, form: SourceFormat, env: Mapping[str, str], home: str) -> list[str]:
    return [source.folder] if source.folder else form.default_roots(env, home)


@click.command("sources")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def sources(session: Session, as_json: bool) -> int:
    """List the sources, and the agents found that no source reads."""
    places = configured_roots(session.config, session)
    read = {place.root.path for place in places}
    found = find_agents(formats(), session.env, session.home)
    places += [Place(root, None) for root in found if root.path not in read and root.files]
    watching = _watching(session)
    if as_json:
        emit_json({"watching": watching, "sources": [_as_json(place, watching) for place in places]})
        return 0
    for line in _lines(session, places, watching):
        emit(line)
    return 0


def _watching(session: Session) -> str:
    """Return how a running daemon notices changes; "" if none runs."""
    try:
        if running_pid(session.state_path) is None:
            return ""
        beat = read_heartbeat(session.state_path)
    except FileUnreadable as error:
        return f"unknown: {error.what}"
    return beat.watching if beat else "starting"


def _as_json(place: Place, watching: str) -> dict[str, object]:
    root = place.root
    return {
        "name": place.source,
        "agent": root.agent,
        "root": root.path,
        "exists": root.exists,
        "files": root.files,
        "bytes": root.size,
        "newest_at": root.newest.isoformat() if root.newest else None,
        "configured": place.source is not None,
        "watched": bool(watching) and place.source is not None and root.exists,
        "problems": [f"{problem.where}: {problem.what}" for problem in root.problems],
    }


def _lines(session: Session, places: Sequence[Place], watching: str) -> Iterable[str]:
    now = session.real_now()
    there = {place.source for place in places if place.root.exists}
    for place in sorted(places, key=lambda place: place.source is None):
        if not place.root.exists and place.source in there:  # an agent's other usual place, unused here
            continue
        root = place.root
        name = safe(place.source or root.agent)
        yield f"{click.style(name, bold=True)}  {safe(short(root.path, session.home))}"
        said = f"{counted(root.files, 'file')}, {sized(root.size)}" if root.exists else "not there"
        if root.newest:
            said += f", newest {ago((now - root.newest).total_seconds())} ago"
        yield f"  {said}; {_attention(place, watching)}"
        yield from (f"  {safe(problem.where)}: {safe(problem.what)}; {problem.hint}" for problem in root.problems)


def _attention(place: Place, watching: str) -> str:
    if place.source is None:
        return click.style(f"not read: add `- agent: {place.root.agent}` under sources", fg="yellow")
    if not watching:
        return "read when a daemon runs"
    return f"watched ({safe(watching)})"
