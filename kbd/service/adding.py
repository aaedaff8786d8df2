"""Adding an entry to a knowledge file: checked, dated, under the lock, with its relations."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from kbd.core import drafting, relyaml
from kbd.core.drafting import Draft
from kbd.core.handles import handle
from kbd.core.model import Entry, Relation
from kbd.errors import FileUnwritable, Refused, UsageError
from kbd.store import relations as relations_file
from kbd.store.locks import Locks
from kbd.store.notes import is_archive
from kbd.store.rewrite import Deferred, Quiet, Written, reason_to_wait, rewrite_held
from kbd.store.standing import Shelving, Stand, Standing, read_stand

LOCK_SECONDS = 20.0
NEW_FILE = "lessons.md"


@dataclass(frozen=True, slots=True)
class Wish:
    """An entry that shall be added.

    Attributes:
        words: as `drafting.draft` leaves them.
        file: absolute path; None for the file where its like stand.
        section: path of headings, or its end; None for the section where its like stand.
        supersedes: names of entries of the base.
        applies_to: files, as named in relations.
        is_distinct: a person says that it is another lesson than the one of a like title.
    """

    words: Draft
    file: str | None = None
    section: str | None = None
    supersedes: Sequence[str] = ()
    applies_to: Sequence[str] = ()
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """An entry as it stands in its file now, or would."""

    handle: str
    path: str
    entry: Entry
    block: bytes
    relations: tuple[Relation, ...]


def add(shelving: Shelving, wish: Wish, locks: Locks, today: date, real_now: float, *, dry_run: bool = False) -> Added:
    """Add an entry. Whoever adds to the base at the same time waits, so that of two same titles one is refused.

    Args:
        shelving: the base.
        wish: what to add.
        locks: of the state directory.
        today: its date.
        real_now: the real clock, seconds since the epoch.
        dry_run: say what would be, write nothing.

    Raises:
        Refused: the same or a near-same title is there, it would not be read back as meant, a relation is against the
            rules, the file may not be written now.
        UsageError: a name in `supersedes` names no entry, or several.
        LockTimeout, FileUnreadable, FileUnwritable, ChangedUnderneath: nothing was written.
    """
    stand = read_stand(shelving)
    path = _target(shelving, wish, stand)
    # The relations file stands for the base: all who add to it take its lock, whatever file they write.
    with locks.hold([path, shelving.relations], LOCK_SECONDS):
        stand = read_stand(shelving, stand)
        older = [stand.one(name) for name in wish.supersedes]
        _refuse_namesake(wish, stand.all(), [one.entry.norm for one in older])
        relations = _relations(wish, older, today)
        quiet = Quiet(real_now, 0.0)
        if relations:
            _check(shelving.relations, relations, quiet)
        if dry_run:
            data, entry = _inserted(stand.contents.get(path, b""), shelving, wish, today)
        else:
            data, entry = _write(path, shelving, wish, today, locks, quiet)
            _relate(shelving.relations, relations, locks, quiet)
    block = data[entry.block.start : entry.block.end]
    return Added(_free_handle(entry.norm, stand.all()), path, entry, block, relations)


def _inserted(data: bytes, shelving: Shelving, wish: Wish, today: date) -> tuple[bytes, Entry]:
    return drafting.inserted(data, wish.words, wish.section, today, shelving.types, shelving.marker)


def _write(path: str, shelving: Shelving, wish: Wish, today: date, locks: Locks, quiet: Quiet) -> tuple[bytes, Entry]:
    """Write the entry into its file, whose lock is held; return the file's content and the entry in it."""
    _make_folder(path)
    outcome = rewrite_held(path, lambda data: _inserted(data, shelving, wish, today)[0], locks, quiet, create=True)
    if not isinstance(outcome, Written):
        reason = outcome.reason if isinstance(outcome, Deferred) else "nothing to write"
        raise Refused(reason, where=path, hint="try again when that is over")
    return _inserted(outcome.before or b"", shelving, wish, today)


def _make_folder(path: str) -> None:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise FileUnwritable(f"cannot be made ({error.strerror})", where=folder, hint="mend permissions") from error


