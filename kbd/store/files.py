"""Reading regular files only, and replacing a person's file without losing what anyone else writes to it.

A replacement is a temporary file in the same directory, renamed over the old one once that has been compared a
last time. Where the system can, the two are exchanged, so that what came out can be compared as well; the old
inode stays open for a while, because an editor may still write into it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass

from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable
from kbd.store.descriptors import StrPath, directory, open_regular, read_fd, strerror, unwritable, write_all
from kbd.store.exchange import exchange, rename_new
from kbd.store.temporary import mark_in_use, step_mtime, temporary

_TICK_NS = 2_000_000_000


class KeptFile:
    """The inode that a replacement took the name from, open for a second look; dropped or closed, it is gone."""

    def __init__(self, fd: int, data: bytes | None) -> None:
        """Take over `fd`, whose content was `data`; None to take what it is now."""
        self._fd = fd
        self._stamp: tuple[int, int, int] | None = None
        self.accept(self._content() if data is None else data)

    def _content(self) -> bytes:
        return read_fd(self._fd, os.fstat(self._fd).st_size)

    def late_bytes(self) -> bytes | None:
        """Return the content if someone has written to it since the last that was accepted, else None."""
        seen, now_ns = os.fstat(self._fd), time.time_ns()
        stamp = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if stamp == self._stamp:
            return None
        data = self._content()
        if hashlib.sha256(data).digest() != self._digest:
            return data
        # A write within the same tick of the file system's clock would leave the stamp as it is.
        self._stamp = stamp if now_ns - seen.st_ctime_ns > _TICK_NS else None
        return None

    def accept(self, data: bytes) -> None:
        """Take this content, which is safe elsewhere, for no news any more."""
        self._digest = hashlib.sha256(data).digest()

    def close(self) -> None:
        """Let the inode go; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        """Let the inode go with the object: a caller without interest in it need not close it."""
        self.close()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file with new content.

    Attributes:
        real: the file that was written, symbolic links resolved.
        mtime_ns: its modification time.
        kept: the old inode; None after a rewrite in place, which has no other.
        late: foreign content that came in at the last instant and is not in the file; the caller merges or saves it.
    """

    real: str
    mtime_ns: int
    kept: KeptFile | None
    late: bytes | None


def read_regular(path: StrPath, max_bytes: int) -> bytes:
    """Return the content of a regular file, through symbolic links.

    Raises:
        FileNotFoundError: there is nothing of that name.
        FileUnreadable: it is no regular file (nothing else is ever opened), is larger than `max_bytes`, is a link
            to nothing, or cannot be read.
    """
    return read_with_stat(path, max_bytes)[0]


def read_with_stat(path: StrPath, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return content and status of a regular file, both of one open file; raises as `read_regular`."""
    try:
        fd = open_regular(os.fspath(path), follow=True)
        try:
            data = read_fd(fd, max_bytes)
            status = os.fstat(fd)
        finally:
            os.close(fd)
    except FileNotFoundError as error:
        if os.path.islink(path):
            raise FileUnreadable("a link to nothing", where=str(path), hint="mend or remove the link") from error
        raise
    except OSError as error:
        raise FileUnreadable(strerror(error), where=str(path), hint="check its permissions") from error
    if len(data) > max_bytes:
        raise FileUnreadable(f"larger than {max_bytes} bytes", where=str(path), hint="split the file")
    return data, status


def replace_file(path: StrPath, old: bytes, new: bytes) -> Replaced:
    """Give a file new content if its content is still `old`.

    A symbolic link stays one: its target is replaced, in the target's directory. Mode, owner, access list and user
    attributes stay, and the modification time changes. A file with several hard links, or with an owner that
    cannot be given to another file, is rewritten in place: it keeps its inode, and what differs is written in one
    go, but a power cut in that instant may tear it.

    Raises:
        ChangedUnderneath: the content is not `old`, or the file was replaced or removed; nothing was changed.
        FileUnwritable: the system refused (full, read-only, permissions), or it is a link to a file of another suffix;
            the content is still the old.
        FileUnreadable: it is no regular file.
    """
    with unwritable(path), ExitStack() as stack:
        real = os.path.realpath(path, strict=True)
        _require_kind(path, real)
        folder, name = os.path.split(real)
        if not os.access(real, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), real)
        dir_fd = stack.enter_context(directory(folder))
        held = open_regular(name, dir_fd=dir_fd)
        stack.callback(os.close, held)
        _require(held, old, path)
        if os.fstat(held).st_nlink == 1:
            new_name = stack.enter_context(temporary(dir_fd, new, held))
            if new_name is not None:
                return _renamed(real, dir_fd, new_name, old, new)
        return Replaced(real, _overwrite(name, dir_fd, old, new, path), None, None)


