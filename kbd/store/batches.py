"""Reads what is new in a transcript of any kind, as batches of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kbd.errors import FileUnreadable
from kbd.sources.contract import DatabaseFormat, FileKind, SourceFormat, accompanied, placed
from kbd.sources.jsonl import read_value
from kbd.store import tail
from kbd.store.documents import DocumentSpec, read_beside, read_document
from kbd.store.position import Position
from kbd.store.rows import read_rows
from kbd.store.scan import Found
from kbd.store.sqlitefile import stamp_of
from kbd.store.tail import Batch

DOCUMENT_RECORDS = 8
"""A document may be so many times as large as a record: it holds a whole session."""


def read_batches(
    found: Found[FileKind],
    position: Position,
    source: SourceFormat,
    root: str,
    *,
    now: float,
    accept_last: Callable[[bytes], bool] | None,
    max_record: int,
) -> Iterator[Batch]:
    """Yield what is new in a file since `position`; lines as `tail.read_batches`, whose arguments these are.

    A document or a database that is as it was yields nothing. `root` is the source's folder.

    Raises:
        FileNotFoundError: the file is absent.
        FileUnreadable: it cannot be read.
    """
    match found.kind:
        case FileKind.DOCUMENT:
            return read_document(found.path, position, _spec(source, found, root, max_record), now=now)
        case FileKind.DATABASE if isinstance(source, DatabaseFormat):
            return read_rows(found.path, position, source.rows, now=now, max_record=max_record)
        case FileKind.DATABASE:
            raise FileUnreadable(f"{source.agent} reads no databases", where=found.path)
        case FileKind.LINES | FileKind.GZIP | FileKind.ZSTD:
            return tail.read_batches(found.path, position, now=now, accept_last=accept_last, max_record=max_record)


def workplace_of(found: Found[FileKind], source: SourceFormat, root: str) -> str | None:
    """Return the directory in which the session of a transcript works, where its place tells; `root` is the source's.

    Raises:
        FileUnreadable: a file that could tell cannot be read.
    """
    form = placed(source)
    return None if form is None else form.workplace(found.relpath, found.path, partial(read_beside, root))


def version_of(found: Found[FileKind]) -> tuple[int, int]:
    """Return (size, ns) that change when the content does, as positions hold them.

    Raises:
        FileNotFoundError: a database is gone.
        FileUnreadable: it is no regular file any more.
    """
    match found.kind:
        case FileKind.DOCUMENT:
            return found.size, max(found.mtime_ns, found.ctime_ns)
        case FileKind.DATABASE:
            stamp = stamp_of(found.path)
            return stamp.size, stamp.moved_ns
        case FileKind.LINES | FileKind.GZIP | FileKind.ZSTD:
            return found.size, found.mtime_ns


def _spec(source: SourceFormat, found: Found[FileKind], root: str, max_record: int) -> DocumentSpec:
    form = accompanied(source)
    companions = None if form is None else partial(form.companions, found.relpath)
    return DocumentSpec(root, companions, _is_whole, max_record * DOCUMENT_RECORDS)


def _is_whole(data: bytes) -> bool:
    return read_value(data) is not None
