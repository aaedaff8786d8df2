"""`kbd lint`."""

from __future__ import annotations

import os

import click

from kbd.cli.output import counted, emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.config import BaseConfig, Config
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
    findings = list(dict.fromkeys(_findings(session.config, files)))
    if as_json:
        emit_json({"problems": [{"code": p.code, "where": p.where, "what": p.what, "hint": p.hint} for p in findings]})
    else:
        for p in findings:
            emit(safe(f"{p.where}: {p.code}: {p.what}; {p.hint}"))
        say(counted(len(findings), "finding") if findings else "no findings")
    return 1 if findings else 0


def _findings(config: Config, files: tuple[str, ...]) -> list[Problem]:
    if not files:
        return [p for base in config.bases for p in lint_base(_scope(config, base))]
    missing = [path for path in files if not os.path.lexists(path)]
    if missing:
        raise UsageError("there is no such file", where=", ".join(missing))
    # Which base a named file belongs to makes no difference: types and marker are the same for all.
    scope = Scope((), "", entry_types(config), config.decay.marker)
    return [p for path in files for p in lint_file(path, scope)]


def _scope(config: Config, base: BaseConfig) -> Scope:
    return Scope(base.files, base.relations, entry_types(config), config.decay.marker)
