"""Replacing a person's file without losing what anyone else writes to it.

A replacement is a temporary file in the same directory, renamed over the old one once that has been compared a
last time. Where the system can, the two are exchanged, and what came out is compared as well: what is not as it was
believed to be is newer, and gets its name back. Each inode that loses its name is looked at again later.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from kbd.errors import ChangedUnderneath, FileUnreadable, FileUnwritable
from kbd.store import gitstate
from kbd.store.descriptors import StrPath, directory, open_regular, read_fd, unwritable, write_all
from kbd.store.displaced import DISPLACED, KeptFile
from kbd.store.exchange import exchange
from kbd.store.files import sync_directory
from kbd.store.leases import is_being_written, others_waiting
from kbd.store.temporary import Temporary, label, mark_in_use, step_mtime, temporary

_MOST_EXCHANGES = 9


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file with new content.

    Attributes:
        real: the file that was written, symbolic links resolved.
        mtime_ns: its modification time.
    """

    real: str
    mtime_ns: int


@dataclass(slots=True)
class _Inode:
    """What has, or had, the name: an open file as it was read last; `fd` is -1 for what is none, or may not be read."""

    fd: int
    number: int
    data: bytes = b""
    is_locked_by_others: bool = False
    is_unread: bool = False

    @classmethod
    def of(cls, name: str, dir_fd: int) -> _Inode:
        """Open what has the name, and read it; it is marked as in use while it may have a temporary's name."""
        fd = -1
        try:
            fd = open_regular(name, dir_fd=dir_fd)
            is_marked, seen = mark_in_use(fd), os.fstat(fd)
            return cls(fd, seen.st_ino, read_fd(fd, seen.st_size), not is_marked)
        except (OSError, FileUnreadable) as error:
            if fd >= 0:
                os.close(fd)
            # It may be a text that somebody saved, and must not be lost for being unreadable here.
            number = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
            return cls(-1, number, is_unread=isinstance(error, OSError))

    def is_as_believed(self, other: _Inode) -> bool:
        return self.data == other.data if self.fd >= 0 and other.fd >= 0 else self.number == other.number


def replace_file(
    path: StrPath, old: bytes, new: bytes, *, look_again: bool = True, is_locked: bool = False
) -> Replaced:
    """Give a file new content if its content is still `old`.

    A symbolic link stays one: its target is replaced, in the target's directory. Mode, owner, access list and user
    attributes stay, and the modification time changes. A file with several hard links, with an owner that cannot be
    given to another file, or mounted on its own, is rewritten in place: it keeps its inode, and what differs is
    written in one go, but a power cut in that instant may tear it.

    What others write into the old inode, or wrote at the last instant, is saved beside the file (`DISPLACED`), unless
    `look_again` is false: for files that only kbd writes. `is_locked` says that the caller has the file itself locked.

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
            why = errno.EROFS if os.statvfs(real).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(why, os.strerror(why), real)
        dir_fd = stack.enter_context(directory(folder))
        with ExitStack() as looking:
            held = open_regular(name, dir_fd=dir_fd)
            looking.callback(os.close, held)
            _require(held, old, path)
            if os.fstat(held).st_nlink == 1:
                made = looking.enter_context(temporary(dir_fd, new, held, carry_all=True))
                if made.carried:
                    try:
                        return _renamed(real, dir_fd, made, (old, new), look_again=look_again, is_locked=is_locked)
                    except OSError as error:
                        if error.errno != errno.EBUSY:  # a mount of its own, as containers have of single files
                            raise
            if is_being_written(held):
                # What that one writes would be mixed with what kbd does, and there is no old file to look at again.
                what = "another program has it open for writing"
                raise ChangedUnderneath(what, where=str(path), hint="try again later")
        return Replaced(real, _overwrite(name, dir_fd, old, new, path))


def _require_kind(path: StrPath, real: str) -> None:
    """Refuse a link such as `lessons.md` → `~/.bashrc`: in a clone it is a stranger's, and what kbd appends is, too."""
    if os.path.splitext(real)[1].lower() != os.path.splitext(path)[1].lower():
        hint = "kbd writes through a link only if both names end alike; put a file there"
        raise FileUnwritable(f"a link to a file of another kind ({real})", where=str(path), hint=hint)


