"""Reading regular files only, and making new ones, whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from kbd.errors import ChangedUnderneath, FileUnreadable
from kbd.store.descriptors import StrPath, directory, open_regular, read_fd, strerror, unwritable
from kbd.store.exchange import rename_new
from kbd.store.temporary import temporary


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


def create_file(path: StrPath, data: bytes, like: StrPath | int | None = None) -> str:
    """Make a file that is not there yet, whole or not at all, and return its real path.

    Args:
        path: the new file, in an existing directory.
        data: its content.
        like: an existing file, by name or open, whose mode, owner and attributes it gets; else the process's defaults.

    Raises:
        ChangedUnderneath: something of that name is there.
        FileUnwritable: the system refused.
    """
    with unwritable(path), ExitStack() as stack:
        folder, name = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder, strict=True)
        dir_fd = stack.enter_context(directory(folder))
        pattern = None
        if isinstance(like, int):
            pattern = like
        elif like is not None:
            pattern = open_regular(os.fspath(like), follow=True)
            stack.callback(os.close, pattern)
        new = stack.enter_context(temporary(dir_fd, data, pattern))
        try:
            if not rename_new(new.name, name, dir_fd=dir_fd):
                os.link(new.name, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
        except FileExistsError as error:
            raise ChangedUnderneath("appeared meanwhile", where=str(path), hint="try again") from error
        sync_directory(dir_fd)
        return os.path.join(folder, name)


def sync_directory(dir_fd: int) -> None:
    """Make the names of a directory durable, where the file system can."""
    try:
        os.fsync(dir_fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no directories
            raise
