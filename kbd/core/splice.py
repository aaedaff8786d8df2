"""Edits of a knowledge file: the metadata comment and the marker of an entry, whole blocks; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from kbd.core.headline import DEFAULT_MARKER, marker_end
from kbd.core.metadata import render, render_extra
from kbd.core.model import Entry, Span, State
from kbd.core.outline import Outline, ends_index, read_outline
from kbd.core.textlines import Kind

_BULLET = re.compile(rb"[-*+][ \t]+")
_HASHES = re.compile(rb"^ {0,3}(#{1,6})")
_DEEPEST = 6
_INDENT = b"  "


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes to put in the place of a span; an empty span inserts."""

    span: Span
    replacement: bytes


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return `data` with all edits made; their spans are those of `data`, in any order.

    Raises:
        ValueError: edits overlap or lie outside `data`.
    """
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if not at <= edit.span.start <= edit.span.end <= len(data):
            raise ValueError(f"edit of bytes {edit.span.start} to {edit.span.end} overlaps another or leaves the file")
        parts += [data[at : edit.span.start], edit.replacement]
        at = edit.span.end
    return b"".join([*parts, data[at:]])


def set_metadata(
    data: bytes, entry: Entry, ref: int, last: date | None, state: State, marker: str = DEFAULT_MARKER
) -> bytes:
    """Return `data` with the entry's values set; identical bytes if they stand there already. See `edits_for`."""
    return apply(data, edits_for(data, entry, ref, last, state, marker))


def edits_for(
    data: bytes, entry: Entry, ref: int, last: date | None, state: State, marker: str = DEFAULT_MARKER
) -> tuple[Edit, ...]:
    """Return the edits that make one entry of `data` say these values; none if it does.

    Stacked comments become one, in the place of the first, with their other keys. An entry without a comment gets
    one as the last line of its block. The marker stands after the bullet exactly if the entry is dormant; with
    `marker` "" it is not touched, unless it is a former one, which only the dormancy tells from a word of the title.
    """
    return (*_marker_edits(data, entry, state, marker), *_comment_edits(data, entry, ref, last, state))


def bare_edits(data: bytes, entry: Entry, marker: str = DEFAULT_MARKER) -> tuple[Edit, ...]:
    """Return the edits that take an entry's counters and marker out; other keys of its comment stay, as a comment."""
    edits = _marker_edits(data, entry, State.ACTIVE, marker)
    if entry.meta is None:
        return edits
    others = list(entry.comments)
    if entry.meta.extra:
        kept = render_extra(entry.meta.extra).encode("utf-8", "surrogateescape")
        edits = (*edits, Edit(_alone(data, others.pop(0)), kept))
    return (*edits, *(Edit(span, b"") for span in _removed(data, others)))


def cut(data: bytes, entry: Entry) -> tuple[bytes, bytes]:
    """Return the entry's block and `data` without it."""
    block = entry.block
    return data[block.start : block.end], data[: block.start] + data[block.end :]


def heading_lines(outline: Outline, entry: Entry) -> tuple[bytes, ...]:
    """Return the heading lines above an entry as written, outermost first, without line ends: for `insert`."""
    lines: list[str] = []
    level = _DEEPEST + 1
    for heading in reversed([heading for heading in outline.headings if heading.at < entry.line - 1]):
        if heading.level < level:
            level = heading.level
            lines.append(outline.lines[heading.at].prose())
    return tuple(line.encode("utf-8", "surrogateescape") for line in reversed(lines))


def insert(data: bytes, block: bytes, section: str, headings: Sequence[bytes] = ()) -> bytes:
    """Return `data` with a block put at the end of a section, before any heading below it.

    What is missing of the path of headings is made, at the end of what is there of it, else of the file: from
    `headings`, else as `#`, `##`, …; a level is changed where the path would not come out otherwise. The bytes of
    `data` all stay; headings, line ends and blank lines come in between.
    """
    outline = read_outline(data)
    newline = outline.newline if b"\n" in data else _newline_of(block, b"\n")
    headings = headings or [b"#" * (depth + 1) + b" " + name for depth, name in enumerate(_names(section))]
    place, missing = _place(outline, section, headings)
    at = outline.lines[place - 1].end if place else _first_byte(outline, data)
    before = newline if place and not data[:at].endswith(b"\n") else b""
    if missing or (place and not any(item.last == place - 1 for item in outline.items)):
        before += newline if place else b""
    before += b"".join(heading + newline + newline for heading in missing)
    after = b""
    if at < len(data):
        after += b"" if block.endswith(b"\n") else newline
        later = next((line.text for line in outline.lines[place:] if line.text.strip(" \t")), "")
        if later.startswith(("  ", "\t", " \t")):
            # Markdown's separator of lists: without it the indented line would become part of the item.
            after += newline + b"<!-- -->" + newline
        elif outline.lines[place].text.strip(" \t"):
            after += newline
    return data[:at] + before + block + after + data[at:]


