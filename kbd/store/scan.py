"""Finds the files of a source root that may be read, without opening any.

Only regular files inside the root are found: no FIFO, device or socket, nothing behind a link that leaves the root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

import msgspec

from kbd.core.model import Problem
from kbd.store.descriptors import shown
from kbd.store.identity import device, inode, modified_ns

MAX_FILES = 1_000_000
HOT_DAYS = 7
COLD_SECONDS = 3600.0
_DAY_SECONDS = 86_400

T = TypeVar("T")


class Found(msgspec.Struct, Generic[T], frozen=True):
    """A file to read, as a scan saw it.

    Attributes:
        path: where to open it; of a link, the target's real path.
        relpath: its name inside the root, with `/`; of a link, the link's.
        dev: device.
        ino: inode; with `dev` it tells that a link and its target are one file.
        size: in bytes.
        mtime_ns: modification time.
        linked: found through a link.
        kind: what `keep` said of it.
        ctime_ns: when its content or its inode last changed; no program can set it.
    """

    path: str
    relpath: str
    dev: int
    ino: int
    size: int
    mtime_ns: int
    linked: bool
    kind: T
    ctime_ns: int = 0


def walk(
    root: str,
    keep: Callable[[str], T | None],
    *,
    exclude: Iterable[str] = (),
    max_files: int = MAX_FILES,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Found[T] | Problem] | None:
    """Return the files under a root that `keep` wants, in no order, and the problems met; None if there is no root.

    The root may be a link, or a single file (then `keep` gets its base name). Directories that are links are not
    entered: one inside the root is found under its own name. Memory grows with the directories not yet entered, not
    with the files. A file or directory that goes away meanwhile is passed over.

    Args:
        root: directory or file.
        keep: maps a file's name inside the root to what it is, or to None for a file of no interest.
        exclude: globs, see `excluded`.
        max_files: so many files are found at most; then a problem says so.
        goes_on: asked before each folder, as there may be millions without a file of interest; False ends the walk.
    """
    real = os.path.realpath(root)
    try:
        seen = os.stat(real)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return iter((_unreadable("source_unreadable", root, error),))
    if stat.S_ISDIR(seen.st_mode):
        return _limited(_Walk(real, keep, excluded(exclude), goes_on=goes_on).found(), max_files, root)
    if not stat.S_ISREG(seen.st_mode):
        what, hint = "neither a directory nor a regular file", "name the folder that holds the transcripts"
        return iter((Problem("source_unreadable", root, what, hint),))
    name = os.path.basename(root)
    kind = None if excluded(exclude)(name, real) else keep(name)
    return iter(() if kind is None else (_found(real, name, seen, kind, linked=os.path.islink(root)),))


def look(
    root: str, path: str, keep: Callable[[str], T | None], *, exclude: Iterable[str] = ()
) -> tuple[Found[T] | Problem, ...]:
    """Return what `walk` would find at one path below a root: the file, a problem, or nothing.

    Args:
        root: real path of a directory.
        path: absolute path below it.
        keep: as for `walk`.
        exclude: as for `walk`.
    """
    relpath = os.path.relpath(path, root)
    is_excluded = excluded(exclude)
    kind = keep(relpath)
    folder = os.path.dirname(path)
    if kind is None or is_excluded(relpath, path) or os.path.realpath(folder) != folder:
        return ()
    try:
        seen = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        return (_unreadable("file_unreadable", path, error),)
    if stat.S_ISLNK(seen.st_mode):
        found = _Walk(root, keep, is_excluded).linked(path, relpath, kind)
        return () if found is None else (found,)
    return (_found(path, relpath, seen, kind, linked=False),) if stat.S_ISREG(seen.st_mode) else ()


def below(
    root: str, folder: str, keep: Callable[[str], T | None], *, exclude: Iterable[str] = ()
) -> Iterator[Found[T] | Problem]:
    """Return what `walk` would find in one folder below a root, and below that folder. Arguments as for `look`."""
    relpath, is_excluded = os.path.relpath(folder, root), excluded(exclude)
    if is_excluded(relpath, folder) or os.path.realpath(folder) != folder:
        return iter(())
    return _Walk(root, keep, is_excluded, relpath).found()


def excluded(globs: Iterable[str]) -> Callable[[str, str], bool]:
    """Return a test of (name inside the root, absolute path) that is true for what one of the globs covers.

    `*` and `?` match within a component, `**` over several, `[…]` a set. A glob that begins with `/` is held against
    the absolute path, any other against the name inside the root, and one without `/` against each component of that.
    A folder that is covered covers all in it.
    """
    rooted: list[list[str]] = []
    absolute: list[list[str]] = []
    for glob in globs:
        bare = glob.rstrip("/")
        (absolute if bare.startswith("/") else rooted).append((bare if "/" in bare else f"**/{bare}").split("/"))
    if not (rooted or absolute):  # asked for each file
        return lambda _relpath, _path: False

    def is_excluded(relpath: str, path: str) -> bool:
        return _any_covers(rooted, relpath) or _any_covers(absolute, path)

    return is_excluded


def excluded_folder(globs: Iterable[str]) -> Callable[[str], bool]:
    """Return the same test for a working directory, as if the file system were the root."""
    is_excluded = excluded(globs)
    return lambda folder: is_excluded(folder.lstrip("/"), folder)


def is_due(mtime_ns: int, checked_at: float | None, now: float) -> bool:
    """Return whether a known file is to be looked at in this scan.

    A file that moved in the last 7 days always is, any other once an hour. Times in seconds since the epoch; a clock
    that was set back makes everything due.
    """
    if checked_at is None or now < checked_at:
        return True
    hot = now - mtime_ns / 1_000_000_000 <= HOT_DAYS * _DAY_SECONDS
    return hot or now - checked_at >= COLD_SECONDS


class _Walk(Generic[T]):
    def __init__(
        self,
        real: str,
        keep: Callable[[str], T | None],
        is_excluded: Callable[[str, str], bool],
        folder: str = "",
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._real = real
        self._keep = keep
        self._is_excluded = is_excluded
        self._folders = [folder]
        self._goes_on = goes_on

    def found(self) -> Iterator[Found[T] | Problem]:
        while self._folders and self._goes_on():
            yield from self._folder(self._folders.pop())

    def _folder(self, relpath: str) -> Iterator[Found[T] | Problem]:
        path = os.path.join(self._real, relpath)
        try:
            with os.scandir(path) as entries:
                yield from self._entries(entries, relpath)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not relpath:  # a folder may go away once listed; a root that does is not an empty one
                yield _unreadable("source_unreadable", path, error)
        except OSError as error:
            yield _unreadable("folder_unreadable" if relpath else "source_unreadable", path, error)

    def _entries(self, entries: Iterator[os.DirEntry[str]], folder: str) -> Iterator[Found[T] | Problem]:
        is_told = False
        for entry in entries:
            try:
                found = self._entry(entry, f"{folder}/{entry.name}" if folder else entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue  # gone since it was listed, or a link to nothing
            except OSError as error:
                # Told once a folder: in one without search permission every file would say the same.
                if not is_told:
                    yield _unreadable("file_unreadable", entry.path, error)
                is_told = True
            else:
                if found is not None:
                    yield found

    def _entry(self, entry: os.DirEntry[str], relpath: str) -> Found[T] | None:
        if entry.is_dir(follow_symlinks=False):
            if not self._is_excluded(relpath, entry.path):
                self._folders.append(relpath)
            return None
        if not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
            return None
        kind = self._keep(relpath)
        if kind is None or self._is_excluded(relpath, entry.path):
            return None
        if entry.is_symlink():
            return self.linked(entry.path, relpath, kind)
        return _found(entry.path, relpath, entry.stat(follow_symlinks=False), kind, linked=False)

    def linked(self, path: str, relpath: str, kind: T) -> Found[T] | None:
        target = os.path.realpath(path)
        inside = os.path.join(self._real, "")
        if not target.startswith(inside) or self._is_excluded(target.removeprefix(inside), target):
            return None
        seen = os.lstat(target)
        return _found(target, relpath, seen, kind, linked=True) if stat.S_ISREG(seen.st_mode) else None


def _found(path: str, relpath: str, seen: os.stat_result, kind: T, *, linked: bool) -> Found[T]:
    ctime_ns = seen.st_ctime_ns
    return Found(path, relpath, device(seen), inode(seen), seen.st_size, modified_ns(seen), linked, kind, ctime_ns)


def _limited(found: Iterator[Found[T] | Problem], max_files: int, root: str) -> Iterator[Found[T] | Problem]:
    files = 0
    for item in found:
        if isinstance(item, Found):
            if files == max_files:
                what = f"more than {max_files} files; the rest is not read"
                yield Problem("too_many_files", root, what, "exclude folders or split the source")
                return
            files += 1
        yield item


def _unreadable(code: str, where: str, error: OSError) -> Problem:
    return Problem(code, shown(where), f"cannot be read ({error.strerror})", "check its permissions")


def _any_covers(globs: list[list[str]], path: str) -> bool:
    components = path.split("/")
    return any(_covers(glob, components) for glob in globs)


def _covers(glob: list[str], path: list[str]) -> bool:
    if not glob:
        return True  # the rest of the path lies inside what is covered
    if glob[0] == "**":
        return any(_covers(glob[1:], path[skipped:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], glob[0]) and _covers(glob[1:], path[1:])
