"""`kbd add`: a new entry, checked and dated."""

from __future__ import annotations

import os
import sys
import time

import click

from kbd.cli.changing import BASE, DRY_RUN
from kbd.cli.known import chosen_bases
from kbd.cli.output import emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.config import BaseConfig
from kbd.config.policies import entry_types
from kbd.core import drafting
from kbd.core.classify import classify
from kbd.core.relate import name_file
from kbd.errors import UsageError
from kbd.service.adding import Added, Wish, add
from kbd.store.knowledge_paths import git_root
from kbd.store.ledger.database import LEDGER_NAME
from kbd.store.locks import Locks, running_pid
from kbd.store.standing import Shelving

MAX_STDIN = 1 << 20


@click.command("add")
@click.argument("words", nargs=-1, metavar="TITLE [TEXT]")
@click.option("--type", "type_", metavar="TYPE", help="Its type; default: what its words show.")
@click.option("--title", help="The title, instead of the first argument.")
@click.option("--text", help="The text, instead of the second argument; - reads it from stdin.")
@click.option("--file", "file", metavar="FILE", help="A knowledge file of the base; default: where its like stand.")
@click.option("--section", metavar="HEADING", help="Default: where its like stand. A new one is made.")
@click.option("--supersedes", multiple=True, metavar="TITLE|HANDLE|ID", help="An entry that it takes the place of.")
@click.option("--applies-to", multiple=True, metavar="FILE", help="A file that it is about.")
@click.option("--distinct", is_flag=True, help="It is another lesson than the one of a near-same title.")
@BASE
@DRY_RUN
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def add_entry(
    session: Session,
    words: tuple[str, ...],
    type_: str | None,
    title: str | None,
    text: str | None,
    file: str | None,
    section: str | None,
    supersedes: tuple[str, ...],
    applies_to: tuple[str, ...],
    distinct: bool,
    base: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Add an entry to a knowledge file, dated today, and print its handle.

    Refused (exit 6): a title that is there already, or nearly; words in which a secret seems to stand.
    """
    given = _given(words, title, text)
    wish = wish_of(session, given, type_, file, section, supersedes, applies_to, is_distinct=distinct)
    config = one_base(session, base)
    added = write(session, config, wish, dry_run=dry_run)
    if as_json:
        emit_json(as_answer(config.name, added))
    else:
        emit(added.handle)
        said = "would be added to" if dry_run else "added to"
        section_said = f" ({added.entry.section})" if added.entry.section else ""
        say(f"{said} {added.path}:{added.entry.line}{section_said}")
        if dry_run:
            for line in added.block.decode("utf-8", "replace").splitlines():
                emit(safe(line))
    return 0


def _given(words: tuple[str, ...], title: str | None, text: str | None) -> tuple[str, str]:
    """Return title and text, however they are given."""
    left = list(words)
    if title is None:
        if not left:
            raise UsageError("an entry needs a title", hint='kbd add "TITLE" "TEXT" --type pitfall')
        title = left.pop(0)
    if text is None:
        text = left.pop(0) if left else ""
    if left:
        raise UsageError(f"what is {left[0]!r}?", hint="put title and text in quotes")
    return title, sys.stdin.read(MAX_STDIN) if text == "-" else text


def wish_of(
    session: Session,
    given: tuple[str, str],
    type_: str | None,
    file: str | None,
    section: str | None,
    supersedes: tuple[str, ...],
    applies_to: tuple[str, ...],
    *,
    is_distinct: bool = False,
) -> Wish:
    """Return what shall be added; raises UsageError for an unknown type or path, Refused for the words."""
    title, text = given
    places = [("file", file or ""), ("section", section or ""), *(("path", path) for path in applies_to)]
    drafting.refuse_secrets([("title", title), ("text", text), *places])
    types = entry_types(session.config)
    name = (type_ or classify(f"{title}\n{text}", session.config.types).type).lower()
    if name not in types:
        raise UsageError(f"no type is named {type_!r}", hint=f"known: {', '.join(sorted(types))}")
    return Wish(
        words=drafting.draft(name, title, text),
        file=os.path.abspath(os.path.expanduser(file)) if file else None,
        section=section,
        supersedes=supersedes,
        applies_to=tuple(map(relation_name, applies_to)),
        is_distinct=is_distinct,
    )


def relation_name(path: str) -> str:
    """Return the name that a file has in relations; raises UsageError for what can be no file's name."""
    here = os.getcwd()
    full = os.path.normpath(os.path.join(here, os.path.expanduser(path)))
    name = name_file(full, here, git_root(os.path.dirname(full)))
    if not name:
        raise UsageError(f"{path!r} is no file's name")
    return name


def one_base(session: Session, name: str | None) -> BaseConfig:
    """Return the base to write to: the one named, else the only one of the working directory."""
    from kbd.cli.context import bases_of  # noqa: PLC0415 - brings the ranking, which a named base does without

    bases = chosen_bases(session.config, name) if name else bases_of(session.config, os.getcwd())
    if len(bases) != 1:
        known = ", ".join(base.name for base in bases or session.config.bases)
        raise UsageError("which base?" if bases else "no base is for this folder", hint=f"--base: {known}")
    return bases[0]


def shelving_of(session: Session, base: BaseConfig) -> Shelving:
    """Return where a base keeps its entries."""
    config = session.config
    return Shelving(base.name, base.files, base.relations, entry_types(config), config.decay.marker)


def write(session: Session, base: BaseConfig, wish: Wish, *, dry_run: bool = False) -> Added:
    """Add an entry, and let the ledger know at once; a running daemon sees it by itself."""
    locks = Locks(session.state_dir)
    added = add(shelving_of(session, base), wish, locks, session.today, time.time(), dry_run=dry_run)
    if not dry_run and (session.state_dir / LEDGER_NAME).exists() and running_pid(session.state_dir) is None:
        from kbd.cli.changing import after_writing, opened  # noqa: PLC0415 - brings the engine

        with after_writing("counted from the next pass on"), opened(session) as (engine, clock):
            engine.sync(clock)
    return added


def as_answer(base: str, added: Added) -> dict[str, object]:
    """Return the shape of `kbd add --json`."""
    entry = added.entry
    return {
        "handle": added.handle,
        "title": entry.title,
        "type": entry.type,
        "base": base,
        "file": added.path,
        "line": entry.line,
        "section": entry.section,
        "relations": [{"s": r.s, "p": r.p, "o": r.o} for r in added.relations],
    }
