"""`kbd set`, `pin`, `restore` and `forget`: what a person decides about one entry.

A decision goes into the ledger at once. Files follow by this command, or, where a daemon runs or kbd is paused, by
its next pass: file and ledger have their own locks, so nothing is told to the daemon.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

import click

from kbd.cli.known import chosen_bases, known_bases
from kbd.cli.output import confirmed, emit, safe, say
from kbd.cli.session import Session
from kbd.config.policies import entry_types
from kbd.core.model import State
from kbd.errors import ChangedUnderneath, KbdError, Refused, UsageError
from kbd.service import correct as decisions
from kbd.service import report
from kbd.service.correct import Wish
from kbd.service.report import Listed
from kbd.store.ledger import lessons
from kbd.store.ledger.evidence import former_names
from kbd.store.locks import running_pid
from kbd.store.pausing import pause_in_force

if TYPE_CHECKING:
    from kbd.engine import Clock, Engine

NEVER_RUN = "nothing was read yet; `kbd run`, or once: `kbd run --once`"
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would change.")
BASE = click.option("--base", help="Only this base.")
NAME = click.argument("name", metavar="TITLE|HANDLE|ID")


MOST_REF = 99_999_999
"""A number of ten digits in a file is read as none: so far nothing counts up from here."""


@click.command("set")
@NAME
@click.option("--ref", type=click.IntRange(min=0, max=MOST_REF), help="The number that shall stand there.")
@click.option("--last", metavar="DAY|none", help="Day of the last citation.")
@click.option("--state", type=click.Choice([state.value for state in State]), help="The state.")
@BASE
@DRY_RUN
@click.pass_obj
def set_values(
    session: Session, name: str, ref: int | None, last: str | None, state: str | None, base: str | None, dry_run: bool
) -> int:
    """Correct the number, the day or the state of an entry.

    It holds: further citations count on top of it.
    """
    if ref is None and last is None and state is None:
        raise UsageError("nothing to set", hint="give --ref, --last or --state")
    day = None if last in (None, "none") else _day(str(last))
    wish = Wish(ref=ref, last=day, clear_last=last == "none", state=State(state) if state else None)
    return _decide(session, find(session, name, base), wish, dry_run=dry_run)


@click.command("pin")
@NAME
@click.option("--off", is_flag=True, help="Let it fade again.")
@BASE
@DRY_RUN
@click.pass_obj
def pin(session: Session, name: str, off: bool, base: str | None, dry_run: bool) -> int:
    """Exempt an entry from fading."""
    return _decide(session, find(session, name, base), Wish(pinned=not off), dry_run=dry_run)


@click.command("restore")
@NAME
@BASE
@DRY_RUN
@click.pass_obj
def restore(session: Session, name: str, base: str | None, dry_run: bool) -> int:
    """Bring an archived entry back to its file, active from today."""
    listed = find(session, name, base)
    if listed.entry.state is not State.ARCHIVED:
        hint = "`kbd set --state active` wakes a dormant one"
        raise UsageError(f"{listed.entry.title!r} is {listed.entry.state.value}, not archived", hint=hint)
    return _decide(session, listed, Wish(state=State.ACTIVE), dry_run=dry_run)


@click.command("forget")
@NAME
@click.option("--yes", is_flag=True, help="Do not ask.")
@BASE
@DRY_RUN
@click.pass_obj
def forget(session: Session, name: str, yes: bool, base: str | None, dry_run: bool) -> int:
    """Delete an entry from its file. The only command that deletes; it shows the entry and asks."""
    listed = find(session, name, base)
    row = listed.entry
    reader = reader_of(session)
    if row.moving is not None:
        raise Refused("it is on its way to or from its archive", where=row.title, hint="try again after the next pass")
    block = decisions.block_of(row, reader)
    emit(safe(f"{row.file}:{row.line}"))
    for line in block.decode("utf-8", "replace").splitlines():
        emit(safe(line))
    if dry_run:
        say("would be deleted")
        return 0
    if not yes and not confirmed("Delete this entry?"):
        say("nothing was changed")
        return 0
    with opened(session) as (engine, clock):
        spec = next(spec for config, spec in engine.frame.bases() if config.name == listed.base)
        frame = engine.frame
        decisions.forget(
            frame.ledger, frame.locks, row, block, reader, lambda f: engine.writer.resync(spec, f, clock), clock.now
        )
    say(f"deleted {row.title!r} from {row.file}; its evidence stays in the ledger")
    return 0


def reader_of(session: Session) -> decisions.Reader:
    """Return how knowledge files are read under the configuration."""
    return decisions.Reader(entry_types(session.config), session.config.decay.marker)


def find(session: Session, name: str, base: str | None) -> Listed:
    """Return the one entry that a name means; raises UsageError."""
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        db = ledger.db
        bases = known_bases(session, ledger, chosen_bases(session.config, base))
        listed = [one for known in bases for one in report.list_base(known.name, known.entries, known.forecasts)]
        return report.find(listed, name, lambda text: former_names(db, text))


@contextmanager
def opened(session: Session) -> Iterator[tuple[Engine, Clock]]:
    """Open what a change needs; the ledger is there."""
    # Brings the matcher and all sources, which commands that only read do without.
    from kbd.engine import Clock, Engine  # noqa: PLC0415 - see above

    engine = Engine(session.config, session.state_dir, session.env, session.home, session.now())
    try:
        yield engine, Clock(session.now(), time.time(), session.zone)
    finally:
        engine.close()


@contextmanager
def after_writing(what: str) -> Iterator[None]:
    """Say what fails once the files are written, as `what` is not done then: a failure would say that nothing was."""
    try:
        yield
    except KbdError as error:
        say(f"kbd: written, but {what}: {error.message()}")


def who_writes(session: Session) -> str:
    """Say who writes files in place of this command; "" if it is to do so itself."""
    pause = pause_in_force(session.state_dir, session.real_now())
    if pause is not None:
        return f"paused {pause.words()}; the first pass after that writes the files"
    if running_pid(session.state_dir) is not None:
        return f"the running daemon writes the files, within {session.config.scan.every_seconds:.0f} s"
    return ""


def _decide(session: Session, listed: Listed, wish: Wish, *, dry_run: bool) -> int:
    if dry_run:
        with session.reading() as ledger:
            told = decisions.changes(ledger.db, listed.entry, wish, session.today) if ledger else []
        _tell(listed, told)
        return 0
    with opened(session) as (engine, clock):
        ledger, frame = engine.frame.ledger, engine.frame
        spec = next(spec for config, spec in frame.bases() if config.name == listed.base)
        try:
            row = decisions.resync_file(
                ledger, frame.locks, listed.entry, lambda files: engine.writer.resync(spec, files, clock)
            )
        except ChangedUnderneath:
            # The file is gone: the decision holds all the same, the next pass looks for the entry.
            row = lessons.entry_row(ledger.db, listed.entry.id)
        told = decisions.correct(ledger, row, wish, clock.now)
        _tell(listed, told)
        others = who_writes(session)
        if told and not others:
            for problem in engine.write_base(clock, listed.base).problems:
                say(f"{problem.where}: {problem.what}; {problem.hint}")
        elif told:
            say(others)
    return 0


def _tell(listed: Listed, told: list[str]) -> None:
    title = safe(listed.entry.title)
    emit(f"{title}: {', '.join(told)}" if told else f"{title}: nothing to change")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--last: {text!r} is no day", hint="write 2026-06-11, or none") from error
