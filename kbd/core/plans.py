"""Plans: changes of a graph written down as steps that may refer to earlier ones, from YAML or JSON to operations.

A step is an operation as the log has it (`{op: create, type: Task, as: agenda, properties: {…}}`), or a line of text in
the form of the article (`CREATE Task { title: "Prepare agenda" }`, `RELATE Task -> for_event -> event_001`). What an
earlier step creates is named by `$3` (the step), by `$agenda` (its `as`), by its id, and by `task_001`, the first Task
the plan creates, where no entity has that id; in lines of text `Task` is the newest Task of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbd.core import yamltext
from kbd.core.graph_state import View
from kbd.core.model import Problem
from kbd.core.operations import KINDS, Operation
from kbd.core.schema import Schema, near
from kbd.core.schema_text import SchemaText
from kbd.core.yamltext import Listing, Node, Scalar, compose
from kbd.core.yamlvalues import value_of
from kbd.errors import FileUnreadable

MAX_STEPS = 10_000
STEP_KEYS = ("op", "type", "id", "as", "properties", "props", "from", "rel", "to", "entity", "cascade", "timestamp")
_CREATE = re.compile(r"create\s+([^\s{]+)(?:\s*(\{.*\}))?", re.IGNORECASE | re.DOTALL)
_RELATE = re.compile(r"(relate|unrelate)\s+(\S+)\s*(?:->|→)\s*(\S+)\s*(?:->|→)\s*(\S+)", re.IGNORECASE)
_UPDATE = re.compile(r"(update|delete)\s+([^\s{]+)(?:\s*(\{.*\}))?", re.IGNORECASE | re.DOTALL)
_MAX_RELATE_CHARS = 1000
_REFERENCE = re.compile(r"\$(?:\{(?P<braced>[\w.-]+)\}|(?P<bare>[\w.-]+))")


@dataclass(frozen=True, slots=True)
class Step:
    """One step as written; `newest` tells that a bare type stands for the newest entity of it."""

    kind: str
    id: str = ""
    type: str = ""
    label: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    rel: str = ""
    target: str = ""
    cascade: bool = False
    newest: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a plan; empty if it has faults."""

    steps: tuple[Step, ...]
    problems: tuple[Problem, ...]


def read_plan(data: bytes, name: str) -> Plan:
    """Return the plan in the bytes of the file `name`: a list of steps, or a mapping with them under `steps`."""
    text = SchemaText(name)
    try:
        root = compose(data, name).root
    except FileUnreadable as error:
        return Plan((), (Problem("plan_unreadable", error.where or name, error.what, error.hint),))
    if isinstance(root, yamltext.Mapping):
        own = text.mapping(root, "", ("plan", "description", "steps", "operations"))
        root = own.get("steps") or own.get("operations")
    if not isinstance(root, Listing) or not root.items or len(root.items) > MAX_STEPS:
        text.fault("plan_unreadable", "plan", f"is no list of 1 to {MAX_STEPS} steps", "write `- op: create` …")
        return Plan((), tuple(text.problems))
    steps = tuple(_step(item, f"step {number}", text) for number, item in enumerate(root.items, 1))
    return Plan(() if text.problems else steps, tuple(text.problems))


def _step(node: Node, where: str, text: SchemaText) -> Step:
    text.lines[where] = node.line
    if isinstance(node, Scalar):
        return _line(node.text, where, text, node.line)
    given = text.mapping(node, where, STEP_KEYS)
    entity = text.mapping(given.get("entity"), where, ("id", "type", "properties", "created", "updated"))
    kind = text.words(given.get("op"), where).lower()
    if kind not in KINDS:
        text.fault("plan_step", where, f"unknown operation {kind!r}", near(kind, KINDS))
    properties = value_of(given.get("properties") or given.get("props") or entity.get("properties"))
    if properties is not None and not isinstance(properties, dict):
        text.fault("plan_step", where, "its properties are no mapping", "write {title: …}")
        properties = {}
    edge = kind in ("relate", "unrelate")
    step = Step(
        kind,
        id=text.words(given.get("from") if edge else given.get("id") or entity.get("id"), where),
        type=text.words(given.get("type") or entity.get("type"), where),
        label=text.words(given.get("as"), where),
        properties=properties or {},
        rel=text.words(given.get("rel"), where),
        target=text.words(given.get("to"), where),
        cascade=text.flag(given.get("cascade"), where),
        line=node.line,
    )
    return _complete(step, where, text)


def _complete(step: Step, where: str, text: SchemaText) -> Step:
    needs = {"create": {"type": step.type}, "update": {"id": step.id}, "delete": {"id": step.id}}
    edge = {"from": step.id, "rel": step.rel, "to": step.target}
    missing = [key for key, value in needs.get(step.kind, edge).items() if not value]
    if missing and step.kind in KINDS:
        text.fault("plan_step", where, f"{step.kind} lacks {', '.join(missing)}", "add it")
    return step


