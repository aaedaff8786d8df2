"""`kbd purge` and `kbd detach`: removing what kbd knows, and what it wrote."""

from __future__ import annotations

import os
import time

import click

from kbd.cli.changing import DRY_RUN, NEVER_RUN
from kbd.cli.history import entry_id
from kbd.cli.integrating import take_out
from kbd.cli.output import confirmed, counted, emit, safe, say
from kbd.cli.session import Session
from kbd.config.policies import entry_types
from kbd.core.redact import masked_id
from kbd.errors import KbdError, UsageError
from kbd.service.correct import Reader
from kbd.service.detaching import Detached, plan_detach, write_detached
from kbd.store.ledger import Ledger, open_ledger, purging
from kbd.store.ledger.database import LEDGER_NAME
from kbd.store.locks import InstanceLock, Locks

YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("purge")
@click.option("--session", "session_id", metavar="ID", help="A session, as `kbd show` names it.")
@click.option("--project", metavar="DIR", help="All sessions that worked in a folder or below it.")
@click.option("--entry", metavar="TITLE|HANDLE|ID", help="An entry with its evidence and history.")
@YES
@DRY_RUN
@click.pass_obj
def purge(
    session: Session, session_id: str | None, project: str | None, entry: str | None, yes: bool, dry_run: bool
) -> int:
    """Remove a session, a project or an entry from ledger, backups and undo, for good.

    A purged session no longer counts, and its transcript is not read again. A purged entry that still stands in a file
    keeps the number it has there. No daemon may run meanwhile.
    """
    if sum(value is not None for value in (session_id, project, entry)) != 1:
        raise UsageError("nothing is named to be removed", hint="give one of --session, --project and --entry")
    if not (session.state_dir / LEDGER_NAME).exists():
        raise UsageError(NEVER_RUN)
    with InstanceLock(session.state_dir):
        ledger = open_ledger(session.state_dir, session.now())
        try:
            return _purge(session, ledger, session_id, project, entry, ask=not yes, dry_run=dry_run)
        finally:
            ledger.close()


def _purge(
    session: Session,
    ledger: Ledger,
    session_id: str | None,
    project: str | None,
    entry: str | None,
    *,
    ask: bool,
    dry_run: bool,
) -> int:
    folder = os.path.abspath(os.path.expanduser(project)) if project else None
    if not dry_run and purging.finish_begun(ledger, session.state_dir, session.today):
        say("a purge that was interrupted is finished: what it removed is in no copy any more")
    number = entry_id(session, ledger, entry) if entry else None
    sessions = purging.sessions_in(ledger.db, folder) if folder else []
    sessions += purging.sessions_known(ledger.db, masked_id(session_id)) if session_id else []
    if number is None and not sessions and not folder:
        raise UsageError(f"no session {session_id!r} is known", hint="`kbd show TITLE --json` names them")
    for one in sessions:
        emit(safe(f"session {one}"))
    if number is not None:
        title, count = ledger.db.execute("SELECT title, citations FROM entries WHERE id=?", (number,)).fetchone()
        emit(safe(f"entry {title}, {counted(count, 'citation')}"))
    if dry_run:
        say("would be removed from ledger, backups and undo")
        return 0
    if ask and not confirmed("Remove this for good?"):
        say("nothing was changed")
        return 0
    ledger.db.execute("PRAGMA secure_delete=ON")
    with ledger.transaction() as db:
        purging.note_begun(ledger)
        if number is not None:
            lost = purging.purge_entry(db, number)
        else:
            words = [word for word in (session_id, folder, *sessions) if word]
            lost = purging.purge_sessions(db, sessions, words, session.today)
    purging.leave_nothing(ledger, session.state_dir, session.today)
    say(f"removed, with {counted(lost, 'citation' if number is not None else 'reference')}")
    return 0


@click.command("detach")
@YES
@DRY_RUN
@click.pass_obj
def detach(session: Session, yes: bool, dry_run: bool) -> int:
    """Take kbd's comments and markers out of all knowledge files, and its hooks out of agents' settings.

    The difference is shown first.

    Archived entries stay in their archives. No daemon may run meanwhile: it would write them again.
    """
    reader = Reader(entry_types(session.config), session.config.decay.marker)
    with InstanceLock(session.state_dir):
        unhooked = take_out(session, yes=yes, dry_run=dry_run)
        found, problems = plan_detach(session.config.bases, reader)
        for problem in problems:
            say(f"{problem.where}: {problem.what}; {problem.hint}")
        for one in found:
            for line in one.diff():
                emit(safe(line))
        if not found:
            say("nothing of kbd stands in the files")
        elif dry_run:
            say("would be taken out")
        elif not yes and not confirmed("Take this out?"):
            say("nothing was changed")
        else:
            return max(_write(session, found, reader), 1 if problems or not unhooked else 0)
    return 1 if problems or not unhooked else 0


def _write(session: Session, found: list[Detached], reader: Reader) -> int:
    code = 0
    locks = Locks(session.state_dir)
    for one in found:
        try:
            remark = write_detached(one, locks, reader.parse, time.time())
        except (KbdError, FileNotFoundError) as error:
            remark, code = str(error), getattr(error, "exit_code", 1)
        emit(safe(f"{one.path}: {remark or 'done'}"))
    say(f"what kbd counted is in {session.state_dir}: remove that, and the service (`kbd service uninstall`)")
    return code
