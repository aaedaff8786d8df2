"""Adopting files of other forms: read with what git knows of them, shown as a diff, written under the locks."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from difflib import unified_diff

from kbd.core import relyaml
from kbd.core.adopt.dialects import BY_NAME, DIALECTS, Dialect, recognise
from kbd.core.adopt.lesson import Reading
from kbd.core.adopt.plan import Asked, Plan, in_place, into, plan
from kbd.core.entries import parse
from kbd.core.model import Relation
from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable, Refused, UsageError
from kbd.store import relations as relations_file
from kbd.store.blame import blame_days
from kbd.store.files import read_regular
from kbd.store.locks import Locks
from kbd.store.notes import is_archive
from kbd.store.rewrite import Deferred, Outcome, Quiet, Written, reason_to_wait, rewrite_held
from kbd.store.standing import Shelving, Standing, read_stand

LOCK_SECONDS = 20.0
MAX_BYTES = 16 << 20
MAX_FILES = 2_000
INDEX_NAME = "MEMORY.md"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to adopt.

    Attributes:
        path: absolute; a file, or a folder of notes.
        dialect: its name; None to recognise it.
        target: absolute path of the knowledge file that takes the entries; None to change the file itself.
        shelving: the base: whose titles count as there, whose relations file is written; None without one.
        signals: phrases of the config's types.
        reading: types and marker in force.
    """

    path: str
    dialect: str | None
    target: str | None
    shelving: Shelving | None
    signals: dict[str, tuple[str, ...]]
    reading: Reading


@dataclass(frozen=True, slots=True)
class Source:
    """One file to adopt.

    Attributes:
        path: where it is.
        data: its content.
        dialect: what it is read as; None: none was recognised.
        plan: what becomes of it.
        entries: how many entries it holds already.
        remark: why git could not be asked; "" if it could.
    """

    path: str
    data: bytes
    dialect: str | None
    plan: Plan
    entries: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Adoption:
    """What would be written.

    Attributes:
        sources: the files, in order.
        path: the file that would change, links resolved.
        before: its content; b"" if it would be made.
        after: what it would be.
        relations: to be added to the base's relations file.
        refused: those that are against its rules, with the reason.
    """

    sources: tuple[Source, ...]
    path: str
    before: bytes
    after: bytes
    relations: tuple[Relation, ...]
    refused: tuple[tuple[Relation, str], ...] = ()

    def diff(self, shown: str) -> list[str]:
        """Return the change as a unified diff without line ends; `shown` names the file."""
        before, after = (data.decode("utf-8", "replace").split("\n") for data in (self.before, self.after))
        return [] if self.before == self.after else list(unified_diff(before, after, shown, shown, lineterm="", n=1))


def propose(wish: Wish, today: date) -> Adoption:
    """Return what adopting would write; nothing is written.

    Raises:
        UsageError: no such dialect or file, a folder without a target, a target that is no knowledge file.
        Refused: the result would not be read back as meant.
        FileUnreadable: a file, or one of the base, cannot be read.
    """
    stand = read_stand(wish.shelving).all() if wish.shelving else []
    target = _target(wish, wish.target) if wish.target else None
    sources = _sources(wish, stand, today)
    if target is None:
        return _alone(wish, sources[0])
    try:
        before = read_regular(target, MAX_BYTES)
    except FileNotFoundError:
        before = b""
    after = before
    for source in sources:
        after = into(source.plan, after, wish.reading)
    return Adoption(tuple(sources), target, before, after, *_relations(wish.shelving, sources))


