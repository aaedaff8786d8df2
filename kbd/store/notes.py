"""Knowledge files on disk: which files a base's globs mean, and the names beside them."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kbd.core.model import Problem
from kbd.store.descriptors import is_utf8, shown, strerror

_MAGIC = re.compile(r"[*?[]")
# Obsidian, Dropbox (also its case conflicts), Nextcloud, Syncthing, and kbd's own.
_CONFLICT_COPY = re.compile(
    r"\((?:case )?conflict\b|conflicted copy|\.sync-conflict-|\.kbd-conflict(?:\.[^.]+)?$", re.IGNORECASE
)
_OWN_COPY = re.compile(r"(.+?)(?:\.\d+)?\.kbd-conflict((?:\.[^.]+)?)", re.DOTALL)
_ARCHIVE = "-archive"


@dataclass(frozen=True, slots=True)
class Listing:
    """What the globs of a base mean on disk.

    Attributes:
        files: absolute paths, sorted; of several names of one file the one that is no link, else the first.
        problems: one per folder that is not there or cannot be listed, and per name that is not UTF-8
            (`knowledge_unreadable`).
        unlisted: these folders; what was known to lie in them is unread, not gone.
        archives: what the globs find besides that has the name of an archive; its file may be gone.
    """

    files: tuple[str, ...]
    problems: tuple[Problem, ...]
    unlisted: tuple[str, ...]
    archives: tuple[str, ...] = ()


def knowledge_files(patterns: Sequence[str], root: str = "/") -> Listing:
    """Return the knowledge files that the globs mean.

    Never among them, whatever a glob says: archives and links to them, dotfiles, conflict copies, kbd's own files, and
    what is no regular file. Links are followed for files, and for folders that a pattern names; `**` stays out of
    linked and of hidden folders.

    Args:
        patterns: globs with `*`, `?`, `[…]` and `**`, relative to `root` or absolute.
        root: absolute path of a folder.
    """
    search = _Search()
    found = [path for pattern in patterns for path in search.expand(root, pattern)]
    files: dict[tuple[int, int] | str, str] = {}
    for path in sorted(set(found), key=lambda path: (os.path.islink(path), path)):
        if not _is_never_taken(os.path.basename(path)) and not is_archive(os.path.realpath(path)):
            for identity in _identity(path):
                files.setdefault(identity, path)
    problems = [
        Problem("knowledge_unreadable", shown(folder), f"cannot be listed: {what}", "mount or restore the folder")
        for folder, what in search.unlisted.items()
    ]
    unnamable = {path for path in files.values() if not is_utf8(path)}
    problems += [Problem("knowledge_unreadable", shown(p), "its name is not UTF-8", "rename it") for p in unnamable]
    archives = (path for path in sorted(set(found)) if is_archive(path) and os.path.basename(path)[0] != ".")
    return Listing(
        tuple(sorted({*files.values()} - unnamable)),
        tuple(problems),
        tuple(search.unlisted),
        tuple(path for path in archives if is_utf8(path) and os.path.isfile(path)),
    )


def conflict_copies(paths: Iterable[str]) -> list[Problem]:
    """Return one problem (`write_conflict`) per file whose text an editor wrote over kbd still lies beside it.

    Args:
        paths: files of a base; all copies in their folders are told, links resolved.
    """
    copies: dict[str, list[str]] = {}
    named = [*paths]
    linked = (os.path.realpath(path) for path in named if os.path.islink(path))
    folders = {os.path.dirname(path) for path in (*named, *linked)}
    for folder in sorted({os.path.realpath(folder) for folder in folders}):
        try:
            names = os.listdir(folder)
        except OSError:  # told where its files are read
            continue
        for name in sorted(names):
            found = _OWN_COPY.fullmatch(name)
            if found:
                copies.setdefault(os.path.join(folder, found[1] + found[2]), []).append(name)
    return [
        Problem(
            "write_conflict",
            shown(path),
            f"an editor wrote over kbd; its text is in {shown(names[0])}"
            + (f" and {len(names) - 1} more beside it" if len(names) > 1 else ", beside it"),
            "merge it by hand, then remove the copy",
        )
        for path, names in copies.items()
    ]


def is_archive(path: str) -> bool:
    """Tell whether a file is the archive of another by its name."""
    return os.path.splitext(os.path.basename(path))[0].lower().endswith(_ARCHIVE)


def archive_of(path: str) -> str:
    """Return the path of a file's archive: `NAME-archive.md` beside `NAME.md`."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}{_ARCHIVE}{suffix}"


def live_of(path: str) -> str:
    """Return the path of the file whose archive this is."""
    stem, suffix = os.path.splitext(path)
    return stem[: -len(_ARCHIVE)] + suffix


def _is_never_taken(name: str) -> bool:
    hidden_or_own = name.startswith(".") or name.endswith(".kbd.yaml")
    return hidden_or_own or is_archive(name) or _CONFLICT_COPY.search(name) is not None


def _identity(path: str) -> Iterator[tuple[int, int] | str]:
    """Yield what tells the file from others if it is one to read; a file that cannot be looked at is, too."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        # A link to nothing is there and unreadable; anything else went meanwhile.
        if os.path.islink(path):
            yield path
    except NotADirectoryError:
        return
    except OSError:
        yield path
    else:
        if stat.S_ISREG(seen.st_mode):
            yield seen.st_dev, seen.st_ino


@dataclass(slots=True)
class _Search:
    """Expands globs as `glob` does, but tells which folders it could not list: those would pass for empty."""

    unlisted: dict[str, str] = field(default_factory=dict)

    def expand(self, root: str, pattern: str) -> list[str]:
        folder, parts = root, os.path.normpath(pattern).split("/")
        if os.path.isabs(pattern):
            folder, parts = "/", parts[1:]
        while parts[:1] == [".."]:
            folder, parts = os.path.dirname(folder), parts[1:]
        if parts[-1:] == ["**"]:
            parts.append("*")
        level = [folder]
        for depth, part in enumerate(parts):
            fixed = not any(_MAGIC.search(before) for before in parts[:depth])
            last = depth == len(parts) - 1
            level = [path for folder in level for path in self._step(folder, part, fixed=fixed, last=last)]
        return level

    def _step(self, folder: str, part: str, *, fixed: bool, last: bool) -> Iterator[str]:
        if part == "**":
            yield from self._folders(folder, fixed=fixed)
        elif _MAGIC.search(part):
            for entry in self._entries(folder, fixed=fixed):
                if fnmatch.fnmatchcase(entry.name, part) and (part[0] == "." or entry.name[0] != "."):
                    yield entry.path
        else:
            path = os.path.join(folder, part)
            if not last or os.path.lexists(path):
                yield path
            elif fixed:
                self._entries(folder, fixed=True)

    def _folders(self, folder: str, *, fixed: bool) -> Iterator[str]:
        waiting = [folder]
        while waiting:
            current = waiting.pop()
            yield current
            for entry in self._entries(current, fixed=fixed and current == folder):
                if entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)

    def _entries(self, folder: str, *, fixed: bool) -> list[os.DirEntry[str]]:
        """Return what lies in a folder; one that cannot be listed is noted if it exists or must be there (`fixed`)."""
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError) as error:
            if fixed:
                self.unlisted[folder] = strerror(error)
        except OSError as error:
            self.unlisted[folder] = strerror(error)
        return []
