"""The entries of a knowledge file, with the byte ranges that kbd may change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from kbd.core import metadata
from kbd.core.datestamps import creation, dated_parentheses, own_text, without_trailing_date
from kbd.core.headline import DEFAULT_MARKER, DEFAULT_TYPES, Headline, former_marker, read_headline
from kbd.core.model import Entry, Metadata, Problem, Span, State
from kbd.core.normal import normalise, width
from kbd.core.outline import BULLET, Item, Outline, read_outline
from kbd.core.textlines import Kind, TextLine

MATCHABLE_WIDTH = 8
KNOWN_ITEMS, KNOWN_CHARS = 1 << 14, 1 << 12
_STRAY_TAG = re.compile(r"\[([^\[\]]{1,40})\](?!\()")
_NESTED_ENTRY = re.compile(r"[ \t]+[-*+][ \t]+(?:\[|\*\*|⚠)")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a knowledge file holds.

    Attributes:
        entries: in the order of the file.
        problems: in the order of the lines; `where` is `line N`, to be led by the file's name.
        newline: the file's line end.
        has_conflict: conflict markers stand in it, so it must not be written.
        outline: its lines, headings and all top-level items.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]
    newline: bytes
    has_conflict: bool
    outline: Outline


def parse(data: bytes, types: frozenset[str] = DEFAULT_TYPES, marker: str = DEFAULT_MARKER) -> Parsed:
    """Parse any bytes as a knowledge file, in linear time; what is wrong with it becomes problems.

    Args:
        data: the file.
        types: known entry types, lower case.
        marker: the dormancy marker of the config; "" if there is none.
    """
    outline = read_outline(data)
    read = [_read_item(outline, item, types, marker) for item in outline.items]
    entries = [one.entry for one in read if one.entry]
    problems = [problem for one in read for problem in one.problems]
    problems += [*outline.problems, *_stray_tags(outline, types), *_duplicates(entries)]
    problems.sort(key=lambda problem: int(problem.where.removeprefix("line ")))
    return Parsed(tuple(entries), tuple(problems), outline.newline, outline.has_conflict, outline)


@dataclass(frozen=True, slots=True)
class _Read:
    entry: Entry | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A metadata comment in an item: its bytes, the index of its line within the item, its meaning."""

    span: Span
    at: int
    comment: metadata.Comment


def _read_item(outline: Outline, item: Item, types: frozenset[str], marker: str) -> _Read:
    lines = outline.lines[item.first : item.last + 1]
    line = item.first + 1
    if lines[0].kind is not Kind.TEXT:
        return _Read(None, ())
    text = _joined(lines, Kind.TEXT, Kind.CODE)
    read = _known_words if len(text) <= KNOWN_CHARS else _read_words
    former = former_marker(text)
    if former and any(one.comment.meta.state is State.DORMANT for one in _metadata_comments(lines)):
        marker = former
    said = read(text, _joined(lines, Kind.TEXT), types, marker)
    head = said.head
    problems = [Problem(fault.code, f"line {line}", fault.what, fault.hint) for fault in head.faults]
    if not head.title:
        return _Read(None, tuple(problems))
    found = list(_metadata_comments(lines))
    entry = _entry(outline, item, said, found)
    problems += _title_problems(entry)
    problems += [
        Problem("invalid_date", f"line {line}", f"{word} is no date", "mend it; until then it counts as absent")
        for word in said.bad_dates
    ]
    problems += [_metadata_problem(fault, line + one.at) for one in found for fault in one.comment.faults]
    problems += _stray_text(outline, item, entry)
    return _Read(entry, tuple(problems))


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of an item say, wherever it stands and whatever its comments say."""

    head: Headline
    norm: str
    body: str
    type_hint: str | None
    created: date | None
    bad_dates: tuple[str, ...]


def _read_words(text: str, prose: str, types: frozenset[str], marker: str) -> _Words:
    head = read_headline(text, types, marker)
    dated = dated_parentheses(prose)
    created, bad_dates = creation(prose, dated)
    body = own_text(normalise(without_trailing_date(head.rest)))
    return _Words(head, normalise(head.title), body, _type_hint(prose, dated, types), created, bad_dates)


# A file is read again after each write of its counters: all its words are then the same.
_known_words = lru_cache(KNOWN_ITEMS)(_read_words)


def _entry(outline: Outline, item: Item, said: _Words, found: Sequence[_Found]) -> Entry:
    head = said.head
    return Entry(
        title=head.title,
        norm=said.norm,
        type=head.type or said.type_hint,
        tag=head.tag,
        ident=head.ident,
        section=item.section,
        line=item.first + 1,
        block=outline.span(item),
        comments=tuple(one.span for one in found),
        meta=_merged([one.comment.meta for one in found]),
        marker=head.marker,
        created=said.created,
        body=said.body,
        derived_title=head.derived,
    )


def _merged(metas: Sequence[Metadata]) -> Metadata | None:
    return metadata.merge(metas) if metas else None


def _joined(lines: Sequence[TextLine], *kinds: Kind) -> str:
    """Return the item's text without bullet and comments."""
    first = BULLET.sub("", lines[0].prose(), count=1).lstrip(" \t")
    return "\n".join([first, *(line.prose() for line in lines[1:] if line.kind in kinds)])


