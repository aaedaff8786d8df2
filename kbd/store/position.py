"""Where reading of a file stands, and how to know that file again by its content.

Name and inode are not enough: inodes are used again, files are truncated and grow past the old offset. The first bytes
and those just before the offset are.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kbd.store.bytestream import GUARD_BYTES, HEAD_BYTES, ByteStream
from kbd.store.identity import device, inode, modified_ns

_EMPTY_SHA = hashlib.sha256().hexdigest()


class Position(msgspec.Struct, frozen=True):
    """Where reading of one file stands.

    Attributes:
        dev: device of the file as last seen.
        ino: its inode.
        head_len: how many of its first bytes are known, at most 4096 and never past `offset`.
        head_sha: SHA-256 of these, hexadecimal.
        offset: bytes consumed (of a gzip file: decompressed ones).
        guard_len: how many bytes just before `offset` are known, at most 1024.
        guard_sha: SHA-256 of these, hexadecimal.
        size: size on disk as last seen.
        mtime_ns: modification time as last seen.
        pending_since: when the last line was first seen without line end at this size and mtime, in seconds since
            the epoch; None if no line waits.
        skipping: `offset` lies inside a record over the limit.
        tail_start: where the last line begins if it was accepted without line end; None if `offset` follows one.
        ended: the read that led here came to the end of the file as it then was.
        cursor: of a document, the digest of its content; of a database, where its tables stand (see `store.rows`).
    """

    dev: int
    ino: int
    head_len: int = 0
    head_sha: str = _EMPTY_SHA
    offset: int = 0
    guard_len: int = 0
    guard_sha: str = _EMPTY_SHA
    size: int = 0
    mtime_ns: int = 0
    pending_since: float | None = None
    skipping: bool = False
    tail_start: int | None = None
    ended: bool = False
    cursor: str = ""

    def is_current(self, ino: int, size: int, mtime_ns: int) -> bool:
        """Return whether a file in this state has nothing to read: all was read, no line waits, and nothing moved."""
        seen = (self.ino, self.size, self.mtime_ns)
        return self.ended and self.pending_since is None and seen == (ino, size, mtime_ns)


class Verdict(enum.Enum):
    """What a file is to a position taken of it earlier; all but CONTINUES mean: read again from 0."""

    CONTINUES = "continues"
    REPLACED = "replaced"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"


def at_start(stream: ByteStream) -> Position:
    """Return the position before the first byte."""
    seen = stream.seen
    return Position(device(seen), inode(seen), size=seen.st_size, mtime_ns=modified_ns(seen))


def compare(stream: ByteStream, position: Position) -> Verdict:
    """Compare an open file with a position taken earlier."""
    # The device number is not compared: it changes over a reboot or a remount, the inode number does not.
    if inode(stream.seen) != position.ino:
        return Verdict.REPLACED
    return compare_content(stream, position)


def compare_content(stream: ByteStream, position: Position) -> Verdict:
    """Compare the known bytes only: whatever the inode, never REPLACED."""
    head = stream.read(0, position.head_len)
    guard = stream.read(position.offset - position.guard_len, position.guard_len)
    if len(head) < position.head_len or len(guard) < position.guard_len:
        return Verdict.TRUNCATED
    known = _sha(head) == position.head_sha and _sha(guard) == position.guard_sha
    return Verdict.CONTINUES if known else Verdict.REWRITTEN


def sealed(read: Callable[[int, int], bytes], position: Position) -> Position:
    """Return the position with the digests that recognise the file at its offset; `read` as `ByteStream.read`."""
    head_len = min(HEAD_BYTES, position.offset)
    guard_len = min(GUARD_BYTES, position.offset)
    head, guard = read(0, head_len), read(position.offset - guard_len, guard_len)
    return replace(position, head_len=head_len, head_sha=_sha(head), guard_len=guard_len, guard_sha=_sha(guard))


def _sha(part: bytes) -> str:
    return hashlib.sha256(part).hexdigest()
