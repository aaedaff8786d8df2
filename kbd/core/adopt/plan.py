"""What adopting a file comes to: its lessons as entries, in their place or in another file, and all that is left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from kbd.core.adopt.dialects import Dialect, Found, Left
from kbd.core.adopt.kinds import type_of
from kbd.core.adopt.lesson import Form, Lesson, Reading, form
from kbd.core.adopt.listed import PREDICATES
from kbd.core.drafting import usual_section
from kbd.core.entries import Parsed, parse
from kbd.core.model import Entry, Relation, Span
from kbd.core.outline import read_outline
from kbd.core.relyaml import PREDICATES as TEN
from kbd.core.splice import Edit, apply, insert
from kbd.errors import Refused


@dataclass(frozen=True, slots=True)
class Taken:
    """A lesson and its bytes and values as an entry."""

    lesson: Lesson
    block: bytes
    entry: Entry


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a file.

    Attributes:
        source: the file's content.
        taken: its lessons that can be entries.
        left: what stays as it is, with the reason; in order.
        relations: those it names, in terms of the ten predicates.
        carried: indices of the lines whose words the entries and relations hold.
    """

    source: bytes
    taken: tuple[Taken, ...]
    left: tuple[Left, ...]
    relations: tuple[Relation, ...]
    carried: frozenset[int]

    def unsaid(self) -> list[tuple[int, str]]:
        """Return the lines with words that no entry and no relation holds: index and text."""
        lines = read_outline(self.source).lines
        return [(at, line.text) for at, line in enumerate(lines) if line.text.strip() and at not in self.carried]


@dataclass(frozen=True, slots=True)
class Asked:
    """How to adopt: the reading in force, phrases of the config's types, known days by 1-based line, titles there."""

    reading: Reading
    signals: Mapping[str, Sequence[str]]
    days: Mapping[int, date]
    titles: Collection[str]
    today: date


def plan(data: bytes, name: str, dialect: Dialect, asked: Asked) -> Plan:
    """Return what adopting comes to; nothing is decided yet on where the entries go.

    Args:
        data: the file.
        name: its name without suffix.
        dialect: what it is read as.
        asked: see there. A lesson of a title that is there, or came before, is left.
    """
    parsed = parse(data, asked.reading.types, asked.reading.marker)
    found = dialect.read(parsed, name)
    taken: list[Taken] = []
    left = list(found.left)
    own = {one.first + 1 for one in found.lessons}
    seen = {*asked.titles, *(entry.norm for entry in parsed.entries if entry.line not in own)}
    for lesson in found.lessons:
        made = _form(lesson, parsed, asked)
        if made.entry is None:
            left.append(Left(lesson.first, made.why_not))
        elif made.entry.norm in seen:
            left.append(Left(lesson.first, "an entry of this title is there already"))
        else:
            seen.add(made.entry.norm)
            taken.append(Taken(lesson, made.block, made.entry))
    relations, unknown = _relations(found, parsed, name, asked.today)
    carried = {at for one in taken for at in range(one.lesson.first, one.lesson.last + 1)}
    carried |= {link.at for link in found.links} - {one.at for one in unknown}
    carried |= _headings(parsed, [one.lesson.section for one in taken])
    left = [one for one in left if one.at not in carried and one.at not in {other.at for other in unknown}]
    order = sorted([*left, *unknown], key=lambda one: one.at)
    return Plan(data, tuple(taken), tuple(order), relations, frozenset(carried))


def in_place(plan: Plan, reading: Reading) -> bytes:
    """Return the file with its lessons as entries where they stand; every other byte stays.

    Raises:
        Refused: read back, an entry would not be there as meant, or one that was there would change.
    """
    lines = read_outline(plan.source).lines
    edits = []
    for one in plan.taken:
        span = Span(lines[one.lesson.first].start, lines[one.lesson.last].end)
        ends = plan.source[span.start : span.end].endswith(b"\n")
        edits.append(Edit(span, one.block if ends else one.block.rstrip(b"\r\n")))
    after = apply(plan.source, edits)
    gone = {one.lesson.first + 1 for one in plan.taken}
    there = parse(plan.source, reading.types, reading.marker).entries
    before = [_said(entry) for entry in there if entry.line not in gone]
    _prove(after, before, plan, reading)
    return after


def into(plan: Plan, target: bytes, reading: Reading) -> bytes:
    """Return another file with the lessons added, each under the headings it had; where it had none, with its like.

    Raises:
        Refused: as `in_place`.
    """
    parsed = parse(target, reading.types, reading.marker)
    newline = parsed.newline if b"\n" in target else b"\n"
    blocks: dict[str, list[bytes]] = {}
    for one in plan.taken:
        section = one.lesson.section or usual_section(parsed, one.entry.type or "")
        blocks.setdefault(section, []).append(b"-" + one.block[1:].replace(b"\r\n", b"\n").replace(b"\n", newline))
    after = target
    for section, together in blocks.items():
        after = insert(after, b"".join(together), section)
    before = [_said(entry) for entry in parsed.entries]
    _prove(after, before, plan, reading)
    return after


def _headings(parsed: Parsed, sections: Iterable[str]) -> set[int]:
    """Return the indices of the headings that make up paths of sections."""
    paths = set(sections)
    paths |= {path[:end] for path in paths for end in range(len(path)) if path.startswith(" / ", end)}
    return {heading.at for heading in parsed.outline.headings if heading.section in paths}


def _form(lesson: Lesson, parsed: Parsed, asked: Asked) -> Form:
    source = "\n".join(line.text for line in parsed.outline.lines[lesson.first : lesson.last + 1])
    day = asked.days.get(lesson.first + 1)
    type_ = type_of(lesson, asked.reading.types, asked.signals)
    newline = parsed.outline.newline.decode()
    return form(lesson, source, type_, day if day and day <= asked.today else None, newline, asked.reading)


def _relations(found: Found, parsed: Parsed, name: str, today: date) -> tuple[tuple[Relation, ...], list[Left]]:
    title = next((heading.section for heading in parsed.outline.headings if heading.level == 1), name)
    known: list[Relation] = []
    unknown: list[Left] = []
    for link in found.links:
        predicate = PREDICATES.get(link.word, link.word)
        if predicate in TEN:
            known.append(Relation(title, predicate, link.target, today, today))
        else:
            unknown.append(Left(link.at, f"kbd has no predicate like {link.word!r}"))
    return tuple(dict.fromkeys(known)), unknown


def _prove(after: bytes, before: Iterable[tuple[object, ...]], plan: Plan, reading: Reading) -> None:
    parsed = parse(after, reading.types, reading.marker)
    meant = sorted([*before, *(_said(one.entry) for one in plan.taken)], key=repr)
    if sorted(map(_said, parsed.entries), key=repr) != meant:
        hint = "adopt it in parts, or with another --dialect"
        raise Refused("the entries would not be read back as they were meant", hint=hint)


def _said(entry: Entry) -> tuple[object, ...]:

    return entry.norm, entry.type, entry.tag, entry.ident, entry.meta, entry.created, entry.body, entry.marker
