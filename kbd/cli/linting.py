"""`kbd lint`."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from kbd.cli.output import counted, emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.config import BaseConfig, GraphConfig
from kbd.config.policies import entry_types
from kbd.core.model import Problem
from kbd.errors import UsageError
from kbd.service.lint import Scope, lint_base, lint_file


@click.command("lint")
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def lint(session: Session, files: tuple[str, ...], as_json: bool) -> int:
    """Find what is wrong in knowledge and relations files: all of them, or only FILES. Exit 1 with findings."""
    findings = list(dict.fromkeys(_findings(session, files)))
    if as_json:
        emit_json({"problems": [{"code": p.code, "where": p.where, "what": p.what, "hint": p.hint} for p in findings]})
    else:
        for p in findings:
            emit(safe(f"{p.where}: {p.code}: {p.what}; {p.hint}"))
        say(counted(len(findings), "finding") if findings else "no findings")
    return 1 if findings else 0


def _findings(session: Session, files: tuple[str, ...]) -> list[Problem]:
    config = session.config
    if not files:
        found = [p for base in config.bases for p in lint_base(_scope(session, base))]
        return found + [p for base in config.bases if base.graph for p in _of_graph(session, base, base.graph)]
    missing = [path for path in files if not os.path.lexists(path)]
    if missing:
        raise UsageError("there is no such file", where=", ".join(missing))
    # Which base a named file belongs to makes no difference: types and marker are the same for all.
    scope = Scope((), "", entry_types(config), config.decay.marker, session.today)
    return [p for path in files for p in lint_file(path, scope)]


def _scope(session: Session, base: BaseConfig) -> Scope:
    config = session.config
    return Scope(base.files, base.relations, entry_types(config), config.decay.marker, session.today)


def _of_graph(session: Session, base: BaseConfig, graph: GraphConfig) -> list[Problem]:
    """Return what violates the schema in the log of a base's typed graph."""
    from kbd.cli.graph.ground import Ground  # noqa: PLC0415 - the graph is not needed to lint knowledge files
    from kbd.service.graph.checking import check_graph  # noqa: PLC0415 - as above
    from kbd.service.graph.schemas import Faulty, load_schema  # noqa: PLC0415 - as above

    if not os.path.exists(graph.log):
        return []
    ground = Ground(session, None, None, base.name)
    try:
        found = check_graph(ground.place, load_schema(graph.schema), session.now(), ground.knowledge)
    except Faulty as exc:
        return [replace(p, where=f"{graph.schema}: {p.where}") for p in exc.problems]
    folder = os.path.dirname(graph.log)
    return [replace(p, where=os.path.join(folder, p.where)) for p in found.problems]
