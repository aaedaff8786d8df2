"""`kbd init`: find agents and knowledge, show what kbd would do, and write a configuration when told to."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import click

from kbd.cli.findings import Findings, find
from kbd.cli.init_screen import show
from kbd.cli.integrating import show_offers, write_offers
from kbd.cli.output import counted, emit, safe
from kbd.cli.session import Session
from kbd.config import data_dir, write_templates
from kbd.config.policies import entry_types
from kbd.errors import KbdError, UsageError
from kbd.service.correct import Reader
from kbd.service.dating import DateProposal, write_dates
from kbd.service.undoing import remember
from kbd.store.ledger import open_ledger
from kbd.store.ledger.database import LEDGER_NAME
from kbd.store.locks import Locks
from kbd.store.unitfiles import read_unit, write_unit


@click.command("init")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--no-dates", is_flag=True, help="Leave undated entries undated.")
@click.option("--hooks/--no-hooks", default=None, help="Agents' settings; default: ask, and leave them with --yes.")
@click.option("--dry-run", is_flag=True, help="Only show.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there.")
@click.pass_obj
def init(session: Session, yes: bool, no_dates: bool, hooks: bool | None, dry_run: bool, force: bool) -> int:
    """Find agents and knowledge, show what kbd would watch and write, then write a configuration."""
    found = find(session)
    old = read_unit(str(found.config_path))
    _require_sound(found)
    show(found, old, with_dates=not no_dates)
    offers = [] if hooks is False else show_offers(session)
    if dry_run:
        return 0
    if old is not None and old != found.config_text.encode() and not force:
        raise UsageError("is there already", where=str(found.config_path), hint="--force replaces it")
    datable = [] if no_dates else [one for one in found.dates if one.days]
    if not yes and not sys.stdin.isatty():
        raise UsageError("nobody can be asked here, so nothing was written", hint="--yes writes what was shown")
    wants_config = yes or click.confirm(f"\nWrite {found.short(str(found.config_path))}?")
    wants_dates = bool(datable) and (yes or click.confirm(f"Write the dates into {counted(len(datable), 'file')}?"))
    wants_hooks = bool(offers) and (hooks or (not yes and click.confirm("Write the hooks into the agents' settings?")))
    if wants_config:
        _write_config(found)
    done = not wants_dates or _write_dates(found, datable)
    done = (not wants_hooks or write_offers(session, offers)) and done
    if wants_config:
        emit("\nNext: `kbd run --once` reads what agents wrote so far;")
        emit("      `kbd service install` keeps kbd running.")
    return 0 if done else 1


def _require_sound(found: Findings) -> None:
    """Refuse what could not be loaded, such as transcripts inside the knowledge, and show it; raises UsageError."""
    try:
        _ = found.config
    except UsageError:
        for line in found.config_text.splitlines():
            emit(safe(line))
        raise


def _write_config(found: Findings) -> None:
    path = str(found.config_path)
    written = write_unit(path, found.config_text.encode("utf-8", "surrogateescape"))
    emit(f"{'wrote' if written else 'kept'} {safe(found.short(path))}")
    if not found.candidates or not found.agents:
        for made in write_templates(data_dir(), found.session.today):
            emit(f"made {safe(found.short(str(made)))}")


def _write_dates(found: Findings, proposals: Sequence[DateProposal]) -> bool:
    """Date the files one by one; what cannot be written now is told, and the others go on."""
    done = True
    locks = Locks(found.session.state_dir)
    writes: list[DateProposal] = []
    for proposal in proposals:
        name = os.path.relpath(proposal.path, found.folder)
        try:
            remark = write_dates(proposal, locks, time.time())
            writes.append(proposal)
        except (KbdError, FileNotFoundError) as error:
            remark = str(error)
        done = done and not remark
        emit(safe(f"{name}: {remark}" if remark else f"{name}: {counted(len(proposal.days), 'date')} written"))
    _remember(found, writes)
    return done


def _remember(found: Findings, writes: Sequence[DateProposal]) -> None:
    """Let the dates be taken back, where a ledger is there to know it; before the first pass git knows it."""
    session = found.session
    if writes and (session.state_dir / LEDGER_NAME).exists():
        ledger = open_ledger(session.state_dir, session.now())
        reader = Reader(entry_types(found.config), found.config.decay.marker)
        try:
            remember(ledger, "dates", [(one.path, one.data, one.dated) for one in writes], reader.parse, session.now())
        finally:
            ledger.close()