def _type_hint(prose: str, dated: Sequence[tuple[int, int]], types: frozenset[str]) -> str | None:
    """Read a type named in the last dated parentheses: `(2026-06-25, 7cae4a9f, process)`."""
    for start, end in dated[-1:]:
        words = [word.strip().lower() for word in re.split("[,;，；]", prose[start + 1 : end - 1])]
        return next((word for word in reversed(words) if word in types), None)
    return None


def _metadata_comments(lines: Sequence[TextLine]) -> Iterator[_Found]:
    """Yield the metadata comments of an item, but not those of entries nested in it."""
    nested: int | None = None
    for at, line in enumerate(lines):
        if line.kind is not Kind.TEXT or not line.text.strip(" \t"):
            continue
        text = line.text.expandtabs(4)
        indent = len(text) - len(text.lstrip(" "))
        if indent > 1 and _NESTED_ENTRY.match(line.text):
            nested = indent if nested is None else min(nested, indent)
        elif nested is not None and indent <= nested:
            nested = None
        if nested is None:
            yield from _in_line(line, at)


def _in_line(line: TextLine, at: int) -> Iterator[_Found]:
    for start, end in line.comments:
        comment = metadata.parse_comment(line.text[start:end])
        if comment is None:
            continue
        alone = not (line.text[:start] + line.text[end:]).strip(" \t")
        first = line.start + len(line.text[:start].encode("utf-8", "surrogateescape"))
        length = len(line.text[start:end].encode("utf-8", "surrogateescape"))
        yield _Found(Span(line.start, line.end) if alone else Span(first, first + length), at, comment)


def _title_problems(entry: Entry) -> list[Problem]:
    if entry.ident or width(entry.norm) >= MATCHABLE_WIDTH:
        return []
    what = f"the title '{entry.title}' is under {MATCHABLE_WIDTH} wide and can never be cited"
    return [
        Problem("unmatchable_title", f"line {entry.line}", what, "lengthen it or give the entry an id such as [KD01]")
    ]


def _metadata_problem(fault: str, line: int) -> Problem:
    if fault.startswith("ref:") and fault[4:].isdecimal():
        return Problem(
            "bad_metadata", f"line {line}", f"{fault} is unusually high", "correct it with `kbd set` if it is wrong"
        )
    return Problem("bad_metadata", f"line {line}", f"{fault} cannot be read", "kbd writes its own value in its place")


def _stray_text(outline: Outline, item: Item, entry: Entry) -> list[Problem]:
    if item.stray is None or not entry.meta:
        return []
    stray = outline.lines[item.stray]
    if stray.kind is not Kind.TEXT or stray.text.startswith("<!--"):
        return []
    what = f"unindented text after a blank line does not belong to the entry '{entry.title}'"
    return [Problem("stray_text", f"line {item.stray + 1}", what, "indent it by two spaces if it should")]


def _stray_tags(outline: Outline, types: frozenset[str]) -> Iterator[Problem]:
    for at, line in enumerate(outline.lines):
        if line.kind is Kind.TEXT and (match := _STRAY_TAG.match(line.text)) and match[1].strip().lower() in types:
            what = f"'{match[0]}' at the start of a line without a bullet begins no entry"
            yield Problem("stray_tag_line", f"line {at + 1}", what, "lead the line with `- ` if it should")


def _duplicates(entries: Sequence[Entry]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    idents: dict[str, int] = {}
    for entry in entries:
        line = first.setdefault(entry.norm, entry.line)
        if line != entry.line:
            what = f"the title '{entry.title}' stands on line {line} as well, so both get the credit"
            yield Problem("duplicate_title", f"line {entry.line}", what, "rename or merge one of them")
        line = idents.setdefault(entry.ident, entry.line) if entry.ident else entry.line
        if line != entry.line:
            what = f"the id {entry.ident} stands on line {line} as well, so both get the credit"
            yield Problem("duplicate_id", f"line {entry.line}", what, "give one of them another id")
