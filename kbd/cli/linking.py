"""`kbd relate` and `kbd unrelate`."""

from __future__ import annotations

import time

import click

from kbd.cli.adding import one_base, relation_name, shelving_of
from kbd.cli.changing import BASE, DRY_RUN
from kbd.cli.output import emit, safe, say
from kbd.cli.session import Session
from kbd.core.model import Relation
from kbd.core.relyaml import PREDICATES
from kbd.service import linking
from kbd.store.locks import Locks

SUBJECT = click.argument("subject", metavar="SUBJECT")
PREDICATE = click.argument("predicate", metavar="PREDICATE")
OBJECT = click.argument("object_", metavar="OBJECT")


@click.command("relate", epilog=f"Predicates: {', '.join(PREDICATES)}.")
@SUBJECT
@PREDICATE
@OBJECT
@BASE
@DRY_RUN
@click.pass_obj
def relate(session: Session, subject: str, predicate: str, object_: str, base: str | None, dry_run: bool) -> int:
    """Add a relation, or note that it is used today.

    SUBJECT and OBJECT are titles, handles or ids of entries; of `applies_to` the OBJECT is a file.
    """
    _tell(related(session, subject, predicate, object_, base, dry_run=dry_run), dry_run=dry_run)
    return 0


@click.command("unrelate")
@SUBJECT
@PREDICATE
@OBJECT
@BASE
@DRY_RUN
@click.pass_obj
def unrelate(session: Session, subject: str, predicate: str, object_: str, base: str | None, dry_run: bool) -> int:
    """End a relation: it stays in the file as expired, and comes back when it is used again."""
    shelving = shelving_of(session, one_base(session, base))
    given = _relation(subject, predicate, object_)
    locks = Locks(session.state_dir)
    ended = linking.unrelate(shelving, given, locks, session.today, time.time(), dry_run=dry_run)
    _tell(ended, dry_run=dry_run)
    return 0


def related(
    session: Session, subject: str, predicate: str, object_: str, base: str | None, *, dry_run: bool = False
) -> Relation:
    """Add a relation and return it as written."""
    shelving = shelving_of(session, one_base(session, base))
    given = _relation(subject, predicate, object_)
    return linking.relate(shelving, given, Locks(session.state_dir), session.today, time.time(), dry_run=dry_run)


def _relation(subject: str, predicate: str, object_: str) -> Relation:
    name = predicate.strip().lower().replace("-", "_")
    return Relation(subject, name, relation_name(object_) if name == "applies_to" else object_, None, None)


def _tell(relation: Relation, *, dry_run: bool) -> None:
    """Print a relation in the form of `kbd show`, by which it is known for kbd's own output in a transcript."""
    state = f"expired {relation.e}" if relation.e else f"used {relation.u}"
    emit(safe(f"  {relation.s} {relation.p} {relation.o} ({state})"))
    if dry_run:
        say("nothing was written")