def adopt(adoption: Adoption, shelving: Shelving | None, locks: Locks, real_now: float) -> list[Written]:
    """Write what was shown, under the locks; the relations first, so that a refusal leaves all as it was. Idempotent.

    Raises:
        ChangedUnderneath: a file is not the one that was shown; nothing was written.
        Refused: git is at work there, a relation is against the rules; nothing was written.
        LockTimeout, FileUnreadable, FileUnwritable: nothing was written that the next call does not find.
    """
    quiet = Quiet(real_now, 0.0)
    relations = adoption.relations if shelving else ()
    paths = [adoption.path, *([shelving.relations] if shelving else [])]
    related: list[Written] = []
    with locks.hold(paths, LOCK_SECONDS):
        _check_sources(adoption)
        _require_ready(adoption, quiet)
        if shelving and relations:
            related = _done(shelving.relations, relations_file.write_held(shelving.relations, relations, locks, quiet))
        _make_folder(adoption.path)
        outcome = rewrite_held(adoption.path, lambda data: _as_shown(adoption, data), locks, quiet, create=True)
        return [*_done(adoption.path, outcome), *related]


def _sources(wish: Wish, stand: Sequence[Standing], today: date) -> list[Source]:
    paths = _files(wish.path)
    if wish.target is None and os.path.isdir(wish.path):
        raise UsageError("a folder of notes cannot be changed in place", where=wish.path, hint="--into FILE")
    own = os.path.realpath(wish.path)
    titles = {one.entry.norm for one in stand if os.path.realpath(one.path) != own}
    sources: list[Source] = []
    for path in paths:
        source = _source(wish, path, frozenset(titles), today)
        titles |= {one.entry.norm for one in source.plan.taken}
        sources.append(source)
    return sources


def _source(wish: Wish, path: str, titles: frozenset[str], today: date) -> Source:
    try:
        data = read_regular(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=path) from error
    name = os.path.splitext(os.path.basename(path))[0]
    parsed = parse(data, wish.reading.types, wish.reading.marker)
    dialect = _dialect(wish.dialect, path, recognise(parsed, name))
    if dialect is None:
        return Source(path, data, None, Plan(data, (), (), (), frozenset()), len(parsed.entries))
    if dialect.only_into and wish.target is None:
        what = f"{dialect.name} belongs to its own tool and is not changed"
        raise UsageError(what, where=path, hint="--into FILE adds its lessons to a knowledge file")
    try:
        days, remark = blame_days(path), ""
    except FileUnreadable as error:
        days, remark = {}, error.what
    asked = Asked(wish.reading, wish.signals, days, titles, today)
    return Source(path, data, dialect.name, plan(data, name, dialect, asked), len(parsed.entries), remark)


def _dialect(named: str | None, path: str, recognised: Dialect | None) -> Dialect | None:
    if named is None:
        is_serena = recognised in (None, BY_NAME["bullets"]) and "/.serena/memories/" in path.replace(os.sep, "/")
        return BY_NAME["serena"] if is_serena else recognised
    if named not in BY_NAME:
        known = "; ".join(f"{one.name} ({one.what})" for one in DIALECTS)
        raise UsageError(f"no dialect is named {named!r}", hint=f"known: {known}")
    return BY_NAME[named]


def _files(path: str) -> list[str]:
    """Return the file, or the notes of a folder: its Markdown files, without index, dotfiles, links and subfolders."""
    if not os.path.isdir(path):
        return [path]
    try:
        with os.scandir(path) as found:
            names = sorted(one.name for one in found if one.is_file(follow_symlinks=False))
    except OSError as error:
        raise FileUnreadable(f"cannot be listed ({error.strerror})", where=path, hint="check permissions") from error
    notes = [name for name in names if name.endswith(".md") and name != INDEX_NAME and not name.startswith(".")]
    if not notes or len(notes) > MAX_FILES:
        what = "no notes stand in it" if not notes else f"over {MAX_FILES} files stand in it"
        raise UsageError(what, where=path, hint="name a folder of Markdown notes")
    return [os.path.join(path, name) for name in notes]


def _alone(wish: Wish, source: Source) -> Adoption:
    after = in_place(source.plan, wish.reading)
    relations, refused = _relations(wish.shelving, [source])
    return Adoption((source,), os.path.realpath(source.path), source.data, after, relations, refused)


