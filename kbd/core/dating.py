"""Writing creation dates into entries that have none, each at the end of a line, without changing anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from kbd.core.entries import Parsed
from kbd.core.model import Entry, Span
from kbd.core.splice import Edit, apply
from kbd.core.textlines import Kind, TextLine

Parse = Callable[[bytes], Parsed]


@dataclass(frozen=True, slots=True)
class Dated:
    """A file with dates.

    Attributes:
        data: its new content.
        lines: 1-based first lines of the entries that got their date.
        refused: those of entries that cannot take one without becoming another entry.
    """

    data: bytes
    lines: tuple[int, ...]
    refused: tuple[int, ...]


def undated(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that neither were cited nor say when they were made: they are infinitely old to decay."""
    return [entry for entry in entries if entry.created is None and (entry.meta is None or entry.meta.last is None)]


def insert_dates(data: bytes, days: Mapping[int, date], parse: Parse) -> Dated:
    """Put ` (YYYY-MM-DD)` at the end of entries' first lines, before a comment and white space that end them.

    Where that would change the title (one that goes on in the next line), the next line of the entry is tried.
    Entries that have a date are left alone. Every other byte stays.

    Args:
        data: a knowledge file.
        days: 1-based number of an entry's first line → the day it was created.
        parse: reads the file with the types and the marker in force.
    """
    before = parse(data)
    wanted = [entry for entry in before.entries if entry.line in days and entry.created is None]
    edits = {entry.line: _edit(before, entry, days[entry.line], parse, data) for entry in wanted}
    made = [edit for edit in edits.values() if edit is not None]
    return Dated(
        apply(data, made),
        tuple(line for line, edit in edits.items() if edit is not None),
        tuple(line for line, edit in edits.items() if edit is None),
    )


def _edit(before: Parsed, entry: Entry, day: date, parse: Parse, data: bytes) -> Edit | None:
    """Return the first place in the entry where the date is one and changes nothing else."""
    block = data[entry.block.start : entry.block.end]
    alone = next(iter(parse(block).entries), None)
    if alone is None:
        return None
    for line in _lines(before.outline.lines, entry):
        at = line.start + len(line.text[: _end_of_prose(line)].encode("utf-8", "surrogateescape"))
        edit = Edit(Span(at, at), f" ({day.isoformat()})".encode())
        inner = Edit(Span(at - entry.block.start, at - entry.block.start), edit.replacement)
        after = parse(apply(block, [inner])).entries
        if len(after) == 1 and after[0].created == day and _same(alone, after[0]):
            return edit
    return None


def _lines(lines: Sequence[TextLine], entry: Entry) -> Iterable[TextLine]:
    inside = (line for line in lines[entry.line - 1 :] if line.start < entry.block.end)
    return (line for line in inside if line.kind is Kind.TEXT and line.prose().strip())


def _end_of_prose(line: TextLine) -> int:
    """Return where the line's text ends: comments and white space at its end do not belong to it."""
    end = len(line.text.rstrip()) if line.opened is None else line.opened
    for start, stop in reversed(line.comments):
        if line.text[stop:end].strip():
            break
        end = start
    return len(line.text[:end].rstrip())


def _same(before: Entry, after: Entry) -> bool:
    """Tell whether two readings are of one entry; the text after the title may now have the date in it."""
    return _identity(before) == _identity(after)


def _identity(entry: Entry) -> Entry:
    return replace(entry, block=Span(0, 0), comments=(), created=None, body="")
