"""The schema of a graph, read from disk, or refused with all its faults."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kbd.core.model import Problem
from kbd.core.schema import Schema
from kbd.core.schema_reading import SchemaReading, read_schema
from kbd.core.yamltext import MAX_BYTES
from kbd.errors import UsageError
from kbd.store.files import read_regular


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
