"""The contracts of skills, read from disk, or refused with all their faults."""

from __future__ import annotations

import os

from kbd.core.contracts import Contract, ContractReading, read_contract
from kbd.core.schema import Schema
from kbd.core.yamltext import MAX_BYTES
from kbd.errors import UsageError
from kbd.service.graph.schemas import Faulty
from kbd.store.files import read_regular


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
