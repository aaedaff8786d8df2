"""`kbd adopt`: lessons written in another form become entries, after a diff and a yes."""

from __future__ import annotations

import os
import sys
import time

import click

from kbd.cli.adding import one_base, shelving_of
from kbd.cli.changing import BASE, DRY_RUN, after_writing, opened, reader_of
from kbd.cli.known import chosen_bases
from kbd.cli.output import counted, emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.config import BaseConfig
from kbd.config.policies import entry_types
from kbd.core.adopt.dialects import BY_NAME
from kbd.core.adopt.lesson import Reading
from kbd.errors import UsageError
from kbd.service.adopting import Adoption, Source, Wish, adopt, propose
from kbd.service.undoing import remember
from kbd.store.ledger.database import LEDGER_NAME
from kbd.store.locks import Locks, running_pid
from kbd.store.notes import knowledge_files
from kbd.store.rewrite import Written

LEFT_SHOWN = 40
TEXT_SHOWN = 80


@click.command("adopt")
@click.argument("file", metavar="FILE|FOLDER")
@click.option("--dialect", metavar="NAME", help=f"Instead of what is recognised: {', '.join(BY_NAME)}.")
@click.option("--into", metavar="FILE", help="Add the entries to this knowledge file; FILE stays as it is.")
@BASE
@click.option("--yes", is_flag=True, help="Write without asking.")
@DRY_RUN
@click.option("--json", "as_json", is_flag=True, help="One JSON object; asks nothing, so with --yes or --dry-run.")
@click.pass_obj
def adopt_file(
    session: Session,
    file: str,
    dialect: str | None,
    into: str | None,
    base: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make entries of the lessons in a file: plain bullets, or another tool's form.

    Shows the change as a diff and asks. What is an entry already stays; what cannot become one stays and is named.
    Undated lessons get the day on which git saw their line.
    """
    config = _base(session, file, base, into)
    adoption = propose(_wish(session, config, file, dialect, into), session.today)
    _require_lessons(adoption)
    if not as_json:
        _show(adoption, is_into=into is not None, has_base=config is not None)
    changes = adoption.before != adoption.after or bool(config and adoption.relations)
    if changes and not dry_run:
        if not yes and (as_json or not sys.stdin.isatty()):
            raise UsageError("nobody can be asked here, so nothing was written", hint="--yes writes what was shown")
        changes = yes or click.confirm(f"\nWrite {adoption.path}?", err=True)
    if changes and not dry_run:
        shelving = shelving_of(session, config) if config else None
        writes = adopt(adoption, shelving, Locks(session.state_dir), time.time())
        if config:
            _take_in(session, writes)
    if as_json:
        emit_json(_as_answer(adoption, is_into=into is not None) | {"written": changes and not dry_run})
    elif changes:
        number = sum(len(source.plan.taken) for source in adoption.sources)
        say(f"{counted(number, 'entry')} {'would be written' if dry_run else 'written'} into {adoption.path}")
    return 0


def _base(session: Session, file: str, name: str | None, into: str | None) -> BaseConfig | None:
    """Return the base that takes the entries: the one named, that of the file; None for a file outside of all."""
    if name is not None or into is not None:
        return one_base(session, name)
    real = os.path.realpath(file)
    for base in chosen_bases(session.config, None):
        if real in map(os.path.realpath, knowledge_files(base.files).files):
            return base
    return None


def _wish(session: Session, base: BaseConfig | None, file: str, dialect: str | None, into: str | None) -> Wish:
    return Wish(
        path=os.path.abspath(os.path.expanduser(file)),
        dialect=dialect,
        target=os.path.abspath(os.path.expanduser(into)) if into else None,
        shelving=shelving_of(session, base) if base else None,
        signals=dict(session.config.types),
        reading=Reading(entry_types(session.config), session.config.decay.marker),
    )


def _require_lessons(adoption: Adoption) -> None:
    unknown = [source.path for source in adoption.sources if source.dialect is None and not source.entries]
    if len(unknown) == len(adoption.sources):
        what = "no form of lessons is recognised in it"
        raise UsageError(what, where=unknown[0], hint=f"--dialect names one: {', '.join(BY_NAME)}")


def _show(adoption: Adoption, *, is_into: bool, has_base: bool) -> None:
    for line in adoption.diff(adoption.path):
        emit(safe(line))
    for source in adoption.sources:
        many = len(adoption.sources) > 1
        head = f"{source.path}: " if many else ""
        dialect = source.dialect or ("entries already" if source.entries else "no form of lessons is recognised in it")
        emit(safe(f"{head}{dialect}: {counted(len(source.plan.taken), 'lesson')}"))
        if source.remark:
            emit(safe(f"  no dates from git: {source.remark}"))
        left = _left(source, is_into=is_into)
        for number, why, text in left[:LEFT_SHOWN]:
            emit(safe(f"  left: line {number} ({why}): {text[:TEXT_SHOWN]}"))
        if len(left) > LEFT_SHOWN:
            emit(f"  … and {len(left) - LEFT_SHOWN} more lines left; --json names all")
    for one in adoption.relations:
        remark = "" if has_base else " (not written: the file is in no base)"
        emit(safe(f"  relation: {one.s} {one.p} {one.o}{remark}"))
    for one, why in adoption.refused:
        emit(safe(f"  left: relation {one.s} {one.p} {one.o} ({why})"))
    undated = sum(one.entry.created is None for source in adoption.sources for one in source.plan.taken)
    if undated:
        emit(f"  {counted(undated, 'lesson')} without a date")


def _left(source: Source, *, is_into: bool) -> list[tuple[int, str, str]]:
    """Return what is no lesson: line number, reason, text; of a file whose entries go elsewhere every such line."""
    lines = source.data.decode("utf-8", "surrogateescape").split("\n")
    why = {one.at: one.why for one in source.plan.left}
    if is_into:
        named = {at: why.get(at, "not carried") for at, _ in source.plan.unsaid()}
        why = named | why
    return [(at + 1, why[at], lines[at].strip()) for at in sorted(why)]


def _take_in(session: Session, writes: list[Written]) -> None:
    """Let the ledger know the entries at once, and how to take them back; a running daemon sees them by itself."""
    if not writes or not (session.state_dir / LEDGER_NAME).exists():
        return
    with after_writing("`kbd undo` does not know of it"), opened(session) as (engine, clock):
        if running_pid(session.state_dir) is None:
            engine.sync(clock)
        done = [(one.path, one.before, one.data) for one in writes]
        remember(engine.frame.ledger, "adopt", done, reader_of(session).parse, clock.now, as_one=True)


def _as_answer(adoption: Adoption, *, is_into: bool) -> dict[str, object]:
    """Return the shape of `kbd adopt --json`."""
    return {
        "file": adoption.path,
        "sources": [
            {
                "file": source.path,
                "dialect": source.dialect,
                "adopted": [
                    {
                        "title": one.entry.title,
                        "type": one.entry.type,
                        "created": one.entry.created.isoformat() if one.entry.created else None,
                        "id": one.entry.ident,
                        "ref": one.entry.meta.ref if one.entry.meta else None,
                        "line": one.lesson.first + 1,
                    }
                    for one in source.plan.taken
                ],
                "left": [
                    {"line": number, "why": why, "text": text} for number, why, text in _left(source, is_into=is_into)
                ],
            }
            for source in adoption.sources
        ],
        "relations": [{"s": one.s, "p": one.p, "o": one.o} for one in adoption.relations],
        "refused": [{"s": one.s, "p": one.p, "o": one.o, "why": why} for one, why in adoption.refused],
    }
