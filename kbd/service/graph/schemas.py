"""The schema of a graph and the contracts of skills, read from disk, or refused with all their faults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from kbd.core.contracts import Contract, ContractReading, read_contract
from kbd.core.model import Problem
from kbd.core.schema import Schema
from kbd.core.schema_default import DEFAULT_SCHEMA
from kbd.core.schema_merge import merged
from kbd.core.schema_reading import SchemaReading, read_schema
from kbd.core.yamltext import MAX_BYTES
from kbd.errors import UsageError
from kbd.store.files import create_file, read_regular
from kbd.store.locks import Locks
from kbd.store.rewrite import Quiet, rewrite_held

_TIMEOUT_SECONDS = 10.0


class Faulty(UsageError):
    """A schema or a contract that cannot be used; `problems` are its faults."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        """Take the faults; the message has a line for each."""
        self.problems = tuple(problems)
        super().__init__("\n".join([what, *(f"  - {p.where}: {p.what}; {p.hint}" for p in problems)]))


def schema_reading(path: str) -> SchemaReading | None:
    """Return what a schema file says; None if there is none.

    Raises:
        FileUnreadable: it is there and cannot be read.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    return read_schema(data, os.path.basename(path))


def load_schema(path: str) -> Schema:
    """Return the schema of a graph; the empty one, which accepts nothing, if there is no file.

    Raises:
        Faulty: it has faults.
        FileUnreadable: it is there and cannot be read.
    """
    reading = schema_reading(path)
    if reading is None:
        return Schema()
    if reading.schema is None:
        raise Faulty("the schema cannot be used", reading.problems)
    return reading.schema


def contract_reading(path: str, schema: Schema) -> ContractReading:
    """Return the contract of a skill.

    Raises:
        UsageError: there is no such file.
        FileUnreadable: it cannot be read.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=path, hint="name the SKILL.md") from error
    return read_contract(data, os.path.basename(path), schema)


def load_contract(path: str, schema: Schema) -> Contract:
    """Return the contract of a skill; raises Faulty if it has faults, else as `contract_reading`."""
    reading = contract_reading(path, schema)
    if reading.contract is None:
        raise Faulty("the contract cannot be used", reading.problems)
    return reading.contract


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
