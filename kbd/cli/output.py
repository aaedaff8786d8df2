"""Answers on stdout: JSON, lines and tables that are safe for a terminal and whole in a pipe."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Literal

import click

from kbd.core.normal import width
from kbd.core.redact import printable
from kbd.errors import UsageError
from kbd.streams import talk

_FAMILIAR_WIDTH = 100
_UNSAFE = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def fields_of(value: object) -> dict[str, object]:
    """Return a slotted dataclass as an object; TypeError if it is none."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # `fields` takes five times as long


def emit_json(answer: dict[str, object]) -> None:
    """Print an answer as one line of JSON, led by its version; dataclasses in it become objects.

    What a terminal would obey and JSON lets through (C1 controls, bidi overrides) is escaped, not taken out: a
    program reads the exact text.
    """
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps({"version": 1} | answer, ensure_ascii=ascii_only, default=fields_of)
    click.echo(_UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def emit(line: str = "") -> None:
    """Print a line that is safe already: made of our own words, and of others' through `safe`."""
    click.echo(line)


def say(text: str) -> None:
    """Print talk on stderr."""
    talk(printable(text, keep_lines=True))


def confirmed(question: str) -> bool:
    """Ask on stderr; raises UsageError where nobody answers."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        say("")
        raise UsageError("nobody can be asked here, so nothing was done", hint="--yes does what was shown") from error


def safe(text: str) -> str:
    """Return others' text fit for a terminal, on one line."""
    return printable(text)


def short(path: str, home: str) -> str:
    """Return a path with `~` for the home."""
    home = home.rstrip("/")
    inside = home and (path == home or path.startswith(home + "/"))
    return "~" + path.removeprefix(home) if inside else path


def terminal_width() -> int | None:
    """Return the columns of the terminal; None in a pipe, where nothing is cut."""
    return shutil.get_terminal_size((_FAMILIAR_WIDTH, 24)).columns if sys.stdout.isatty() else None


def fit(text: str, columns: int | None) -> str:
    """Return a line cut to a width in columns, the cut marked by `…`."""
    if columns is None or width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[: max(min(len(text) - 1, columns - 1), 0)]
    return text + "…"


def fitted(head: str, text: str, tail: str, columns: int | None) -> str:
    """Return a line of three parts; the text in the middle is cut so that the line fits a width in columns."""
    room = None if columns is None else max(columns - width(head) - width(tail), 8)
    return f"{head}{fit(text, room)}{tail}"


def wrapped(text: str, columns: int | None, indent: int) -> str:
    """Return a text broken into lines of a width in columns, the first indented by two, the others by `indent`."""
    if columns is None:
        return f"  {text}"
    return click.wrap_text(text, columns, initial_indent="  ", subsequent_indent=" " * indent)


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return text filled up with spaces to a width in columns."""
    space = " " * max(columns - width(text), 0)
    return space + text if right else text + space


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `colours` gives a colour to the values that need one."""

    name: str
    align: Literal["left", "right"] = "left"
    colours: tuple[tuple[str, str], ...] = ()


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: str = "") -> Iterator[str]:
    """Yield a header and one line for each row; the last column takes what is left of the terminal."""
    names = [column.name for column in columns]
    widths = [max(map(width, cells)) for cells in zip(names, *rows, strict=True)]
    screen = terminal_width()
    taken = len(indent) + sum(widths[:-1]) + 2 * (len(columns) - 1)
    last = None if screen is None else max(screen - taken, 8)
    yield click.style(_line(columns, names, widths, last, indent), dim=True)
    for row in rows:
        yield _line(columns, row, widths, last, indent)


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], last: int | None, indent: str) -> str:
    parts = []
    for at, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        ends = at == len(columns) - 1
        text = fit(cell, last) if ends else cell
        if not ends or column.align == "right":
            text = pad(text, widths[at], right=column.align == "right")
        colour = dict(column.colours).get(cell)
        parts.append(click.style(text, fg=colour) if colour else text)
    return indent + "  ".join(parts).rstrip()


def counted(number: int, noun: str) -> str:
    """Return `1 entry`, `2 entries`, `3 days`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"
    return f"{number:,} {plural}"


def ago(seconds: float) -> str:
    """Return a span as `12 s`, `5 min`, `3 h`, `4 d`."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def sized(number: int) -> str:
    """Return bytes as `0 B`, `1.2 KiB`, `3.4 MiB`."""
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
