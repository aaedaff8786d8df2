"""`kbd status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from kbd import __version__
from kbd.cli.known import Known, known_bases
from kbd.cli.output import emit, emit_json, fields_of
from kbd.cli.screen import Screen
from kbd.cli.session import Session
from kbd.config import Config
from kbd.core.model import Problem
from kbd.core.sight import Sight
from kbd.errors import FileUnreadable
from kbd.service import lifecycle
from kbd.service.status import assess
from kbd.service.status.values import KnownBase, Sign, Situation, Status
from kbd.store.heartbeat import read_heartbeat
from kbd.store.ledger import Ledger, standing
from kbd.store.ledger.survey import SourceSums, source_sums
from kbd.store.locks import running_pid
from kbd.store.pausing import pause_in_force

EXIT = {"ok": 0, "degraded": 1, "down": 3}
STALLED_SECONDS = 600
PASSES_MISSED = 3


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def status(session: Session, as_json: bool) -> int:
    """Say how kbd fares. Exit 0: ok; 1: degraded, with reasons; 3: no daemon runs."""
    config = session.config
    with session.reading() as ledger:
        bases = known_bases(session, ledger, config.bases)
        told = _situation(session, config, ledger, bases)
        said = assess(told)
        if as_json:
            emit_json(fields_of(said))
        else:
            for line in Screen(told, said).lines():
                emit(line)
    return EXIT[said.health]


def said_now(session: Session) -> Status:
    """Return what `kbd status --json` says."""
    with session.reading() as ledger:
        bases = known_bases(session, ledger, session.config.bases)
        return assess(_situation(session, session.config, ledger, bases))


def _situation(session: Session, config: Config, ledger: Ledger | None, bases: Sequence[Known]) -> Situation:
    sums = source_sums(ledger.db) if ledger else []
    alarms = lifecycle.format_alarms(ledger.db) if ledger else set()
    told = Situation(
        ledger=ledger,
        bases=[
            KnownBase(b.name, b.policy, b.row, b.entries, b.forecasts, b.related.relations, b.related.problems)
            for b in bases
        ],
        sources={source.name: source.folder or "" for source in config.sources},
        sums=sums,
        alarms=alarms,
        sight=Sight(True),
        sign=_sign(session),
        config_problems=config.problems,
        now=session.now(),
        real_now=session.real_now(),
        zone=session.zone,
        version=__version__,
        config=config.digest,
        stalled_seconds=max(STALLED_SECONDS, PASSES_MISSED * config.scan.every_seconds),
    )
    return replace(told, sight=_sight(session, ledger, told.own_sums, alarms, bases)) if ledger else told


def _sight(
    session: Session, ledger: Ledger, sums: Sequence[SourceSums], alarms: set[str], bases: Sequence[Known]
) -> Sight:
    blind = {p.where for p in standing.faults(ledger.db) if p.code in ("source_unreadable", "source_missing")}
    sights = [lifecycle.SourceSight(s.name, s.root not in blind, s.name in alarms) for s in sums]
    read = [known.row.id for known in bases if known.row is not None]
    return lifecycle.see_any(ledger.db, read, sights, bases[0].policy, session.today)


def _sign(session: Session) -> Sign:
    """Look for the daemon: its lock says whether it runs, its heartbeat how it fares."""
    pid = running_pid(session.state_dir)
    try:
        pause = pause_in_force(session.state_dir, session.real_now())
        return Sign(pid, read_heartbeat(session.state_dir), pause=pause.words() if pause else "")
    except FileUnreadable as error:
        return Sign(pid, None, Problem("heartbeat_unreadable", error.where, error.what, error.hint))
