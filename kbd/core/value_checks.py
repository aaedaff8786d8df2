"""Whether a value is what the schema says of its property: type, format, enum, pattern and limits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kbd.core.graph_state import value_key
from kbd.core.moments import day_of, moment_of
from kbd.core.operations import walk
from kbd.core.patterns import MAX_CHARS, compiled
from kbd.core.redact import redact
from kbd.core.schema import PropertyRule, near

_EMAIL = re.compile(r"[^@\s,;<>]{1,64}@[^@\s,;<>]+\.[^@\s,;<>.]+")
# A scheme, and a host or, of the schemes that have none, what follows.
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#]+(?:[/?#]\S*)?|file:///\S+|(?:mailto|urn):[^\s/]\S*")
_SHOWN = 60


class Check(NamedTuple):
    """One thing that was looked at: the place of the schema that asks for it, and what is wrong ("" if nothing)."""

    where: str
    what: str = ""
    hint: str = ""


def shown(value: object) -> str:
    """Return a value for a message: redacted before it is cut, on one line."""
    text = redact(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def canonical_value(rule: PropertyRule, value: Any) -> Any:
    """Return the value in its one form: an alias of an enum's value becomes that value, in lists each item."""
    if isinstance(value, list):
        inner = rule.items or rule
        return [canonical_value(inner, item) for item in value]
    return rule.aliases.get(value, value) if isinstance(value, str) else value


def unwritable(properties: Mapping[str, Any]) -> list[str]:
    """Return the paths of what a line of JSON in UTF-8 cannot hold: lone surrogates, and numbers that are none."""
    return [path for path, name, value in walk(properties) if _is_unwritable(name) or _is_unwritable(value)]


def _is_unwritable(value: object) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= char <= "\udfff" for char in value)
    return isinstance(value, float) and not math.isfinite(value)


def checks_of(rule: PropertyRule, value: Any) -> Iterator[Check]:
    """Yield what is asked of a value that is there. Whether a ref's target exists is asked elsewhere."""
    if rule.kind != "any":
        fits = _FITS[rule.kind](value)
        yield Check(rule.where, "" if fits else f"{shown(value)} is no {rule.kind}", _HINTS.get(rule.kind, "mend it"))
        if not fits:
            return
    if rule.enum is not None:
        yield _enum_check(rule, value)
    if rule.pattern is not None:
        yield _pattern_check(rule, rule.pattern, value)
    yield from _limit_checks(rule, value)
    if rule.items is not None and isinstance(value, list):
        for item in value:
            yield from checks_of(rule.items, item)


def _pattern_check(rule: PropertyRule, pattern: str, value: Any) -> Check:
    where = f"{rule.where}.pattern"
    if isinstance(value, str) and len(value) > MAX_CHARS:
        return Check(where, f"{shown(value)} is too long for a pattern ({len(value):,} characters)", "shorten it")
    fits = isinstance(value, str) and compiled(pattern).found_in(value)
    return Check(where, "" if fits else f"{shown(value)} does not match {pattern}", "mend it")


def _enum_check(rule: PropertyRule, value: Any) -> Check:
    if isinstance(value, str) and value in (rule.enum or ()):
        return Check(rule.enum_where)
    allowed = {value_key(one) for one in rule.enum or ()}
    # A list with an enum but without a rule for its items: each item is one of the values.
    found = value if isinstance(value, list) and rule.items is None else [value]
    wrong = [one for one in found if value_key(one) not in allowed]
    if not wrong:
        return Check(rule.enum_where)
    words = [str(one) for one in rule.enum or ()]
    hint = near(str(wrong[0]), words)
    known = f"{shown(wrong[0])} is none of {', '.join(words)}"
    return Check(rule.enum_where, known, hint if hint.endswith("?") else "write one of these")


def _limit_checks(rule: PropertyRule, value: Any) -> Iterator[Check]:
    for key, limit in (("min", rule.minimum), ("max", rule.maximum)):
        if limit is None:
            continue
        measure = _measured(value, limit)
        bound = moment_of(limit) if isinstance(limit, str) else limit
        fits = measure is not None and bound is not None and (measure >= bound if key == "min" else measure <= bound)
        word = "under" if key == "min" else "over"
        of = (
            "" if _is_number(value) or isinstance(limit, str) else f" in length ({len(value)})" if _sized(value) else ""
        )
        yield Check(f"{rule.where}.{key}", "" if fits else f"{shown(value)} is{of} {word} {limit}", "mend it")


def _measured(value: Any, limit: float | str) -> Any:
    if isinstance(limit, str):
        return moment_of(value) if isinstance(value, str) else None
    if _is_number(value):
        return value
    return len(value) if _sized(value) else None


def _sized(value: object) -> bool:
    return isinstance(value, str | list | dict)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_url(value: object) -> bool:
    return isinstance(value, str) and _URL.fullmatch(value) is not None


_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, str) and day_of(value) is not None,
    "datetime": lambda value: isinstance(value, str) and moment_of(value) is not None,
    "url": _is_url,
    "email": lambda value: isinstance(value, str) and _EMAIL.fullmatch(value) is not None,
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "ref": lambda value: isinstance(value, str),
}
_HINTS = {
    "date": "write it as 2026-01-31",
    "datetime": "write it as 2026-01-31T09:30:00+00:00",
    "url": "write it as https://example.org/",
    "email": "write it as name@example.org",
    "ref": "write the id of an entity",
    "list": "write it in brackets",
}
