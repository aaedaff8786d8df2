"""The type of a lesson from another form: its own word, an alias, its phrases, its heading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kbd.core.adopt.lesson import Lesson
from kbd.core.classify import classify
from kbd.core.headline import TYPE_ALIASES

_SURE = TYPE_ALIASES | {
    "antipattern": "pitfall",
    "correction": "pitfall",
    "error": "pitfall",
    "mistake": "pitfall",
    "bug": "pitfall",
    "warning": "pitfall",
    "rule": "guideline",
    "preference": "guideline",
    "choice": "decision",
    "adr": "decision",
    "architecture": "model",
    "design": "model",
    "workflow": "process",
    "procedure": "process",
    "runbook": "process",
    "command": "process",
}
# These words say where a lesson came from rather than what it is: its phrases are asked first.
_VAGUE = {
    "feedback": "guideline",
    "user": "guideline",
    "lesson": "guideline",
    "principle": "guideline",
    "strategy": "guideline",
    "strategies": "guideline",
    "project": "model",
    "reference": "model",
    "formula": "model",
    "tip": "guideline",
    "pattern": "guideline",
}


def type_of(lesson: Lesson, types: frozenset[str], signals: Mapping[str, Sequence[str]]) -> str:
    """Return its type: its tag, a sure word of its tag or hints, its phrases, its heading, a vague word, guideline."""
    own = [lesson.tag] if lesson.tag else []
    heading = lesson.section.rpartition(" / ")[2]
    by_words = classify(lesson.text, signals)
    readings = (
        _named([*own, *lesson.hints], types, _SURE),
        by_words.type if by_words.signal else None,
        _named([heading], types, _SURE),
        _named([*own, *lesson.hints, heading], types, _VAGUE),
    )
    return next(filter(None, readings), by_words.type)


def _named(phrases: Iterable[str], types: frozenset[str], aliases: Mapping[str, str]) -> str | None:
    for phrase in phrases:
        words = re.findall(r"[^\W\d_]+", phrase.casefold())
        for word in ["_".join(words), *words]:
            for one in (word, word.removesuffix("s"), word.removesuffix("es")):
                known = one if one in types else aliases.get(one)
                if known in types:
                    return known
    return None
