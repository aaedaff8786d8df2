"""`kbd doctor`: checks of the whole installation, each finding with its remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from kbd import __version__
from kbd.cli.output import counted, emit, emit_json, safe, short, terminal_width, wrapped
from kbd.cli.service_file import look, place_of
from kbd.cli.session import Session
from kbd.cli.sources import configured_roots
from kbd.config import BaseConfig, Config, GraphConfig
from kbd.config.paths import fixed_folder
from kbd.config.policies import entry_types
from kbd.errors import KbdError, UsageError
from kbd.service.doctor.check import Check, Verdict, finding, fine, note
from kbd.service.doctor.graphs import MANY, GraphSeen, check_graph
from kbd.service.doctor.ground import check_file_systems, check_state, check_versions
from kbd.service.doctor.reading import Seen, check_base, check_sources
from kbd.service.doctor.running import check_daemon, check_inotify, check_ledger
from kbd.service.graph.reading import Place
from kbd.service.graph.schemas import Faulty, load_schema
from kbd.service.graph.size import measure
from kbd.store.ledger.lessons import entries_of
from kbd.store.ledger.survey import base_rows
from kbd.store.locks import running_pid

_NAME_WIDTH = 11
_INDENT = 2 + _NAME_WIDTH + 1
_SIGNS = {Verdict.OK: ("✓", "green"), Verdict.NOTE: ("·", "cyan"), Verdict.FINDING: ("✗", "red")}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def doctor(session: Session, as_json: bool) -> int:
    """Check the installation; exit 1 with findings."""
    checks = list(_checks(session))
    findings = sum(check.verdict is Verdict.FINDING for check in checks)
    if as_json:
        emit_json(
            {"checks": [asdict(check) | {"verdict": check.verdict.value} for check in checks], "findings": findings}
        )
    else:
        _print(session, checks, findings)
    return 1 if findings else 0


def _print(session: Session, checks: Sequence[Check], findings: int) -> None:
    columns = terminal_width()
    for check in checks:
        sign, colour = _SIGNS[check.verdict]
        where = f"{short(check.where, session.home)}: " if check.where else ""
        said = wrapped(f"{check.name:<{_NAME_WIDTH}} {safe(f'{where}{check.what}')}", columns, _INDENT)
        emit(click.style(sign, fg=colour) + said[1:])
        if check.remedy:
            emit(wrapped(f"{'':{_NAME_WIDTH}} → {safe(check.remedy)}", columns, _INDENT + 2))
    emit()
    emit(click.style(counted(findings, "finding"), fg="red") if findings else click.style("all well", fg="green"))


def _checks(session: Session) -> Iterator[Check]:
    config = None
    try:
        config = session.config
    except UsageError as error:
        for line in error.message().splitlines():
            what, _, hint = line.partition("; ")
            yield finding("config", "", short(what, session.home), hint or "mend this line")
    else:
        yield fine("config", str(config.path or "built-in defaults"), "is sound")
        yield from (note("config", problem.where, problem.what, problem.hint) for problem in config.problems)
    yield from check_state(session.state_path, os.getuid())
    yield from check_file_systems(str(session.state_path), _written_folders(config))
    yield from check_ledger(session.state_path)
    every = config.scan.every_seconds if config else 60
    yield from check_daemon(session.state_path, session.real_now(), every, __version__)
    if config is not None:
        yield from _checks_of(session, config)
    yield from check_versions(__version__)


def _written_folders(config: Config | None) -> list[str]:
    bases = config.bases if config else ()
    return list(dict.fromkeys(fixed_folder(path) for base in bases for path in (*base.files, base.relations)))


def _checks_of(session: Session, config: Config) -> Iterator[Check]:
    places = configured_roots(config, session)
    folders = [*(place.root.path for place in places if place.root.exists), *_written_folders(config)]
    yield from check_inotify(list(dict.fromkeys(folders)))
    for base in config.bases:
        yield from check_base(base.name, base.files, entry_types(config), config.decay.marker)
        if base.graph is not None:
            yield from _check_graph(session, base, base.graph)
    yield from check_sources(
        [
            Seen(place.source or "", place.root.path, place.root.exists, place.root.files, place.root.problems)
            for place in places
        ]
    )
    try:
        yield from _check_service(session, config)
    except KbdError as error:
        yield note("service", error.where, error.what, error.hint)


def _check_graph(session: Session, base: BaseConfig, graph: GraphConfig) -> Iterator[Check]:
    if not os.path.exists(graph.log) or not session.state_path.exists():
        yield note("graph", graph.log, "not there yet", f"`kbd graph init --base {base.name}`")
        return
    try:
        size = measure(Place(graph.log, graph.schema, session.state_dir), load_schema(graph.schema), MANY)
        with session.reading() as ledger:
            entries = base_rows(ledger.db).get(base.name) if ledger else None
            held = len(entries_of(ledger.db, entries.id)) if ledger and entries else 0
    except Faulty as fault:
        yield from (finding("graph", f"{graph.schema}: {one.where}", one.what, one.hint) for one in fault.problems)
    except KbdError as error:
        yield finding("graph", error.where or graph.log, error.what, error.hint or "`kbd graph validate`")
    else:
        seen = GraphSeen(
            base.name, graph.log, size.entities, size.relations, size.hub, size.reach, size.writers, entries=held
        )
        yield from check_graph(seen)


def _check_service(session: Session, config: Config) -> Iterator[Check]:
    """Check the user's own service; one that runs in the foreground needs none."""
    found = look(session, config, place_of(session, system=False, user=None))
    where = found.place.path
    if found.data is None:
        what = "kbd is no service: it ends with the terminal, and does not start by itself"
        is_alone = running_pid(session.state_path) is None
        yield note("service", where, what, "" if is_alone else "`kbd service install`")
        return
    if not found.is_current:
        yield finding("service", where, "is not what the configuration asks for now", "`kbd service install`")
    if not found.state.enabled and found.state.active != "unknown":
        yield finding("service", where, "does not start by itself", "`kbd service install`")
    if found.state.active == "unknown":
        yield note("service", where, f"the service manager does not answer: {found.state.detail}")
    if found.is_current:
        yield fine("service", where, f"is what the configuration asks for; {found.state.active}")
