"""Writing the schema of a graph: the one to begin with, and what a fragment adds to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kbd.core.schema_default import DEFAULT_SCHEMA
from kbd.core.schema_merge import merged
from kbd.core.schema_reading import read_schema
from kbd.core.yamltext import MAX_BYTES
from kbd.service.graph.schemas import Faulty
from kbd.store.files import create_file, read_regular
from kbd.store.locks import Locks
from kbd.store.rewrite import Quiet, rewrite_held

_TIMEOUT_SECONDS = 10.0


def write_default_schema(path: str) -> bool:
    """Make the schema that kbd ships; return False, nothing written, if there is one.

    Raises:
        FileUnwritable: the system refused.
    """
    if os.path.lexists(path):
        return False
    os.makedirs(os.path.dirname(path), exist_ok=True)
    create_file(path, DEFAULT_SCHEMA.encode())
    return True


def merge_schema(path: str, fragment: Mapping[str, Any], locks: Locks, now: float, *, dry_run: bool) -> bytes:
    """Add a fragment to a schema and return the schema's new text; comments and order stay. Idempotent.

    Raises:
        Faulty: the schema would have faults; nothing was written.
        Refused: the form of the file leaves no place for the fragment.
        FileUnreadable, FileUnwritable, LockTimeout, ChangedUnderneath: nothing was written.
    """
    name = os.path.basename(path)

    def edit(data: bytes) -> bytes:
        text = merged(data, fragment, name)
        reading = read_schema(text, name)
        if reading.schema is None:
            raise Faulty("the schema would have faults, so nothing was written", reading.problems)
        return text

    if dry_run:
        try:
            return edit(read_regular(path, MAX_BYTES))
        except FileNotFoundError:
            return edit(b"")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with locks.hold([path], _TIMEOUT_SECONDS):
        rewrite_held(path, edit, locks, Quiet(now, 0), create=True)
    return read_regular(path, MAX_BYTES)