def create_file(path: StrPath, data: bytes, like: StrPath | None = None) -> str:
    """Make a file that is not there yet, whole or not at all, and return its real path.

    Args:
        path: the new file, in an existing directory.
        data: its content.
        like: an existing file whose mode, owner and attributes it gets; else the process's defaults.

    Raises:
        ChangedUnderneath: something of that name is there.
        FileUnwritable: the system refused.
    """
    with unwritable(path), ExitStack() as stack:
        folder, name = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder, strict=True)
        dir_fd = stack.enter_context(directory(folder))
        pattern = None
        if like is not None:
            pattern = open_regular(os.fspath(like), follow=True)
            stack.callback(os.close, pattern)
        new_name = str(stack.enter_context(temporary(dir_fd, data, pattern, carry_all=False)))
        try:
            if not rename_new(new_name, name, dir_fd=dir_fd):
                os.link(new_name, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
        except FileExistsError as error:
            raise ChangedUnderneath("appeared meanwhile", where=str(path), hint="try again") from error
        _sync_directory(dir_fd)
        return os.path.join(folder, name)


def _require_kind(path: StrPath, real: str) -> None:
    """Refuse a link such as `lessons.md` → `~/.bashrc`: in a clone it is a stranger's, and what kbd appends is, too."""
    if os.path.splitext(real)[1].lower() != os.path.splitext(path)[1].lower():
        hint = "kbd writes through a link only if both names end alike; put a file there"
        raise FileUnwritable(f"a link to a file of another kind ({real})", where=str(path), hint=hint)


def _require(fd: int, expected: bytes, path: StrPath) -> None:
    if read_fd(fd, len(expected)) != expected:
        raise ChangedUnderneath("changed meanwhile", where=str(path), hint="try again")


def _renamed(real: str, dir_fd: int, new_name: str, old: bytes, new: bytes) -> Replaced:
    """Compare once more, rename, and look at what came out."""
    name = os.path.basename(real)
    current = open_regular(name, dir_fd=dir_fd)
    with ExitStack() as failed:
        failed.callback(os.close, current)
        _require(current, old, real)
        # After an exchange this inode has the temporary's name: no sweep may take it before it was looked at.
        locked = mark_in_use(current)
        # Of the new file, while it has a name that nobody else knows: a rename does not change it.
        mtime_ns = os.stat(new_name, dir_fd=dir_fd, follow_symlinks=False).st_mtime_ns
        if exchange(new_name, name, dir_fd=dir_fd):
            late = _foreign(new_name, dir_fd, old)
            if late is not None:
                late = _settled(real, dir_fd, new_name, new, late)
        else:
            os.replace(new_name, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
            late = _unless(read_fd(current, os.fstat(current).st_size), old)
        if locked:
            fcntl.flock(current, fcntl.LOCK_UN)
        _sync_directory(dir_fd)
        failed.pop_all()
    return Replaced(real, mtime_ns, KeptFile(current, old if late is None else None), late)


def _unless(data: bytes, expected: bytes) -> bytes | None:
    return None if data == expected else data


def _foreign(name: str, dir_fd: int, expected: bytes) -> bytes | None:
    """Return what stands under the name if it is not the expected; empty for something that is no regular file."""
    try:
        fd = open_regular(name, dir_fd=dir_fd)
    except FileUnreadable:
        return b""
    try:
        return _unless(read_fd(fd, os.fstat(fd).st_size), expected)
    finally:
        os.close(fd)


def _settled(real: str, dir_fd: int, new_name: str, new: bytes, late: bytes) -> bytes:
    """Put foreign content back that was exchanged out, and report it as a change underneath.

    If someone wrote on top of the new content meanwhile, that is the newest and stays; then `late` is returned.

    Raises:
        ChangedUnderneath: the foreign content has its name again.
    """
    exchange(new_name, os.path.basename(real), dir_fd=dir_fd)
    if _foreign(new_name, dir_fd, new) is None:
        raise ChangedUnderneath("changed at the last instant", where=real, hint="try again")
    exchange(new_name, os.path.basename(real), dir_fd=dir_fd)
    return late


def _overwrite(name: str, dir_fd: int, old: bytes, new: bytes, path: StrPath) -> int:
    """Rewrite a file in place from the first byte that differs; return its modification time."""
    fd = open_regular(name, dir_fd=dir_fd, write=True)
    try:
        _require(fd, old, path)
        before_ns = os.fstat(fd).st_mtime_ns
        start = len(os.path.commonprefix([old, new]))
        try:
            # What lies beyond the old end comes first: a full disk shows before an old byte is touched.
            write_all(fd, new[len(old) :], len(old))
            write_all(fd, new[start : len(old)], start)
            os.ftruncate(fd, len(new))
            step_mtime(fd, before_ns)
            os.fsync(fd)
        except OSError:
            write_all(fd, old[start:], start)
            os.ftruncate(fd, len(old))
            raise
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)


def _sync_directory(dir_fd: int) -> None:
    try:
        os.fsync(dir_fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no directories
            raise
