"""Reading the files of a knowledge base: only those that changed, archives beside them included."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kbd.core.model import Metadata, Problem
from kbd.errors import FileUnreadable
from kbd.store.files import read_regular
from kbd.store.identity import inode, modified_ns
from kbd.store.ledger.lessons import NoteRow
from kbd.store.notes import archive_of, is_archive, knowledge_files, live_of

MAX_BYTES = 64 << 20
NEVER_NS = -1
"""The modification time in the stamp of a file that is to be read anew."""


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A knowledge file as read; `data` is None where it is unchanged since the last sync.

    `values` is what a file beside it says of its entries, by key, where counters are kept there; else None.
    """

    path: str
    archive: bool
    sha: str
    size: int
    mtime_ns: int
    ino: int
    data: bytes | None
    values: Mapping[str, Metadata] | None = None


def describe(path: str, data: bytes) -> NoteFile:
    """Return a file with these bytes, as they were just read or written.

    If something else stands there by now, the stamp is one that no file has, so that the next look reads it.
    """
    sha = hashlib.sha256(data).hexdigest()
    try:
        seen = os.stat(path)
        is_current = read_regular(path, MAX_BYTES) == data
    except (FileNotFoundError, FileUnreadable):
        return NoteFile(path, is_archive(path), sha, len(data), NEVER_NS, 0, data)
    mtime_ns = modified_ns(seen) if is_current else NEVER_NS
    return NoteFile(path, is_archive(path), sha, len(data), mtime_ns, inode(seen), data)


def is_synced(file: NoteFile, row: NoteRow) -> bool:
    """Tell whether a file is as it was when last synced."""
    return (file.sha, file.mtime_ns, file.ino) == (row.sha, row.mtime_ns, row.ino)


def read_base(
    patterns: Sequence[str], known: Mapping[str, NoteRow], anew: Collection[str] = ()
) -> tuple[list[NoteFile], list[Problem]]:
    """Return the files of a base and those that could not be read (`where` is the path).

    A folder that is not there, or cannot be listed, leaves its files unread, not gone: a failed read is never an
    empty result.

    Args:
        patterns: absolute globs.
        known: the files as last synced, by path.
        anew: paths to read even if they are unchanged.
    """
    files: list[NoteFile] = []
    problems: list[Problem] = []
    listing = knowledge_files(patterns)
    problems.extend(listing.problems)
    lost = [p for p in known if any(p.startswith(folder.rstrip("/") + "/") for folder in listing.unlisted)]
    paths = [*listing.files]
    paths += [a for a in (archive_of(p) for p in listing.files) if os.path.lexists(a)]
    paths += [a for a in listing.archives if a in known or _is_orphan(a)]
    # Archives whose file went; and what stands, as a folder or the like, where a file was: unreadable, not gone.
    listed = set(paths)
    rest = (p for p in known if p not in listed and os.path.lexists(p))
    paths += [p for p in rest if known[p].archive or not os.path.isfile(p)]
    live = set(listing.files)
    for path in dict.fromkeys(paths):
        owner = None if path in live or not _has_links(path) else same_file(path, listing.files)
        if owner is not None:
            problems.append(Problem("knowledge_unreadable", path, f"is no archive but {owner}", "remove the link"))
            continue
        try:
            files.append(_read(path, None if path in anew else known.get(path)))
        except FileNotFoundError:
            continue
        except FileUnreadable as exc:
            problems.append(Problem("knowledge_unreadable", path, exc.what, exc.hint))
    read = {f.path for f in files}
    problems.extend(
        Problem("knowledge_unreadable", p, "its folder cannot be listed", "mount or restore the folder")
        for p in lost
        if p not in read
    )
    return files, problems


def _is_orphan(path: str) -> bool:
    """Tell whether an archive that no file stands beside holds what kbd archived: a name alone says little."""
    if os.path.lexists(live_of(path)):
        return False
    try:
        return b"decay:archived" in read_regular(path, MAX_BYTES)
    except (FileNotFoundError, FileUnreadable):
        return False


def _read(path: str, row: NoteRow | None) -> NoteFile:
    seen = os.stat(path)
    if row is not None and (row.size, row.mtime_ns, row.ino) == (seen.st_size, modified_ns(seen), inode(seen)):
        return NoteFile(path, row.archive, row.sha, row.size, row.mtime_ns, row.ino, None)
    data = read_regular(path, MAX_BYTES)
    sha = hashlib.sha256(data).hexdigest()
    return NoteFile(path, is_archive(path), sha, len(data), modified_ns(seen), inode(seen), data)


def own_files(
    files: Sequence[NoteFile], base: str, taken: dict[int, list[tuple[str, str]]]
) -> tuple[list[NoteFile], list[Problem]]:
    """Return the files that belong to no other base, and a problem for each that does: it would count twice.

    Args:
        files: of the base.
        base: its name.
        taken: inode number → (path, base) of files that have been returned so far; grows.
    """
    own: list[NoteFile] = []
    problems: list[Problem] = []
    for file in files:
        others = taken.setdefault(file.ino, [])
        owner = next((name for path, name in others if name != base and same_file(path, [file.path])), None)
        if owner is None:
            own.append(file)
            others.append((file.path, base))
        else:
            what = f"is also in base {owner}; a file belongs to one base"
            problems.append(Problem("knowledge_unreadable", file.path, what, "take it out of one of the two"))
    return own, problems


def _has_links(path: str) -> bool:
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(seen.st_mode) or seen.st_nlink > 1


def same_file(path: str, others: Iterable[str]) -> str | None:
    """Return the first of the others that is the same file, whatever links lead to it; None if there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    for other in others:
        with suppress(OSError):
            if os.path.samestat(seen, os.stat(other)):
                return other
    return None
