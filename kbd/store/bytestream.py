"""Opens a transcript for reading at any offset, plain, gzip or zstd, with bounded memory.

Offsets count the bytes a reader wants: of a compressed file, the decompressed ones. Only regular files are opened; the
final path component must not be a symlink (the scan resolves those that may be followed).
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, ClassVar, Protocol, cast

import zstandard

from kbd.errors import FileUnreadable

StrPath = str | os.PathLike[str]

GUARD_BYTES = 1024
HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_BARREN_BYTES = 16 << 20
# O_NONBLOCK: a FIFO swapped in between the check and the open must not hang the daemon.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class ByteStream(Protocol):
    """An open transcript.

    Attributes:
        seen: the file's state at the last `refresh`.
        damage: why the rest of a compressed file cannot be read; None while it can.
    """

    seen: os.stat_result
    damage: str | None

    def refresh(self) -> None:
        """Look at the file's state anew; reads go up to the size it had then."""

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes from `start` on, fewer than `size` only at the end."""

    def left(self, offset: int) -> int:
        """Return how many bytes of the file on disk lie behind `offset`."""

    def behind_hole(self, offset: int) -> int:
        """Return where the next written bytes are, from `offset` on; NULs alone stand before them in a sparse file."""


class PlainStream:
    """A file read as it stands."""

    damage: str | None = None

    def __init__(self, fd: int, seen: os.stat_result, path: StrPath) -> None:
        """Read from a descriptor that stays the opener's; the path is for messages."""
        self._fd = fd
        self._path = path
        self.seen = seen

    def refresh(self) -> None:
        """See `ByteStream.refresh`."""
        self.seen = os.fstat(self._fd)

    def read(self, start: int, size: int) -> bytes:
        """See `ByteStream.read`. Raises FileUnreadable."""
        chunks: list[bytes] = []
        wanted = min(size, self.seen.st_size - start)
        while wanted > 0:
            chunk = _pread(self._fd, wanted, start, self._path)
            if not chunk:
                break
            chunks.append(chunk)
            start += len(chunk)
            wanted -= len(chunk)
        return b"".join(chunks)

    def left(self, offset: int) -> int:
        """See `ByteStream.left`."""
        return max(0, self.seen.st_size - offset)

    def behind_hole(self, offset: int) -> int:
        """See `ByteStream.behind_hole`."""
        try:
            return min(os.lseek(self._fd, offset, os.SEEK_DATA), self.seen.st_size)
        except OSError as error:
            # Nothing is written behind it; else the system does not tell.
            return max(offset, self.seen.st_size) if error.errno == errno.ENXIO else offset


