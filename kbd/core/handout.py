"""Entries as they are handed to an agent: Markdown with handles, between marks by which kbd knows its own output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbd.core.headline import marker_end
from kbd.core.model import Entry
from kbd.core.outline import BULLET, read_outline
from kbd.core.ownoutput import OUTPUT_BEGIN, OUTPUT_END
from kbd.core.redact import printable
from kbd.core.textlines import Kind


@dataclass(frozen=True, slots=True)
class Handed:
    """An entry to hand out.

    Attributes:
        handle: its handle.
        text: as `entry_text` gives it.
        conflicts: (handle, title) of live entries that it conflicts with.
    """

    handle: str
    text: str
    conflicts: tuple[tuple[str, str], ...] = ()


def entry_text(block: bytes, entry: Entry, handle: str, type_: str, marker: str) -> str:
    """Return an entry as a list item led by its handle: its own words without comments, marker and blank lines.

    Every item carries a type tag, so that a copy of the line is known for an echo wherever it turns up. What could
    end the marks around it, or be obeyed by a terminal, is made harmless.
    """
    lines = [line for line in read_outline(block).lines if line.kind in (Kind.TEXT, Kind.CODE)]
    head = BULLET.sub("", lines[0].prose(), count=1).lstrip(" \t")
    head = head[marker_end(head, marker, is_entry=True) :]
    tag = "" if entry.type and entry.tag else f"[{type_}] "
    rest = [line.text if line.kind is Kind.CODE else line.prose() for line in lines[1:]]
    return _harmless("\n".join([f"- [{handle}] {tag}{head}", *rest]))


def _harmless(text: str) -> str:
    lines = (line.rstrip() for line in printable(text, keep_lines=True).split("\n"))
    return "\n".join(line for line in lines if line).replace("<!--", "&lt;!--")


def item(handed: Handed) -> str:
    """Return an entry with a line for each entry that it conflicts with."""
    named = [f"  conflicts with [{handle}] {_harmless(title)}" for handle, title in handed.conflicts]
    return "\n".join([handed.text, *named])


def context(items: Sequence[Handed]) -> str:
    """Return all there is to hand out, best first; "" for nothing. It ends in a newline."""
    return "\n".join([*frame(items[0].handle), *map(item, items), OUTPUT_END, ""]) if items else ""


def frame(handle: str) -> tuple[str, str, str]:
    """Return what stands before the items; `handle` serves as the example."""
    return (
        f"{OUTPUT_BEGIN}context -->",
        "Lessons from earlier sessions, best first. If one guides your work, name its handle where you say what you "
        f"did, as in [{handle}]: that keeps it alive. Naming one that was of no use misleads the next session.",
        "",
    )
