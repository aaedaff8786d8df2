"""Relations by a person's or an agent's hand: added, used anew, ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from kbd.core import drafting, relyaml
from kbd.core.model import Relation
from kbd.core.normal import normalise
from kbd.errors import Refused, UsageError
from kbd.store import relations as relations_file
from kbd.store.locks import Locks
from kbd.store.rewrite import Deferred, Quiet, reason_to_wait
from kbd.store.standing import Shelving, Stand, read_stand

LOCK_SECONDS = 20.0
BETWEEN_ENTRIES = frozenset({"supersedes", "extends", "requires", "conflicts_with"})
"""Predicates of which both ends must be entries: on them decay and context act."""


def relate(
    shelving: Shelving, relation: Relation, locks: Locks, today: date, real_now: float, *, dry_run: bool = False
) -> Relation:
    """Add a relation, or note that it is used today; return it as written. Idempotent within a day.

    Ends that name an entry of the base are written as its title.

    Args:
        shelving: the base.
        relation: subject, predicate and object as given.
        locks: of the state directory.
        today: the day.
        real_now: the real clock, seconds since the epoch.
        dry_run: say what would be, write nothing.

    Raises:
        UsageError: an end that must be an entry names none, or several.
        Refused: an unknown predicate, a cycle, an entry that relates to itself, a secret.
        LockTimeout, FileUnreadable, FileUnwritable, ChangedUnderneath: nothing was written.
    """
    drafting.refuse_secrets([("subject", relation.s), ("object", relation.o)])
    with locks.hold([shelving.relations], LOCK_SECONDS):
        written = replace(_resolved(relation, read_stand(shelving)), c=today, u=today)
        _write(shelving.relations, written, locks, real_now, dry_run=dry_run)
    return written


def unrelate(
    shelving: Shelving, relation: Relation, locks: Locks, today: date, real_now: float, *, dry_run: bool = False
) -> Relation:
    """End a relation today: it stays in the file, expired. Arguments and errors as `relate`. Idempotent.

    Raises:
        UsageError: there is no such relation.
    """
    with locks.hold([shelving.relations], LOCK_SECONDS):
        stand = read_stand(shelving)
        held = relations_file.load(shelving.relations)
        found = [one for one in (held.relations if held else ()) if _is_meant(one, relation, stand)]
        if not found:
            what = f"no relation {relation.s!r} {relation.p} {relation.o!r}"
            raise UsageError(what, where=shelving.relations, hint="`kbd show` lists those of an entry")
        written = replace(found[0], e=found[0].e or today)
        _write(shelving.relations, written, locks, real_now, dry_run=dry_run)
    return written


def _resolved(relation: Relation, stand: Stand) -> Relation:
    if relation.p not in BETWEEN_ENTRIES:
        s = _title(relation.s, stand)
        return replace(relation, s=s, o=relation.o if relation.p == "applies_to" else _title(relation.o, stand))
    s, o = stand.one(relation.s).entry.title, stand.one(relation.o).entry.title
    if normalise(s) == normalise(o):
        raise Refused("an entry does not relate to itself", where=s, hint="name two entries")
    return replace(relation, s=s, o=o)


def _title(name: str, stand: Stand) -> str:
    """Return the title of the entry that a title, an id or a handle names; a part of a title may be any word."""
    found = [one.entry for one in stand.find(name) if name.strip() in _names(one.entry.ident, one.handle)]
    found += [one.entry for one in stand.find(name) if one.entry.norm == normalise(name).rstrip(" .:")]
    return found[0].title if found else name


def _names(ident: str | None, handle: str) -> Sequence[str]:
    return [form for name in (ident, handle) if name for form in (name, f"[{name}]")]


def _is_meant(one: Relation, given: Relation, stand: Stand) -> bool:
    o = given.o if given.p == "applies_to" else _meant(given.o, stand)
    wanted = {relyaml.triple(given), relyaml.triple(replace(given, s=_meant(given.s, stand), o=o))}
    named = replace(one, s=_title(one.s, stand), o=_title(one.o, stand))
    return not wanted.isdisjoint({relyaml.triple(one), relyaml.triple(named)})


def _meant(name: str, stand: Stand) -> str:
    """Return the title of the one entry that a name, or a part of a title, means; else the name itself."""
    found = {one.entry.norm: one.entry.title for one in stand.find(name)}
    return next(iter(found.values())) if len(found) == 1 else name


def _write(path: str, relation: Relation, locks: Locks, real_now: float, *, dry_run: bool) -> None:
    quiet = Quiet(real_now, 0.0)
    if dry_run:
        held = relations_file.load(path)
        data = held.data if held else b""
        relyaml.upsert(data, [relation], path)
        reason = reason_to_wait(path, data, None, quiet)
    else:
        outcome = relations_file.write_held(path, [relation], locks, quiet)
        reason = outcome.reason if isinstance(outcome, Deferred) else None
    if reason is not None:
        raise Refused(reason, where=path, hint="try again when that is over")
