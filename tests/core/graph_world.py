"""Schemas, states and changes of graphs in a few words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from kbd.core.graph import Prepared, prepare
from kbd.core.graph_state import Empty, Overlay
from kbd.core.operations import Operation
from kbd.core.schema import Schema
from kbd.core.schema_reading import read_schema

AT = "2026-01-31T09:30:00+00:00"

ARTICLE = """
types:
  Task:
    required: [title, status]
    status_enum: [open, in_progress, blocked, done]
  Credential:
    required: [service, secret_ref]
    forbidden_properties: [password, secret, token]
relations:
  has_owner:
    from_types: [Project, Task]
    to_types: [Person]
    cardinality: many_to_one
  blocks:
    from_types: [Task]
    to_types: [Task]
    acyclic: true
"""


def schema(text: str) -> Schema:
    reading = read_schema(textwrap.dedent(text).encode(), "schema.yaml")
    assert reading.problems == ()
    assert reading.schema is not None
    return reading.schema


def create(ident: str, type_: str, **properties: Any) -> Operation:
    return Operation("create", ident, type_, properties, at=AT)


def update(ident: str, **properties: Any) -> Operation:
    return Operation("update", ident, "", properties, at=AT)


def delete(ident: str) -> Operation:
    return Operation("delete", ident, at=AT)


def relate(source: str, rel: str, target: str, **properties: Any) -> Operation:
    return Operation("relate", source, "", properties, rel, target, AT)


def unrelate(source: str, rel: str, target: str) -> Operation:
    return Operation("unrelate", source, "", {}, rel, target, AT)


def graph(rules: Schema, *operations: Operation) -> Overlay:
    """Return a graph that holds these operations, unchecked."""
    overlay = Overlay(Empty(), rules.indexed)
    for operation in operations:
        overlay.apply(operation)
    return overlay


def asked(rules: Schema, before: Sequence[Operation], *operations: Operation) -> Prepared:
    """Return what becomes of a change upon a graph."""
    return prepare(graph(rules, *before), rules, operations)


def codes(rules: Schema, before: Sequence[Operation], *operations: Operation) -> list[str]:
    """Return the codes of all that speaks against a change."""
    return [problem.code for problem in asked(rules, before, *operations).problems]
