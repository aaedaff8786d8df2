"""`kbd classify`: types for entries without a tag, shown or written into their files."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from kbd.cli.changing import after_writing, opened, reader_of
from kbd.cli.known import chosen_bases
from kbd.cli.output import Column, counted, emit, emit_json, safe, say, table
from kbd.cli.session import Session
from kbd.config import BaseConfig
from kbd.config.policies import entry_types
from kbd.errors import KbdError
from kbd.service.classifying import Untagged, Vocabulary, untagged, write_tags
from kbd.service.undoing import remember
from kbd.store.base_files import read_base
from kbd.store.ledger.database import LEDGER_NAME
from kbd.store.locks import Locks, running_pid
from kbd.store.rewrite import Written


@click.command("classify")
@click.option("--write", is_flag=True, help="Put `[type] ` into the files.")
@click.option("--base", help="Only this base.")
@click.option("--dry-run", is_flag=True, help="With --write: only say what would be written.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def classify(session: Session, write: bool, base: str | None, dry_run: bool, as_json: bool) -> int:
    """Give entries without a tag the type that their words show, with the phrase that showed it."""
    found: list[tuple[str, Untagged]] = []
    writes: list[Written] = []
    code = 0
    for config in chosen_bases(session.config, base):
        ones, failed = _classified(session, config, writes if write and not dry_run else None)
        found += [(config.name, one) for one in ones]
        code = max(code, failed)
    if as_json:
        emit_json({"entries": [_as_json(name, one) for name, one in found], "written": write and not dry_run})
    else:
        _print([one for _, one in found])
        if found and not write:
            say("`kbd classify --write` puts these types into the files")
    if write and not dry_run:
        say(f"{counted(len(found), 'entry')} tagged")
        _take_in(session, writes)
    return code


def _classified(session: Session, base: BaseConfig, writes: list[Written] | None) -> tuple[list[Untagged], int]:
    """Return the untagged entries of a base's live files, or those that were tagged, and the exit code so far.

    Tags are written if there is a list for the writes.
    """
    words = Vocabulary(entry_types(session.config), dict(session.config.types), session.config.decay.marker)
    files, problems = read_base(base.files, {})
    for problem in problems:
        say(f"{problem.where}: {problem.what}; {problem.hint}")
    found: list[Untagged] = []
    code = 1 if problems else 0
    for file in files:
        if file.archive or file.data is None:
            continue
        ones = untagged(file.path, file.data, words)
        for one in ones:
            if one.edit is None:
                say(f"{one.path}:{one.line}: {one.title}: a tag would change how it is read; write it by hand")
        if writes is not None and any(one.edit is not None for one in ones):
            try:
                ones, written = write_tags(file.path, words, Locks(session.state_dir), time.time())
            except KbdError as error:
                say(error.message())
                code = max(code, error.exit_code)
                continue
            writes += [written] if written else []
        found += [one for one in ones if one.edit is not None or writes is None]
    return found, code


def _take_in(session: Session, writes: list[Written]) -> None:
    """Let the ledger know the tags at once, and how to take them back; a running daemon sees them by itself."""
    if not (session.state_dir / LEDGER_NAME).exists():
        return
    with after_writing("`kbd undo` does not know of it"), opened(session) as (engine, clock):
        parse = reader_of(session).parse
        done = [(one.path, one.before or b"", one.data) for one in writes]
        remember(engine.frame.ledger, "classify", done, parse, clock.now)
        if running_pid(session.state_dir) is None:
            engine.sync(clock)


def _as_json(base: str, one: Untagged) -> dict[str, object]:
    source = "signal" if one.signal else "default"
    return {"title": one.title, "base": base, "file": one.path, "line": one.line, "type": one.type,
            "type_source": source, "signal": one.signal}  # fmt: skip


def _print(found: list[Untagged]) -> None:
    if not found:
        say("no entry is without a tag")
        return
    for line in table([Column("type"), Column("signal"), Column("place"), Column("title")], list(_rows(found))):
        emit(line)


def _rows(found: list[Untagged]) -> Iterator[list[str]]:
    for one in found:
        yield [one.type, safe(one.signal or "-"), safe(f"{one.path}:{one.line}"), safe(one.title)]