def _marker_edits(data: bytes, entry: Entry, state: State, marker: str) -> tuple[Edit, ...]:
    bullet = _BULLET.match(data, entry.block.start, entry.block.end)
    if not bullet:
        return ()
    line = data[bullet.end() : entry.block.end].split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    present = line[: marker_end(line, marker, is_entry=True)]
    is_former = bool(present) and not marker_end(line, marker)
    if (state is State.DORMANT) == bool(present) or not (marker or is_former):
        return ()
    if not present:
        return (Edit(Span(bullet.end(), bullet.end()), f"{marker} ".encode()),)
    bare = present.rstrip(" \t")
    length = len(present[: len(bare) + 1].encode())
    return (Edit(Span(bullet.end(), bullet.end() + length), b""),)


def _comment_edits(data: bytes, entry: Entry, ref: int, last: date | None, state: State) -> tuple[Edit, ...]:
    meta = entry.meta
    if meta is None:
        return (_new_comment(data, entry, render(ref, last, state).encode()),)
    says = (meta.ref, meta.last, meta.last_given, meta.state)
    if len(entry.comments) == 1 and says == (ref, last, True, state):
        return ()
    first, *others = entry.comments
    span = _alone(data, first)
    comment = render(ref, last, state, meta.extra).encode("utf-8", "surrogateescape")
    return (Edit(span, comment), *(Edit(span, b"") for span in _removed(data, others)))


def _alone(data: bytes, line: Span) -> Span:
    """Return where the comment stands in its line."""
    raw = data[line.start : line.end]
    return Span(line.start + raw.index(b"<!--"), line.start + raw.rindex(b"-->") + len(b"-->"))


def _removed(data: bytes, comments: Sequence[Span]) -> list[Span]:
    """Join adjacent whole lines; where the file ends in one without newline, take the newline before it instead."""
    spans: list[Span] = []
    for span in comments:
        if spans and spans[-1].end == span.start:
            span = Span(spans.pop().start, span.end)
        spans.append(span)
    if spans and spans[-1].end == len(data) and not data.endswith(b"\n"):
        start, end = spans[-1].start, spans[-1].end
        if data[:start].endswith(b"\n"):
            start -= 2 if data[:start].endswith(b"\r\n") else 1
        spans[-1] = Span(start, end)
    return spans


def _new_comment(data: bytes, entry: Entry, comment: bytes) -> Edit:
    block = data[entry.block.start : entry.block.end]
    newline = _newline_of(block, b"\r\n" if data[: entry.block.start].endswith(b"\r\n") else b"\n")
    length = len(block)
    # Before a fence or comment that is still open there: inside, it would be no comment.
    while (outline := read_outline(block[:length])).open_line is not None:
        length = outline.lines[outline.open_line].start
    at = entry.block.start + length
    line = _INDENT + comment
    return Edit(Span(at, at), line + newline if data[:at].endswith(b"\n") else newline + line)


def _newline_of(block: bytes, default: bytes) -> bytes:
    line, found, _ = block.partition(b"\n")
    if not found:
        return default
    return b"\r\n" if line.endswith(b"\r") else b"\n"


def _names(section: str) -> list[bytes]:
    return [name.encode("utf-8", "surrogateescape") for name in section.split(" / ") if name]


def _first_byte(outline: Outline, data: bytes) -> int:
    return outline.lines[0].start if outline.lines else len(data)


def _place(outline: Outline, section: str, headings: Sequence[bytes]) -> tuple[int, list[bytes]]:
    """Return the number of lines to stand before the block, and the headings to make there."""
    count = len(outline.lines)
    if not section:
        return _filled(outline, outline.front, outline.headings[0].at if outline.headings else count), []
    paths = [heading.section for heading in read_outline(b"\n".join(headings)).headings]
    for known in range(len(paths), 0, -1):
        found = [at for at, heading in enumerate(outline.headings) if heading.section == paths[known - 1]]
        if found:
            parent, later = outline.headings[found[-1]], outline.headings[found[-1] + 1 :]
            whole = known < len(paths)
            end = next((one.at for one in later if not whole or one.level <= parent.level), count)
            return _filled(outline, parent.at + 1, end), _levelled(headings[known:], parent.level, _DEEPEST)
    return _filled(outline, outline.front, count), _rooted(outline, headings)


def _filled(outline: Outline, start: int, end: int) -> int:
    """Return the index after the last line of text in a range, before anything in it that is never closed."""
    if outline.open_line is not None and not outline.open_nested:
        end = min(end, outline.open_line)
    while end > start and not outline.lines[end - 1].text.strip(" \t"):
        end -= 1
    last = outline.lines[end - 1] if end > start else None
    if last and last.kind is Kind.HIDDEN and not ends_index(last.text):
        while end > start and outline.lines[end - 1].kind is Kind.HIDDEN:
            end -= 1
    return max(start, end)


def _rooted(outline: Outline, headings: Sequence[bytes]) -> list[bytes]:
    return _levelled(headings, 0, min((heading.level for heading in outline.headings), default=_DEEPEST))


def _levelled(headings: Sequence[bytes], above: int, highest: int) -> list[bytes]:
    """Give headings levels that make a path below level `above`; the first is at most at level `highest`."""
    levelled: list[bytes] = []
    for heading in headings:
        hashes = _HASHES.match(heading)
        own = len(hashes[1]) if hashes else 1
        above = min(max(own, above + 1), highest)
        highest = _DEEPEST
        levelled.append(_HASHES.sub(b"#" * above, heading, count=1))
    return levelled