def _line(line: str, where: str, text: SchemaText, at: int) -> Step:
    line = line.strip()
    # Arrows can be found in many ways in a long line, and each would be tried.
    relate = _RELATE.fullmatch(line) if len(line) <= _MAX_RELATE_CHARS else None
    create, update = _CREATE.fullmatch(line), _UPDATE.fullmatch(line)
    if relate is not None:
        kind, source, rel, target = relate.groups()
        return Step(kind.lower(), source, rel=rel, target=target, newest=True, line=at)
    if create is not None:
        return Step("create", type=create[1], properties=_inline(create[2], where, text), newest=True, line=at)
    if update is not None:
        properties = _inline(update[3], where, text)
        return Step(update[1].lower(), update[2], properties=properties, newest=True, line=at)
    text.fault("plan_step", where, "is no step", "write `CREATE Task {title: …}` or `RELATE a -> rel -> b`")
    return Step("")


def _inline(written: str | None, where: str, text: SchemaText) -> Mapping[str, Any]:
    if written is None:
        return {}
    try:
        found = value_of(compose(written.encode(), where).root)
    except FileUnreadable as error:
        text.fault("plan_step", where, error.what, "write the properties as {title: …}")
        return {}
    return found if isinstance(found, dict) else {}


class PlanFault(ValueError):
    """A reference of a plan leads nowhere; the message is one clause."""


def operations_of(
    plan: Plan,
    view: View,
    schema: Schema,
    new_id: Callable[[str], str],
    at: str,
    cascade: Callable[[str], list[Operation]],
) -> list[Operation]:
    """Return the operations of a plan, its references resolved.

    Args:
        plan: without faults.
        view: the graph before the plan; ids that it has are no references.
        schema: for the properties that are refs, and the names of types.
        new_id: makes an id for a new entity of a type.
        at: the timestamp of all operations.
        cascade: the operations that delete an entity with its relations, in the graph before the plan.

    Raises:
        PlanFault: a reference leads nowhere.
    """
    names = _Names(view, schema)
    operations: list[Operation] = []
    for number, step in enumerate(plan.steps, 1):
        if step.kind == "create":
            ident = names.reference(step.id, number, newest=False) if step.id else new_id(step.type)
            properties = names.filled(step, step.type, number)
            names.add(number, step, ident)
            operations.append(Operation("create", ident, step.type, properties, at=at))
            continue
        ident = names.reference(step.id, number, newest=step.newest)
        if step.kind in ("relate", "unrelate"):
            target = names.reference(step.target, number, newest=step.newest)
            operations.append(Operation(step.kind, ident, "", dict(step.properties), step.rel, target, at))
        elif step.kind == "delete" and step.cascade:
            operations += cascade(ident)
        else:
            properties = names.filled(step, names.type_of(ident), number)
            operations.append(Operation(step.kind, ident, "", properties, at=at))
    return operations


class _Names:
    """What references mean at a step of a plan."""

    def __init__(self, view: View, schema: Schema) -> None:
        self._view, self._schema = view, schema
        self._labels: dict[str, str] = {}
        self._ordinals: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, number: int, step: Step, ident: str) -> None:
        type_ = self._schema.canonical_type(step.type)
        self._counts[type_] = self._counts.get(type_, 0) + 1
        self._labels[str(number)] = ident
        if step.label:
            self._labels[step.label] = ident
        self._ordinals[f"{type_.lower()}_{self._counts[type_]:03}"] = ident
        self._types[ident] = type_
        self._newest[type_] = ident

    def type_of(self, ident: str) -> str:
        entity = self._view.entity(ident)
        return self._types.get(ident) or (entity.type if entity else "")

    def reference(self, written: str, number: int, *, newest: bool) -> str:
        found = _REFERENCE.fullmatch(written)
        if found is not None:
            label = found["braced"] or found["bare"]
            if label not in self._labels:
                raise PlanFault(f"step {number}: {written} names no earlier step that creates something")
            return self._labels[label]
        if newest and self._schema.canonical_type(written) in self._newest and self._view.entity(written) is None:
            return self._newest[self._schema.canonical_type(written)]
        return self._by_ordinal(written)

    def _by_ordinal(self, written: str) -> str:
        taken = written in self._types or self._view.entity(written) is not None
        return written if taken else self._ordinals.get(written, written)

    def filled(self, step: Step, type_: str, number: int) -> dict[str, Any]:
        """Return the properties with their references resolved: in refs, and where the schema says nothing of them."""
        rule = self._schema.type_rule(type_)
        declared = rule.properties if rule else {}
        return {
            name: self._value(value, number) if name not in declared or _may_point(declared[name]) else value
            for name, value in step.properties.items()
        }

    def _value(self, value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [self._value(item, number) for item in value]
        if not isinstance(value, str):
            return value
        found = _REFERENCE.fullmatch(value)
        if found is not None and (found["braced"] or found["bare"]) in self._labels:
            return self.reference(value, number, newest=False)
        return self._by_ordinal(value)


def _may_point(rule: Any) -> bool:
    return bool(rule.points or (rule.kind == "any" and rule.enum is None))


def shown_steps(operations: list[Operation]) -> Iterator[str]:
    """Yield a line for each operation, for a person who is to apply it."""
    for one in operations:
        match one.kind:
            case "create":
                yield f"create {one.type} {one.id}"
            case "relate" | "unrelate":
                yield f"{one.kind} {one.id} {one.rel} {one.target}"
            case _:
                yield f"{one.kind} {one.id}"
