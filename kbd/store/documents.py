"""Reads documents: JSON files that an agent rewrites as a whole, so that a read may meet half of one.

A document is taken when it is whole and differs from what was taken before. One that stays broken while nothing moves
is handed on as it is, to be counted as malformed.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kbd.core.model import Record
from kbd.errors import FileUnreadable
from kbd.store.bytestream import StrPath, open_bytes
from kbd.store.identity import device, inode, modified_ns
from kbd.store.position import Position
from kbd.store.tail import LAST_LINE_SECONDS, Batch

MAX_COMPANIONS = 8
QUIET_SECONDS = 2.0
"""A file whose time is this near may be rewritten within the same tick of its clock, unseen."""

MAX_BESIDE = 1 << 20
"""Bytes of a file that only tells where a session works."""

Companions = Callable[[Sequence[bytes]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DocumentSpec:
    """How to read the documents of a source.

    Attributes:
        root: the source's folder; nothing outside it is read.
        companions: names the further documents that one needs (see `CompanionFormat`); None if none does.
        is_whole: tells one whole JSON value from a part of it.
        max_bytes: size of the largest document that is read.
    """

    root: str
    companions: Companions | None
    is_whole: Callable[[bytes], bool]
    max_bytes: int


def version(seen: os.stat_result) -> tuple[int, int]:
    """Return (size, ns) that tell one content of a rewritten file from another; a copied mtime does not hide it."""
    return seen.st_size, max(modified_ns(seen), seen.st_ctime_ns)


def is_quiet(moved_ns: int, now: float) -> bool:
    """Return whether a file last moved long enough ago that its times would tell a later change."""
    return now - moved_ns / 1e9 >= QUIET_SECONDS


def read_document(path: StrPath, position: Position, spec: DocumentSpec, *, now: float) -> Iterator[Batch]:
    """Yield the document as one record if it is another than before; nothing if all is as it was.

    `now` is the real clock, in seconds since the epoch. The same file in the same state gives the same.

    Raises:
        FileNotFoundError: it is absent, as between the two renames of a careful writer.
        FileUnreadable: it cannot be read, or is larger than `spec.max_bytes`.
    """
    data, seen = _read(path, spec.max_bytes)
    size, moved_ns = version(seen)
    at = replace(position, dev=device(seen), ino=inode(seen), size=size, mtime_ns=moved_ns, pending_since=None)
    if not spec.is_whole(data):
        unchanged = (position.size, position.mtime_ns) == (size, moved_ns)
        since = position.pending_since if unchanged and position.pending_since is not None else now
        if position.ended and unchanged:
            return
        if now - since < LAST_LINE_SECONDS:
            at = replace(at, ended=False, pending_since=min(since, now))
            yield Batch((), at, None, 0, more=False, lag_bytes=size)
            return
    parts, missing = _companions(data, spec)
    if spec.companions is not None:
        data = b"[" + b",".join([data, *parts]) + b"]"
    at = replace(at, offset=max(size, 1), ended=is_quiet(moved_ns, now) and not missing)
    at = replace(at, cursor=hashlib.sha256(data).hexdigest())
    is_new = at.cursor != position.cursor
    if is_new or at != position:
        yield Batch((Record(0, data),) * is_new, at, None, 0, more=False, lag_bytes=0)


def _read(path: StrPath, limit: int) -> tuple[bytes, os.stat_result]:
    with open_bytes(path) as stream:
        data = stream.read(0, limit + 1)
        if len(data) > limit:
            what = f"is larger than the {limit >> 20} MiB that are read whole"
            hint = "raise scan.max_record_mib, or exclude it"
            raise FileUnreadable(what, where=os.fspath(path), hint=hint)
        return data, stream.seen


def _companions(data: bytes, spec: DocumentSpec) -> tuple[list[bytes], bool]:
    """Return the companions of a document, `null` for each that is not there, and whether one is not."""
    if spec.companions is None:
        return [], False
    read, missing = [data], False
    while len(read) <= MAX_COMPANIONS:
        names = spec.companions(read)
        if not names:
            break
        for name in names:
            found = _companion(name, spec)
            missing = missing or found is None
            read.append(found or b"null")
    return read[1:], missing


def _companion(name: str, spec: DocumentSpec) -> bytes | None:
    real = os.path.realpath(spec.root)
    for found in sorted(glob.glob(name, root_dir=real)):
        path = os.path.join(real, found)
        if os.path.realpath(path) != path:
            continue
        try:
            data, _ = _read(path, spec.max_bytes)
        except FileNotFoundError:
            continue
        if spec.is_whole(data):
            return data
    return None


def read_beside(root: str, name: str) -> bytes | None:
    """Return a small file named from a source's root, None if it is not there or lies outside.

    Raises:
        FileUnreadable: it cannot be read, or is not small.
    """
    path = os.path.join(os.path.realpath(root), name)
    if os.path.realpath(path) != path or not os.path.lexists(path):
        return None
    return _read(path, MAX_BESIDE)[0]
