"""What the commands of `kbd graph` start from: where the graph is, its schema, the knowledge beside it, who asks."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from kbd.cli.output import counted, emit, emit_json, say
from kbd.cli.session import Session
from kbd.core.bridge import Bridged, Knowledge
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.moments import day_of, moment_of
from kbd.core.operations import Entity
from kbd.core.redact import printable
from kbd.core.schema import Schema
from kbd.errors import UsageError
from kbd.service.graph.reading import Place, opened
from kbd.service.graph.refusal import GraphRefused
from kbd.service.graph.schemas import load_schema
from kbd.store.confined import confined

if TYPE_CHECKING:
    from kbd.core.contracts import Contract

DEFAULT_LOG = "memory/ontology/graph.jsonl"
DEFAULT_SCHEMA = "memory/ontology/schema.yaml"
FAULTS_SHOWN = 3


@dataclass
class Ground:
    """One call of a command of `kbd graph`."""

    session: Session
    log: str | None
    schema_path: str | None
    base: str | None
    skill: str | None = None
    at: str | None = None
    as_json: bool = False

    @cached_property
    def place(self) -> Place:
        """Where the graph is: the options, each inside the working directory; else that of the base; else the default.

        Raises:
            Refused: a path lies outside.
            UsageError: no base of the name, or one without a graph.
        """
        log, schema = DEFAULT_LOG, DEFAULT_SCHEMA
        if self.base is not None:
            from kbd.cli.known import chosen_bases  # noqa: PLC0415 - the ledger and all that reads it

            config = chosen_bases(self.session.config, self.base)[0].graph
            if config is None:
                raise UsageError(f"the base {self.base!r} has no graph", hint="set `graph: {log, schema}` in its base")
            return Place(
                confined(self.log, os.getcwd(), "the log") if self.log else config.log,
                confined(self.schema_path, os.getcwd(), "the schema") if self.schema_path else config.schema,
                self.session.state_dir,
            )
        return Place(
            confined(self.log or log, os.getcwd(), "the log"),
            confined(self.schema_path or schema, os.getcwd(), "the schema"),
            self.session.state_dir,
        )

    @cached_property
    def schema(self) -> Schema:
        """The schema of the graph; raises Faulty."""
        return load_schema(self.place.schema)

    @cached_property
    def contract(self) -> Contract | None:
        """The contract of the skill named by `--as`; raises Faulty, Refused."""
        if self.skill is None:
            return None
        from kbd.service.graph.skills import load_contract  # noqa: PLC0415 - a skill is seldom named

        return load_contract(confined(self.skill, os.getcwd(), "the skill"), self.schema)

    def knowledge(self) -> Knowledge:
        """Read the entries of all bases, or of the one named, with their relations."""
        from kbd.cli.known import chosen_bases, known_bases  # noqa: PLC0415 - the ledger and all that reads it

        with self.session.reading() as ledger:
            bases = known_bases(self.session, ledger, chosen_bases(self.session.config, self.base))
        entries = [entry for base in bases for entry in base.entries]
        return Knowledge(entries, [relation for base in bases for relation in base.related.relations or ()])

    @contextmanager
    def asking(self) -> Iterator[View]:
        """Hold the graph for questions, as it is or as it was at `--at`."""
        if self.at is not None:
            from kbd.service.graph.past import as_of  # noqa: PLC0415 - for going back only

            moment = moment_given(self.at)
            yield Bridged(as_of(self.place, self.schema, moment), self.knowledge)
            return
        with opened(self.place, self.schema, self.knowledge) as graph:
            lost = [(line, fault) for line, fault, _ in graph.faults if fault.code in ("bad_json", "torn_line")]
            if lost:
                lines = [str(line) for line, _ in lost[:FAULTS_SHOWN]] + ["…"] * (len(lost) > FAULTS_SHOWN)
                say(f"{counted(len(lost), 'unreadable line')} ({', '.join(lines)}): `kbd graph validate` says more")
            yield graph.view

    def require(self, entity: Entity) -> Entity:
        """Return an entity that the skill may read; raises GraphRefused for another."""
        if self.contract is None:
            return entity
        from kbd.core.contracts import read_problem  # noqa: PLC0415 - ditto

        problem = read_problem(self.contract, self.schema, entity)
        if problem is not None:
            raise GraphRefused([problem])
        return entity

    def readable(self, entities: Iterable[Entity]) -> Iterator[Entity]:
        """Yield the entities that the skill may read; without a skill all of them."""
        for entity in entities:
            if self.contract is None or self.contract.may_read(self.schema.canonical_type(entity.type)):
                yield entity

    def answer(self, name: str, value: object) -> None:
        """Print an answer: as the skill does, or with `--json` under a name in a versioned object."""
        if self.as_json:
            emit_json({name: value})
        else:
            emit_indented(value)

    def stamp(self) -> str:
        """Return the timestamp of what is written now, as the skill writes it."""
        return self.session.now().isoformat()


def moment_given(text: str) -> datetime:
    """Return the time that `--at` means; of a date the end of that day.

    Raises:
        UsageError: it is no time.
    """
    moment = moment_of(text)
    if moment is None:
        raise UsageError(f"--at: {text!r} is no time", hint="write 2026-06-11 or 2026-06-11T09:30:00Z")
    return moment + timedelta(days=1, microseconds=-1) if day_of(text) else moment.astimezone(UTC)


def emit_indented(value: object) -> None:
    """Print JSON over several lines; with escapes where a terminal would obey it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    plain = (sys.stdout.encoding or "").lower().startswith("utf") and printable(text, keep_lines=True) == text
    emit(text if plain else json.dumps(value, indent=2))


def warn(warnings: tuple[Problem, ...]) -> None:
    """Print warnings on stderr."""
    for one in warnings:
        say(f"warning: {one.where}: {one.what}; {one.hint}")


def json_object(text: str, option: str) -> Mapping[str, Any]:
    """Return the JSON object that an option gives.

    Raises:
        UsageError: it is none. The text is not repeated: it may hold what no log should.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(f"{option} is no JSON{where}", hint="""write '{"name": "Alice"}'""") from error
    if not isinstance(value, dict):
        raise UsageError(f"{option} is no JSON object", hint="""write '{"name": "Alice"}'""")
    return value


Command = Callable[..., Any]


def on_graph(function: Command) -> Command:
    """Make a command of a function that takes a `Ground` first: add the options of all commands of `kbd graph`."""

    def run(*, log: str | None, schema_path: str | None, base: str | None, as_json: bool, **rest: Any) -> Any:
        session = click.get_current_context().obj
        skill, at = rest.pop("skill", None), rest.pop("at", None)
        return function(Ground(session, log, schema_path, base, skill, at, as_json), **rest)

    command: Command = functools.update_wrapper(run, function)
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object."),
        click.option("--base", help="The graph of this base of the configuration."),
        click.option("--schema", "-s", "schema_path", metavar="FILE", help=f"Default {DEFAULT_SCHEMA}."),
        click.option("--graph", "-g", "log", metavar="FILE", help=f"Default {DEFAULT_LOG}."),
    ):
        command = option(command)
    return command


def for_skill(command: Command) -> Command:
    """Add the option that names the skill on whose behalf a command runs."""
    return click.option("--as", "skill", metavar="SKILL.md", help="Hold to the contract of this skill.")(command)