def _check(path: str, relations: Sequence[Relation], quiet: Quiet) -> None:
    """Raise what writing the relations would raise, before anything is written."""
    held = relations_file.load(path)
    data = held.data if held else b""
    relyaml.upsert(data, relations, path)
    reason = reason_to_wait(path, data, None, quiet)
    if reason is not None:
        raise Refused(reason, where=path, hint="try again when that is over")


def _relate(path: str, relations: Sequence[Relation], locks: Locks, quiet: Quiet) -> None:
    if not relations:
        return
    outcome = relations_file.write_held(path, relations, locks, quiet)
    if isinstance(outcome, Deferred):
        hint = "the entry was added; add its relations with `kbd relate`"
        raise Refused(outcome.reason, where=path, hint=hint)


def _relations(wish: Wish, older: Sequence[Standing], today: date) -> tuple[Relation, ...]:
    ends = [("supersedes", one.entry.title) for one in older] + [("applies_to", path) for path in wish.applies_to]
    return tuple(Relation(wish.words.title, p, o, today, today) for p, o in dict.fromkeys(ends))


def _free_handle(norm: str, standing: Sequence[Standing]) -> str:
    short = handle(norm)
    is_taken = any(one.handle == short and one.entry.norm != norm for one in standing)
    return handle(norm, 10) if is_taken else short


def _refuse_namesake(wish: Wish, standing: Sequence[Standing], superseded: Sequence[str]) -> None:
    if wish.words.norm in superseded:
        raise Refused("it has the title of the entry it supersedes", hint="say in the title what is new")
    titles = {one.entry.norm: one for one in reversed(standing) if one.entry.norm not in superseded}
    found = drafting.namesake(wish.words.norm, titles)
    if found is None or (wish.is_distinct and found != wish.words.norm):
        return
    one = titles[found]
    hint = f"`kbd restore {one.handle}` brings it back" if one.archived else f"cite it as [{one.handle}]"
    if found != wish.words.norm:
        hint += f"; `--supersedes {one.handle}` replaces it, `--distinct` adds another"
    what = (
        f"{'the same' if found == wish.words.norm else 'a near-same'} title is there: [{one.handle}] {one.entry.title}"
    )
    raise Refused(what, where=f"{one.path}:{one.entry.line}", hint=hint)


def _target(shelving: Shelving, wish: Wish, stand: Stand) -> str:
    """Return the file to write: the one named, else the one with most entries of the type, else with most entries."""
    live = stand.live_files
    if wish.file is not None:
        return _named_file(shelving, wish.file, live)
    if live:
        kinds = {path: [one.entry.type for one in stand.entries[path]] for path in live}
        return min(live, key=lambda path: (-kinds[path].count(wish.words.type), -len(kinds[path]), path))
    folder, name = os.path.split(shelving.patterns[0])
    if _has_magic(folder) or (_has_magic(name) and not fnmatch.fnmatchcase(NEW_FILE, name)):
        raise UsageError("the base has no file yet", where=shelving.base, hint="name one with --file")
    return os.path.join(folder, NEW_FILE if _has_magic(name) else name)


def _has_magic(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _named_file(shelving: Shelving, path: str, live: Sequence[str]) -> str:
    """Return the base's file that a path or a mere name means, or a new one that its globs mean.

    Links and `..` are resolved first, so nothing outside the base's folders is ever written.
    """
    real = os.path.realpath(path)
    same = [one for one in live if os.path.realpath(one) == real]
    named = [one for one in live if os.path.basename(one) == os.path.basename(path)]
    if same or (len(named) == 1 and not os.path.lexists(path)):
        return (same or named)[0]
    name = os.path.basename(real)
    fits = any(
        fnmatch.fnmatchcase(name, os.path.basename(pattern))
        and os.path.realpath(os.path.dirname(pattern)) == os.path.dirname(real)
        for pattern in shelving.patterns
    )
    if os.path.lexists(real) or not fits or name.startswith(".") or is_archive(real):
        hint = f"files of {shelving.base}: {', '.join(live) or 'none yet'}"
        raise Refused("it is no knowledge file of the base", where=path, hint=hint)
    return real
