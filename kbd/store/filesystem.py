"""What kind of ground a folder stands on: its file system, the space left, and how many folders it holds."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from kbd.errors import FileUnreadable, UsageError
from kbd.store.descriptors import strerror

# Their locks are advisory at best, SQLite's WAL needs shared memory, and inotify hears only this host's changes.
_NETWORK = frozenset(
    {
        "9p",
        "beegfs",
        "afs",
        "afpfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph-fuse",
        "fuse.davfs2",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "prl_fs",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "webdav",
    }
)


MOUNTS = Path("/proc/self/mountinfo")


def existing(path: str) -> str:
    """Return the path, or the nearest folder above it that is there."""
    while not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def network_file_system(path: str, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the network file system that holds the path; None on a local one, or where none can tell.

    The mount with the device of the path decides, the longest of several.
    """
    real = os.path.realpath(existing(path))
    try:
        text = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnreadable(strerror(error), where=str(mounts), hint="kbd needs /proc to tell file systems") from error
    found = ("", "")
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split(" ")[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(found[0]):  # a later mount covers an earlier one at the same place
            found = (point, after.split(" ")[0])
    return found[1] if found[1] in _NETWORK else None


def require_local(state_dir: Path, mounts: Path = MOUNTS) -> None:
    """Refuse a state directory on a network file system: two hosts would each take the ledger for theirs.

    Raises:
        UsageError: it lies on one.
        FileUnreadable: nothing can tell.
    """
    kind = network_file_system(str(state_dir), mounts)
    if kind is not None:
        what = f"the state directory lies on a network file system ({kind}), where SQLite and locks are not safe"
        raise UsageError(what, where=str(state_dir), hint="give a local folder with --state-dir")


def _unescaped(point: str) -> str:
    """Undo the octal escapes of mountinfo (proc(5)): space, tab, newline and backslash."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, char)
    return point


def free_bytes(path: str) -> int:
    """Return the bytes that the user may still write there.

    Raises:
        FileUnreadable: the file system does not answer.
    """
    try:
        return shutil.disk_usage(existing(path)).free
    except OSError as error:
        raise FileUnreadable(strerror(error), where=path, hint="check the mount") from error


def count_folders(roots: list[str], limit: int) -> int:
    """Return how many folders there are at and below these; counting ends at `limit`. Links are not entered."""
    count = 0
    waiting = [root for root in dict.fromkeys(map(os.path.realpath, roots)) if os.path.isdir(root)]
    seen: set[str] = set()
    while waiting and count < limit:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        count += 1
        waiting += _subfolders(folder)
    return count


def _subfolders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # gone, or closed to kbd: such a folder is not watched either
        return []


def inotify_limit(name: str, folder: Path = Path("/proc/sys/fs/inotify")) -> int | None:
    """Return one of the limits of inotify, such as `max_user_watches`; None where there is no inotify."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return int((folder / name).read_text(encoding="ascii"))
    except (OSError, ValueError):  # not this kernel's way of telling; no limit is known then
        return None
