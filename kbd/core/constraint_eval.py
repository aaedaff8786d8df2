"""Whether an expression holds of an entity, in three values, as CHECK constraints of SQL have it.

A comparison with a property that has no value is neither true nor false: it refuses nothing, and coverage does not
count it. Who wants the value to be there writes `exists`. Only `!=` is true of a missing value. Values that cannot
be compared (a text with a number, a date with a word) make a comparison false.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kbd.core.constraints import And, Compare, Exists, Expression, HasRelation, In, Literal, Not, Operand, Or
from kbd.core.graph_state import value_key
from kbd.core.moments import moment_of
from kbd.core.operations import Entity


class Around(Protocol):
    """What an expression asks of the graph around the entity."""

    def named_exist(self, entity: Entity, name: str) -> bool:
        """Tell whether all entities exist that the property names, as far as it names entities."""

    def has_relation(self, entity: Entity, rel: str, type_: str) -> bool:
        """Tell whether the entity is the source of such a relation, to a type if one is given."""


def is_absent(value: object) -> bool:
    """Tell whether a value says nothing: null, blank text, an empty list or object."""
    return (
        value is None
        or (isinstance(value, str) and not value.strip())
        or (isinstance(value, list | dict) and not value)
    )


def property_of(entity: Entity, name: str) -> Any:
    """Return the value of a property, or of `id`, `type`, `created`, `updated` where there is no such property."""
    if name in entity.properties:
        return entity.properties[name]
    return getattr(entity, name) if name in ("id", "type", "created", "updated") else None


def holds(expression: Expression, entity: Entity, around: Around) -> bool | None:
    """Return whether the expression holds; None if that cannot be said for want of a value."""
    match expression:
        case Compare():
            return _compared(expression, entity)
        case In():
            return _is_in(expression, entity)
        case Exists():
            there = not is_absent(property_of(entity, expression.name))
            return there and (not expression.must or around.named_exist(entity, expression.name))
        case HasRelation():
            return around.has_relation(entity, expression.rel, expression.type)
        case Not():
            inner = holds(expression.inner, entity, around)
            return None if inner is None else not inner
        case And():
            found = [holds(part, entity, around) for part in expression.parts]
            return False if False in found else None if None in found else True
        case Or():
            found = [holds(part, entity, around) for part in expression.parts]
            return True if True in found else None if None in found else False


def _value(operand: Operand, entity: Entity) -> Any:
    return operand.value if isinstance(operand, Literal) else property_of(entity, operand.name)


def _compared(test: Compare, entity: Entity) -> bool | None:
    left, right = _value(test.left, entity), _value(test.right, entity)
    if _asks_for_null(test):
        return (is_absent(left) and is_absent(right)) == (test.operator == "=")
    if is_absent(left) or is_absent(right):
        return True if test.operator == "!=" else None
    match test.operator:
        case "=":
            return _equal(left, right)
        case "!=":
            return not _equal(left, right)
        case "contains":
            return _contains(left, right)
    return _ordered(left, right, test.operator)


def _asks_for_null(test: Compare) -> bool:
    null = Literal(None)
    return test.operator in ("=", "!=") and null in (test.left, test.right)


def _is_in(test: In, entity: Entity) -> bool | None:
    value = _value(test.left, entity)
    return None if is_absent(value) else any(_equal(value, _value(one, entity)) for one in test.values)


def _equal(left: object, right: object) -> bool:
    if value_key(left) == value_key(right):
        return True
    times = _times(left, right)
    return times is not None and times[0] == times[1]


def _contains(left: object, right: object) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right.casefold() in left.casefold()
    if isinstance(left, list):
        return any(_equal(item, right) for item in left)
    return isinstance(left, dict) and right in left


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _ordered(left: object, right: object, operator: str) -> bool:
    pair: tuple[Any, Any] | None = None
    if _is_number(left) and _is_number(right):
        pair = (left, right)
    elif isinstance(left, str) and isinstance(right, str):
        pair = _times(left, right)
        if pair is None and moment_of(left) is None and moment_of(right) is None:
            pair = (left, right)
    return pair is not None and _ORDERS[operator](*pair)


def _times(left: object, right: object) -> tuple[Any, Any] | None:
    if not isinstance(left, str) or not isinstance(right, str):
        return None
    first, second = moment_of(left), moment_of(right)
    return None if first is None or second is None else (first, second)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