def _relations(
    shelving: Shelving | None, sources: Sequence[Source]
) -> tuple[tuple[Relation, ...], tuple[tuple[Relation, str], ...]]:
    """Return the relations that are not there yet, and those that the file's rules forbid."""
    wanted = dict.fromkeys(one for source in sources for one in source.plan.relations)
    if shelving is None or not wanted:
        return tuple(wanted), ()
    held = relations_file.load(shelving.relations)
    data = held.data if held else b""
    there = {(one.s, one.p, one.o) for one in held.relations} if held else set()
    new = [one for one in wanted if (one.s, one.p, one.o) not in there]
    _, refused = _admitted(data, new, shelving.relations)
    forbidden = {one for one, _ in refused}
    return tuple(one for one in new if one not in forbidden), tuple(refused)


def _admitted(data: bytes, wanted: Sequence[Relation], path: str) -> tuple[bytes, list[tuple[Relation, str]]]:
    """Return the relations file with those that its rules allow, and the others; halved until the culprits stand alone.

    Each upsert reads the whole file, so one a relation would take the square of their number.
    """
    try:
        return relyaml.upsert(data, wanted, path), []
    except Refused as error:
        if len(wanted) == 1:
            return data, [(wanted[0], error.what)]
    half = len(wanted) // 2
    data, first = _admitted(data, wanted[:half], path)
    data, second = _admitted(data, wanted[half:], path)
    return data, [*first, *second]


def _target(wish: Wish, path: str) -> str:
    """Return the base's file that a path or a mere name means, or a new one that its globs mean; links resolved."""
    if wish.shelving is None:
        raise UsageError("--into needs a base", hint="`kbd init` makes one")
    live = read_stand(wish.shelving).live_files
    real = os.path.realpath(path)
    named = [one for one in live if os.path.basename(one) == os.path.basename(path)]
    if any(os.path.realpath(one) == real for one in live):
        return real
    if len(named) == 1 and not os.path.lexists(path):
        return os.path.realpath(named[0])
    fits = any(
        fnmatch.fnmatchcase(os.path.basename(real), os.path.basename(pattern))
        and os.path.realpath(os.path.dirname(pattern)) == os.path.dirname(real)
        for pattern in wish.shelving.patterns
    )
    if os.path.lexists(real) or not fits or os.path.basename(real).startswith(".") or is_archive(real):
        hint = f"files of {wish.shelving.base}: {', '.join(live) or 'none yet'}"
        raise Refused("it is no knowledge file of the base", where=path, hint=hint)
    return real


def _check_sources(adoption: Adoption) -> None:
    """Refuse if a file is no longer what was shown; the one that is written is compared as it is replaced."""
    for source in adoption.sources:
        try:
            same = read_regular(source.path, MAX_BYTES) == source.data
        except FileNotFoundError:
            same = False
        if not same:
            raise ChangedUnderneath("changed since it was shown", where=source.path, hint="run it again")


def _as_shown(adoption: Adoption, data: bytes) -> bytes:
    if data != adoption.before:
        raise ChangedUnderneath("changed since it was shown", where=adoption.path, hint="run it again")
    return adoption.after


def _require_ready(adoption: Adoption, quiet: Quiet) -> None:
    """Refuse before any relation is written what would be refused when the file is."""
    try:
        data = read_regular(adoption.path, MAX_BYTES)
    except FileNotFoundError:
        data = b""
    _as_shown(adoption, data)
    reason = reason_to_wait(adoption.path, data, None, quiet)
    if reason is not None:
        raise Refused(reason, where=adoption.path, hint="try again when that is over")


def _done(path: str, outcome: Outcome) -> list[Written]:
    if isinstance(outcome, Deferred):
        raise Refused(outcome.reason, where=path, hint="try again when that is over")
    if not isinstance(outcome, Written):
        return []
    return [outcome]


def _make_folder(path: str) -> None:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise FileUnwritable(f"cannot be made ({error.strerror})", where=folder, hint="mend permissions") from error