class _Decompressed(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Barren(Exception):
    """Much was decompressed, and nothing came of it."""


class _Rationed(io.BufferedIOBase):
    """Compressed bytes, so many at most for one piece of text: empty blocks without end hold up nobody."""

    def __init__(self, raw: IO[bytes]) -> None:
        """Read from `raw`; `taken` counts the bytes since it was last set to 0."""
        super().__init__()
        self._raw, self.taken = raw, 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read; raises _Barren if too much was taken already."""
        if self.taken > _BARREN_BYTES:
            raise _Barren("blocks without content")
        data = self._raw.read(-1 if size is None else size)
        self.taken += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Seek."""
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        """Tell."""
        return self._raw.tell()

    def close(self) -> None:
        """Close what it reads from; the descriptor belongs to the opener."""
        self._raw.close()
        super().close()


class CompressedStream:
    """A compressed file, decompressed forwards; a read before the kept part starts over.

    Kept: the first `HEAD_BYTES`, and everything from `GUARD_BYTES` before the last read on.
    """

    codec: ClassVar[str]
    magic: ClassVar[bytes]
    faults: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, fd: int, seen: os.stat_result, path: StrPath) -> None:
        """Read from a descriptor that stays the opener's; the path is for messages."""
        self._fd = fd
        self._path = path
        self._raw = _Rationed(os.fdopen(fd, "rb", closefd=False))
        self.seen = seen
        self._rewind()

    def close(self) -> None:
        """Drop the buffers; the descriptor belongs to the opener."""
        self._raw.close()

    def refresh(self) -> None:
        """See `ByteStream.refresh`."""
        self.seen = os.fstat(self._fd)

    def read(self, start: int, size: int) -> bytes:
        """See `ByteStream.read`. A damaged rest ends the file and sets `damage`. Raises FileUnreadable."""
        if start + size <= len(self._head):
            return self._head[start : start + size]
        if start < self._kept_from:
            self._rewind()
        self._drop_before(start - GUARD_BYTES)
        while self._kept_from + len(self._kept) < start + size:
            chunk = self._decompress(min(_CHUNK_BYTES, start + size - self._kept_from - len(self._kept)))
            if not chunk:
                break
            self._head += chunk[: HEAD_BYTES - len(self._head)]
            self._kept += chunk
            self._drop_before(start - GUARD_BYTES)
        at = start - self._kept_from
        return bytes(memoryview(self._kept)[at : at + size])

    def left(self, offset: int) -> int:
        """See `ByteStream.left`; counts compressed bytes not yet read, whatever the offset."""
        return max(0, self.seen.st_size - self._raw.tell())

    def behind_hole(self, offset: int) -> int:
        """See `ByteStream.behind_hole`; none is known."""
        return offset

    def _rewind(self) -> None:
        self._raw.seek(0)
        self._file = self._opened(cast(IO[bytes], self._raw))
        self._head = b""
        self._kept = bytearray()
        self._kept_from = 0
        self.damage: str | None = None

    def _drop_before(self, offset: int) -> None:
        surplus = min(offset - self._kept_from, len(self._kept))
        if surplus > 0:
            del self._kept[:surplus]
            self._kept_from += surplus

    def _decompress(self, size: int) -> bytes:
        if self.damage is not None:
            return b""
        try:
            # read1 stops at the first error with nothing lost; read would drop the good bytes before it.
            self._raw.taken = 0
            return bytes(self._file.read1(size))
        except self.faults as error:
            self.damage = f"{self.codec} data damaged or cut short ({error})"
            return b""
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def _opened(self, raw: IO[bytes]) -> _Decompressed:
        raise NotImplementedError


class GzipStream(CompressedStream):
    """A gzip file, members joined."""

    codec = "gzip"
    magic = b"\x1f\x8b"
    faults = (EOFError, gzip.BadGzipFile, zlib.error, _Barren)

    def _opened(self, raw: IO[bytes]) -> _Decompressed:
        return gzip.GzipFile(fileobj=raw, mode="rb")


class ZstdStream(CompressedStream):
    """A zstd file, frames joined; the library refuses windows over 128 MiB, so a hostile frame takes no more."""

    codec = "zstd"
    magic = b"\x28\xb5\x2f\xfd"
    faults = (zstandard.ZstdError, _Barren)

    def _opened(self, raw: IO[bytes]) -> _Decompressed:
        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)


@contextmanager
def open_bytes(path: StrPath) -> Iterator[ByteStream]:
    """Open a transcript; compression is told by its magic number, not by its name.

    Raises FileNotFoundError if it is absent, FileUnreadable if it is not a regular file or cannot be read.
    """
    fd, seen = _open_regular(path)
    try:
        head = _pread(fd, 4, 0, path)
        packed = next((kind for kind in (GzipStream, ZstdStream) if head.startswith(kind.magic)), None)
        if packed is None:
            yield PlainStream(fd, seen, path)
        else:
            with closing(packed(fd, seen, path)) as stream:
                yield stream
    finally:
        os.close(fd)


def _open_regular(path: StrPath) -> tuple[int, os.stat_result]:
    try:
        # Looked at first, as opening alone may act on a device or wake the writer of a FIFO.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise _irregular(path)
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, error) from error
    seen = os.fstat(fd)
    if stat.S_ISREG(seen.st_mode):
        return fd, seen
    os.close(fd)
    raise _irregular(path)


def _pread(fd: int, size: int, start: int, path: StrPath) -> bytes:
    try:
        return os.pread(fd, size, start)
    except OSError as error:
        raise _unreadable(path, error) from error


def _irregular(path: StrPath) -> FileUnreadable:
    return FileUnreadable("not a regular file", where=os.fspath(path), hint="exclude it from the source")


def _unreadable(path: StrPath, error: OSError) -> FileUnreadable:
    return FileUnreadable(f"cannot be read ({error.strerror})", where=os.fspath(path), hint="check its permissions")
