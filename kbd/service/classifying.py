"""Types for entries without a tag: which one their words give, and writing it into the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbd.core.classify import classify
from kbd.core.entries import parse
from kbd.core.splice import Edit, apply
from kbd.core.tagging import tag_edit
from kbd.errors import Refused
from kbd.store.locks import Locks
from kbd.store.rewrite import Deferred, Written, rewrite


@dataclass(frozen=True, slots=True)
class Untagged:
    """An entry without a tag: where it stands, the type its words give, and the phrase that gave it.

    `signal` is None for the fallback; `edit` is None if a tag cannot be put in without changing how it is read.
    """

    path: str
    line: int
    title: str
    type: str
    signal: str | None
    edit: Edit | None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Known entry types, the signal phrases that the config adds, and the dormancy marker ("" for none)."""

    types: frozenset[str]
    signals: Mapping[str, tuple[str, ...]]
    marker: str


def untagged(path: str, data: bytes, words: Vocabulary) -> list[Untagged]:
    """Return the entries of a knowledge file that have no tag, in order; one with an unknown tag has one."""
    found = []
    for entry in parse(data, words.types, words.marker).entries:
        if entry.type is not None or entry.tag is not None:
            continue
        given = classify(f"{entry.title} {entry.body}", words.signals)
        edit = tag_edit(data, entry, given.type, words.types, words.marker)
        found.append(Untagged(path, entry.line, entry.title, given.type, given.signal, edit))
    return found


def write_tags(path: str, words: Vocabulary, locks: Locks, real_now: float) -> tuple[list[Untagged], Written | None]:
    """Put the tags into a file, under its lock; return what was tagged, and the write.

    Raises:
        Refused: the file may not be written now.
        FileNotFoundError, FileUnreadable, FileUnwritable, LockTimeout, ChangedUnderneath: nothing was written.
    """
    done: list[Untagged] = []

    def edit(data: bytes) -> bytes:
        done[:] = [one for one in untagged(path, data, words) if one.edit is not None]
        return apply(data, [one.edit for one in done if one.edit is not None])

    outcome = rewrite(path, edit, locks, quiet_seconds=0, now=real_now)
    if isinstance(outcome, Deferred):
        raise Refused(outcome.reason, where=path, hint="try again when that is over")
    if not isinstance(outcome, Written):
        return [], None
    return done, outcome
