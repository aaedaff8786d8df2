"""The dialects of lessons: which one a file is written in, and the lessons it holds in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kbd.core.adopt import headed, listed
from kbd.core.adopt.lesson import Lesson
from kbd.core.adopt.listed import Link
from kbd.core.entries import Parsed


@dataclass(frozen=True, slots=True)
class Left:
    """What is no lesson, or could not become an entry: index of its line, and why."""

    at: int
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a file holds in a dialect, in its order."""

    lessons: tuple[Lesson, ...]
    left: tuple[Left, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way of writing lessons.

    Attributes:
        name: as given on the command line.
        what: an example or a description in one line.
        is_spoken: tells whether a file, with its name, is written so.
        read: what it holds; given the file and its name without suffix.
        only_into: its files belong to their own tool and are never changed: its lessons go into a knowledge file.
    """

    name: str
    what: str
    is_spoken: Callable[[Parsed, str], bool]
    read: Callable[[Parsed, str], Found]
    only_into: bool = False


def _items(parsed: Parsed, *, emoji: bool | None, rewrite_derived: bool = False) -> Found:
    lessons: list[Lesson] = []
    left: list[Left] = []
    for item, read in listed.items(parsed, emoji=emoji, rewrite_derived=rewrite_derived):
        if isinstance(read, Lesson):
            lessons.append(read)
        else:
            left.append(Left(item.first, read))
    return Found(tuple(lessons), tuple(left))


def _notes(parsed: Parsed) -> Found:
    found = _items(parsed, emoji=None, rewrite_derived=True)
    return Found(found.lessons, found.left, tuple(listed.relations(parsed)))


def _headed(parsed: Parsed, *, every: bool) -> Found:
    """Return lessons under headings; one that holds entries already is left as it is."""
    lines = [entry.line - 1 for entry in parsed.entries]  # in order
    lessons: list[Lesson] = []
    left: list[Left] = []
    found = list(headed.headed(parsed, every=every))
    for lesson in found:
        if bisect_left(lines, lesson.first) < bisect_left(lines, lesson.last + 1):
            left.append(Left(lesson.first, "entries stand below it"))
        else:
            lessons.append(lesson)
    left += [Left(at, "under no heading of a lesson") for at in _items_outside(parsed, found)]
    return Found(tuple(lessons), tuple(left))


def _items_outside(parsed: Parsed, lessons: Sequence[Lesson]) -> Iterator[int]:
    """Yield the first line of each list item that is no entry and lies in none of the lessons, which are in order."""
    starts = [lesson.first for lesson in lessons]
    for item, _ in listed.items(parsed, emoji=None):
        before = bisect_left(starts, item.first + 1) - 1
        if before < 0 or lessons[before].last < item.first:
            yield item.first


def _fronted(parsed: Parsed, name: str) -> Found:
    lesson = headed.fronted(parsed, name.replace("_", " ").replace("-", " "))
    return Found((lesson,) if lesson else ())


def _has_observations(parsed: Parsed) -> bool:
    lines = parsed.outline.lines
    has_links = any(True for _ in listed.relations(parsed))
    return has_links or sum(listed.is_observation(lines[item.first]) for item in parsed.outline.items) > 1


def _is_signed(parsed: Parsed) -> bool:
    return any(headed.is_signed(parsed, heading) for heading in parsed.outline.headings)


def _is_learnings(parsed: Parsed) -> bool:
    return any(headed.is_learning(parsed.outline.lines[heading.at].text) for heading in parsed.outline.headings)


DIALECTS = (
    Dialect("ace", "[str-00001] helpful=5 harmful=0 :: text",
            lambda parsed, _: any(map(listed.is_ace, parsed.outline.lines)),
            lambda parsed, _: Found(tuple(listed.ace(parsed)))),
    Dialect("claude-memory", "a note a file, with name, description and type in its front matter",
            lambda parsed, name: headed.fronted(parsed, name) is not None, _fronted, only_into=True),
    Dialect("learnings", "## [LRN-20260305-001] correction",
            lambda parsed, _: _is_learnings(parsed), lambda parsed, _: _headed(parsed, every=False)),
    Dialect("basic-memory", "- [decision] text #tag (context), - relates_to [[Other]]",
            lambda parsed, _: _has_observations(parsed), lambda parsed, _: _notes(parsed)),
    Dialect("headings", "### 2026-07-18: title, ## 2026-02-12 manual [pitfall], ### [TAG] title",
            lambda parsed, _: _is_signed(parsed), lambda parsed, _: _headed(parsed, every=False)),
    Dialect("bullets", "- text (2026-06-26), - **2026-06-25**: text, - text",
            lambda parsed, _: bool(_items(parsed, emoji=None).lessons),
            lambda parsed, _: _items(parsed, emoji=None)),
    Dialect("emoji", "- 🟡 **title** text, and no other items",
            lambda parsed, _: False, lambda parsed, _: _items(parsed, emoji=True)),
    Dialect("serena", "each heading with text of its own, as in Serena's memories",
            lambda parsed, _: False,
            lambda parsed, _: _headed(parsed, every=True)),
)  # fmt: skip
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


def recognise(parsed: Parsed, name: str) -> Dialect | None:
    """Return the first dialect, in the order of `DIALECTS`, that a file is written in; None if it is none of them."""
    return next((dialect for dialect in DIALECTS if dialect.is_spoken(parsed, name)), None)