def _require(fd: int, expected: bytes, path: StrPath) -> None:
    if read_fd(fd, len(expected)) != expected:
        raise ChangedUnderneath("changed meanwhile", where=str(path), hint="try again")


def _require_git_at_rest(path: StrPath) -> None:
    """Look once more: git takes a file's size, then reads so many bytes; what it commits of a file replaced in between
    lacks its end."""
    state = gitstate.at_work(path)
    if state is not None:
        raise ChangedUnderneath(f"git began to work ({state})", where=str(path), hint="try again")


def _renamed(
    real: str, dir_fd: int, made: Temporary, contents: tuple[bytes, bytes], *, look_again: bool, is_locked: bool
) -> Replaced:
    """Compare once more, rename, and look at what came out."""
    old, new = contents
    name = os.path.basename(real)
    seen = [_Inode.of(name, dir_fd)]
    stays: int | None = None
    try:
        if seen[0].fd < 0 or seen[0].data != old:
            stays = seen[0].number
            raise ChangedUnderneath("changed meanwhile", where=real, hint="try again")
        if seen[0].is_locked_by_others and not is_locked:
            stays = seen[0].number
            raise ChangedUnderneath("another program has it locked", where=real, hint="try again")
        seen.append(_Inode.of(made.name, dir_fd))
        # Of the new file, while it has a name that nobody else knows: a rename does not change it.
        mtime_ns = os.fstat(seen[1].fd).st_mtime_ns
        label(made, dir_fd, name, contents)
        if look_again:
            _require_git_at_rest(real)
        stays = _exchanged(made.name, name, dir_fd, seen)
        sync_directory(dir_fd)
    finally:
        stays = _number(name, dir_fd) if stays is None else stays
        first = {inode.number: inode for inode in reversed(seen)}
        for inode in seen:
            nameless = inode.number != stays and inode is first[inode.number]
            _let_go(inode, real, contents, look_again=look_again and nameless)
            made.known |= set() if inode.is_unread else {inode.number}
    if stays != seen[1].number:
        raise ChangedUnderneath("changed at the last instant", where=real, hint="try again")
    return Replaced(real, mtime_ns)


def _number(name: str, dir_fd: int) -> int | None:
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
    except OSError:
        return None


def _exchanged(temporary_name: str, name: str, dir_fd: int, seen: list[_Inode]) -> int:
    """Exchange the two names until what comes out is what was believed to have the name.

    Whoever saved between a look and an exchange wrote the newest text: it came out, and goes back.

    Args:
        temporary_name: the name of `seen[1]`.
        name: the name of `seen[0]`, as it was when last looked at.
        dir_fd: their directory.
        seen: takes what comes out and is neither.

    Returns:
        The number of the inode that has the name.
    """
    under, hand = seen
    for _ in range(_MOST_EXCHANGES):
        if not exchange(temporary_name, name, dir_fd=dir_fd):
            os.replace(temporary_name, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
            return hand.number
        try:
            out = _Inode.of(temporary_name, dir_fd)
        except FileNotFoundError:  # a sweep took it for a dead writer's, and saved what was in it if it was new
            return hand.number
        seen.append(out)
        if out.is_as_believed(under):
            return hand.number
        under, hand = hand, out
    return under.number


def _let_go(inode: _Inode, real: str, contents: tuple[bytes, bytes], *, look_again: bool) -> None:
    """Close what has the name; what has it no more is looked at again, for it may say what stands nowhere else."""
    if inode.fd < 0:
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(inode.fd, fcntl.LOCK_UN)
    if look_again:
        DISPLACED.put(real, KeptFile(inode.fd, contents))
    else:
        os.close(inode.fd)


def _overwrite(name: str, dir_fd: int, old: bytes, new: bytes, path: StrPath) -> int:
    """Rewrite a file in place from the first byte that differs; return its modification time."""
    start = len(os.path.commonprefix([old, new]))  # takes long, so nothing may rest on what was seen before
    fd = open_regular(name, dir_fd=dir_fd, write=True)
    try:
        with others_waiting(fd):
            _require_git_at_rest(path)
            _require(fd, old, path)
            before_ns = os.fstat(fd).st_mtime_ns
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
        if os.fstat(fd).st_ino != _number(name, dir_fd):
            raise ChangedUnderneath("replaced meanwhile", where=str(path), hint="try again")
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)
