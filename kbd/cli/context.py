"""`kbd context`, `kbd suppressed`: what the next session should know, and what it is not told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import click

from kbd.cli.known import chosen_bases, recalled_relations
from kbd.cli.output import Column, counted, emit, emit_json, safe, say, table
from kbd.cli.session import Session
from kbd.config import BaseConfig, Config
from kbd.config.policies import entry_types
from kbd.core.rank import Wanted
from kbd.core.relate import name_file
from kbd.errors import UsageError
from kbd.service.context import Book, Chosen, Context, Library, Reader, Request, Suppressed, assemble, terms
from kbd.store.knowledge_paths import git_root
from kbd.store.ledger import Ledger
from kbd.store.ledger.lessons import entries_of
from kbd.store.ledger.survey import base_rows

BUDGET = 2000
LEFT_SHOWN = 10
NEVER_RUN = "nothing was read yet; `kbd run`, or once: `kbd run --once`"
FILES = click.option("--file", "files", multiple=True, metavar="FILE", help="A file that the session works on.")
TYPES = click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type.")
STAGE = click.option("--stage", metavar="STAGE", help="Only the types of a stage: plan, build, review.")
QUERY = click.option("--query", default="", metavar="TEXT", help="What the session is about.")
BASE = click.option("--base", help="Only this base.")
BUDGET_OPTION = click.option(
    "--budget", type=click.IntRange(min=1), default=BUDGET, metavar="TOKENS", help=f"How much may be told; {BUDGET}."
)
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.command("context")
@FILES
@TYPES
@STAGE
@QUERY
@BUDGET_OPTION
@BASE
@click.option("--explain", is_flag=True, help="Show the terms of each score, and what did not fit.")
@JSON
@click.pass_obj
def context(
    session: Session,
    files: tuple[str, ...],
    types: tuple[str, ...],
    stage: str | None,
    query: str,
    budget: int,
    base: str | None,
    explain: bool,
    as_json: bool,
) -> int:
    """Print what the next session should know: ranked entries that fit the budget, as Markdown with handles.

    Changes no counter. Without --base, the bases are those of the working directory.
    """
    wanted = wanted_of(session.config, files, types, stage, query)
    found = gather(session, Request(wanted, budget), base)
    if as_json:
        emit_json(as_answer(found, budget, explain=explain))
    elif explain:
        for line in _explained(found, budget):
            emit(line)
    elif found.chosen:
        emit(found.text().removesuffix("\n"))
    else:
        say("nothing to hand out; `kbd suppressed` says why")
    return 0


@click.command("suppressed")
@FILES
@TYPES
@STAGE
@QUERY
@BUDGET_OPTION
@BASE
@JSON
@click.pass_obj
def suppressed(
    session: Session,
    files: tuple[str, ...],
    types: tuple[str, ...],
    stage: str | None,
    query: str,
    budget: int,
    base: str | None,
    as_json: bool,
) -> int:
    """List the entries that `kbd context` with the same options does not hand out, and why."""
    wanted = wanted_of(session.config, files, types, stage, query)
    found = gather(session, Request(wanted, budget), base)
    if as_json:
        emit_json({"entries": [_left(one) for one in found.suppressed()]})
        return 0
    for line in _suppressed(found.suppressed()):
        emit(line)
    if not found.suppressed():
        say("nothing is held back")
    return 0


def wanted_of(
    config: Config, files: Sequence[str], types: Sequence[str], stage: str | None, query: str, cwd: str | None = None
) -> Wanted:
    """Return what is asked for; raises UsageError for unknown types and stages.

    Args:
        config: names types and stages.
        files: paths, relative to `cwd`.
        types: of entries; none: all, or those of the stage.
        stage: adds its types.
        query: words.
        cwd: the session's working directory, this process's by default.
    """
    known = entry_types(config)
    chosen = {name.lower() for name in types}
    if not chosen <= known:
        named = ", ".join(sorted(map(repr, chosen - known)))
        raise UsageError(f"no type is named {named}", hint=f"known: {', '.join(sorted(known))}")
    if stage is not None:
        if stage not in config.stages:
            raise UsageError(f"no stage is named {stage!r}", hint=f"known: {', '.join(sorted(config.stages))}")
        chosen |= {name.lower() for name in config.stages[stage]}
    names = tuple(file_names(path, cwd or os.getcwd()) for path in files)
    return Wanted(names, frozenset(chosen) if types or stage else None, query)


def file_names(path: str, cwd: str) -> tuple[str, ...]:
    """Return the names a file may have in a relation: relative to its git root, and absolute.

    The root is that of the file itself, so a file in another work tree of the repository has the same name.
    """
    spelled = os.path.join(cwd, os.path.expanduser(path)).replace("\0", "")
    paths = dict.fromkeys([os.path.normpath(spelled), os.path.realpath(spelled)])
    relative = (name_file(one, cwd, git_root(os.path.dirname(one))) for one in paths)
    return tuple(dict.fromkeys(filter(None, (*relative, *paths))))


def gather(
    session: Session,
    request: Request,
    base: str | None = None,
    cwd: str | None = None,
    tell: Callable[[str], None] = say,
) -> Context:
    """Return the context of a base, or of those that a working directory belongs to; empty if nothing was read yet.

    `tell` gets what a person should know beside it.
    """
    bases = chosen_bases(session.config, base) if base else bases_of(session.config, cwd or os.getcwd())
    with session.reading() as ledger:
        if ledger is None:
            tell(NEVER_RUN)
            return Context()
        books = read_books(session, ledger, bases, tell)
    return assemble(
        Library.of(books), request, session.today, Reader(entry_types(session.config), session.config.decay.marker)
    )


def bases_of(config: Config, cwd: str) -> list[BaseConfig]:
    """Return the bases that a session in a working directory earns for: those limited to other projects are not its."""
    places = {os.path.normpath(cwd), os.path.realpath(cwd)}
    places |= {root for place in set(places) if (root := git_root(place))}
    return [
        base
        for base in config.bases
        if not base.projects
        or any(
            place == project or place.startswith(project.rstrip("/") + "/")
            for place in places
            for project in base.projects
        )
    ]


def read_books(
    session: Session, ledger: Ledger, bases: Sequence[BaseConfig], tell: Callable[[str], None] = say
) -> list[Book]:
    """Return the bases with all their entries and relations; a relations file that cannot be read is told."""
    rows = base_rows(ledger.db)
    books = []
    for base in bases:
        if base.name in rows:
            related = recalled_relations(session, base.relations)
            if related.relations is None:
                for problem in related.problems:
                    tell(f"{problem.where}: {problem.what}; ranked without relations")
            books.append(Book(base.name, entries_of(ledger.db, rows[base.name].id), related.relations or ()))
    return books


def as_answer(found: Context, budget: int, *, explain: bool) -> dict[str, object]:
    """Return the shape of `kbd context --json`."""
    answer: dict[str, object] = {
        "entries": [_chosen(one) for one in found.chosen],
        "tokens": found.tokens,
        "budget": budget,
        "text": found.text(),
    }
    return answer | ({"suppressed": [_left(one) for one in found.suppressed()]} if explain else {})


def _chosen(one: Chosen) -> dict[str, object]:
    return {
        "title": one.row.title,
        "handle": one.row.handle,
        "type": one.row.type,
        "base": one.base,
        "file": one.row.file,
        "line": one.row.line,
        "score": one.ranked.total,
        "terms": terms(one.ranked),
        "tokens": one.tokens,
        "text": one.handed.text,
        "conflicts_with": [handle for handle, _ in one.handed.conflicts],
    }


def _left(one: Suppressed) -> dict[str, object]:
    row = one.row
    return {
        "title": row.title,
        "handle": row.handle,
        "type": row.type,
        "state": row.state.value,
        "base": one.base,
        "reason": one.reason,
    }


def _explained(found: Context, budget: int) -> Iterator[str]:
    all_names = ("relation", "hop", "title", "text", "recency", "refs", "exploration")
    names = [name for name in all_names if any(getattr(one.ranked.score, name) for one in found.chosen)]
    heads = [Column("handle"), Column("score", "right"), *(Column(name, "right") for name in names)]
    rows = []
    for one in found.chosen:
        terms = [f"{getattr(one.ranked.score, name):.2f}" for name in names]
        rows.append([one.row.handle, f"{one.ranked.total:.2f}", *terms, str(one.tokens), safe(one.row.title)])
    if rows:
        yield from table([*heads, Column("tokens", "right"), Column("entry")], rows)
    yield f"{counted(len(rows), 'entry')}, {found.tokens} of {budget} tokens"
    left = found.suppressed()
    if left:
        yield ""
        yield from _suppressed(left[:LEFT_SHOWN])
    if len(left) > LEFT_SHOWN:
        yield f"… and {len(left) - LEFT_SHOWN:,} more; `kbd suppressed` names all"


def _suppressed(entries: Sequence[Suppressed]) -> Iterator[str]:
    rows = [[one.row.handle, safe(one.reason), safe(one.row.title)] for one in entries]
    if rows:
        yield from table([Column("handle"), Column("why"), Column("title")], rows)
