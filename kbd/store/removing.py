"""Taking away a file that kbd made, unless someone else has written into it meanwhile."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

from kbd.errors import ChangedUnderneath, FileUnreadable
from kbd.store.conflicts import save_conflict
from kbd.store.descriptors import StrPath, directory, open_regular, read_fd, unwritable
from kbd.store.displaced import DISPLACED, KeptFile
from kbd.store.exchange import rename_new
from kbd.store.files import sync_directory
from kbd.store.temporary import Temporary, label, mark_in_use


def is_alone(path: StrPath) -> bool:
    """Tell whether this name is the file's only one: no link, and no hard link beside it."""
    seen = os.lstat(path)
    return not os.path.islink(path) and seen.st_nlink == 1


def remove_file(path: StrPath, old: bytes) -> None:
    """Take a file away if its content is still `old`.

    It loses its name before it is compared, so that nothing that takes the name meanwhile is touched; what an editor
    still writes into it is saved beside it (`DISPLACED`).

    Raises:
        ChangedUnderneath: the content is not `old`; the file has its name again.
        FileUnwritable: the system refused.
        FileUnreadable: it is no regular file.
    """
    with unwritable(path), ExitStack() as stack:
        real = os.path.realpath(path, strict=True)
        folder, name = os.path.split(real)
        dir_fd = stack.enter_context(directory(folder))
        inode = KeptFile(fd := open_regular(name, dir_fd=dir_fd), (old,))
        with ExitStack() as failed:
            failed.callback(inode.close)
            mark_in_use(fd)
            # A sweep after a crash takes it for what it is: a text that kbd knows, or else one to be saved.
            aside = Temporary(name, carried=True)
            label(aside, dir_fd, name, (old, old))
            _drop(aside.name, name, dir_fd, real, old)
            failed.pop_all()
        DISPLACED.put(real, inode)
        sync_directory(dir_fd)


def _drop(aside: str, name: str, dir_fd: int, real: str, old: bytes) -> None:
    """Remove what was put aside if it is as expected; else give it its name back, or save it beside who has that."""
    with ExitStack() as stack:
        try:
            fd = open_regular(aside, dir_fd=dir_fd)
            stack.callback(os.close, fd)
            data = read_fd(fd, os.fstat(fd).st_size)
        except (OSError, FileUnreadable):
            _give_back(aside, name, dir_fd)
            raise
        if data == old:
            with suppress(FileNotFoundError):  # swept meanwhile
                os.unlink(aside, dir_fd=dir_fd)
            return
        try:
            _give_back(aside, name, dir_fd)
        except FileExistsError:
            save_conflict(real, data, fd)
            os.unlink(aside, dir_fd=dir_fd)
    raise ChangedUnderneath("changed meanwhile", where=real, hint="try again")


def _give_back(aside: str, name: str, dir_fd: int) -> None:
    if not rename_new(aside, name, dir_fd=dir_fd):
        os.link(aside, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
        os.unlink(aside, dir_fd=dir_fd)
