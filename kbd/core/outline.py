"""The outline of a Markdown file: its lines, headings and top-level list items, as byte ranges.

The one block scanner of kbd. Lines end at `\\n` only. Fences, front matter, index blocks and multi-line HTML comments
are opaque: nothing in them is a heading or an item. The rules are those of CommonMark as far as they matter here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from kbd.core.metadata import parse_comment
from kbd.core.model import Problem, Span
from kbd.core.textlines import Kind, TextLine, find_comments, read_lines

BULLET = re.compile(r"[-*+](?:[ \t]+|$)")
_FIRST_NUMBER = re.compile(r"1[.)](?:[ \t]|$)")
_HASHES = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
# Seven equals signs alone may underline a heading, so they prove no conflict.
_CONFLICT = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)")
_NEW_BLOCK = re.compile(r"[ \t]*(?:$|<!--|```|~~~|>|#{1,6}[ \t]|[-*+][ \t])")
_INDEX = re.compile(r" {0,3}<!--\s*\w*INDEX[_ -]?(START|BEGIN|END)\s*-->", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level, the path of headings it ends, and the index of its line."""

    level: int
    section: str
    at: int


@dataclass(slots=True)
class Item:
    """A top-level list item with a bullet.

    Attributes:
        first: index of its first line.
        last: index of its last line; blank lines at the end are left out.
        section: the path of headings above it.
        stray: index of the unindented text that ended it after a blank line, None if something else did.
    """

    first: int
    last: int
    section: str
    stray: int | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """What a file consists of.

    Attributes:
        lines: all lines.
        front: number of lines of front matter.
        headings: in order.
        items: top-level list items with a bullet, in order.
        newline: the line end most lines have.
        has_conflict: a version-control conflict marker stands at the start of a line.
        open_line: index of the line that opens a fence or comment which is never closed, None if all are.
        open_nested: that line is part of an item, whose end closes it.
        problems: what is wrong with the structure.
    """

    lines: tuple[TextLine, ...]
    front: int
    headings: tuple[Heading, ...]
    items: tuple[Item, ...]
    newline: bytes
    has_conflict: bool
    open_line: int | None
    open_nested: bool
    problems: tuple[Problem, ...]

    def span(self, item: Item) -> Span:
        """Return the bytes of an item, from the bullet to the end of its last line."""
        return Span(self.lines[item.first].start, self.lines[item.last].end)


def read_outline(data: bytes) -> Outline:
    """Return the outline of any bytes, in linear time."""
    scanner = _Scanner(read_lines(data))
    front = scanner.hide_front_matter()
    for at in range(front, len(scanner.lines)):
        scanner.step(at)
    return scanner.outline(front, b"\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else b"\n")


def ends_index(text: str) -> bool:
    """Tell whether a line ends an index block."""
    mark = _INDEX.match(text)
    return mark is not None and mark[1].upper() == "END"


@dataclass(frozen=True, slots=True)
class _Region:
    """Lines that are opaque until something closes them. `nested`: inside an item, whose end closes it, too."""

    kind: Kind
    at: int
    nested: bool = False
    fence: str = ""
    until_heading: bool = False

    def closes(self, text: str) -> bool:
        if self.kind is Kind.COMMENT:
            return "-->" in text
        if self.kind is Kind.HIDDEN:
            return ends_index(text)
        bare = text.strip(" \t")
        return len(bare) >= len(self.fence) and not bare.strip(self.fence[0])

    def ends_before(self, text: str) -> bool:
        outside = text.strip(" \t") and not text.startswith((" ", "\t"))
        return bool((self.nested and outside) or (self.until_heading and _HASHES.match(text)))


@dataclass(slots=True)
class _Scanner:
    lines: list[TextLine]
    headings: list[Heading] = field(default_factory=list)
    path: list[tuple[int, str]] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    item: Item | None = None
    region: _Region | None = None
    has_conflict: bool = False
    ahead: _Ahead | None = None

    def hide_front_matter(self) -> int:
        """Hide `---` … `---` at the start of the file; return the index of the first line after it."""
        texts = [line.text.rstrip(" \t") for line in self.lines]
        if not texts or texts[0] != "---":
            return 0
        end = next((at for at, text in enumerate(texts) if at and text in ("---", "...")), -1)
        for at in range(end + 1):
            self.lines[at] = replace(self.lines[at], kind=Kind.HIDDEN)
        return end + 1

    def step(self, at: int) -> None:
        text = self.lines[at].text
        if self.region and self.region.ends_before(text):
            self.region = None
        blank = not text.strip(" \t")
        if self.region:
            self._pass_region(at, self.region, blank)
        elif not blank:
            self._place(at, text)
            self._open(at, text)

    def _pass_region(self, at: int, region: _Region, blank: bool) -> None:
        self.lines[at] = replace(self.lines[at], kind=region.kind)
        if self.item and not blank:
            self.item.last = at
        if region.closes(self.lines[at].text):
            self.region = None

    def _place(self, at: int, text: str) -> None:
        """Give the line to the open item, or end that item and begin what the line begins."""
        self.has_conflict = self.has_conflict or bool(_CONFLICT.match(text))
        inner = self.item is not None and text.startswith(("  ", "\t", " \t"))
        if not inner and (hashes := _HASHES.match(text)):
            self.item = None
            self._head(at, len(hashes[1]), text[hashes.end() :])
        elif (not inner and _is_break(text)) or _INDEX.match(text) or _FIRST_NUMBER.match(text):
            self.item = None
        elif BULLET.match(text):
            self.item = Item(at, at, self.headings[-1].section if self.headings else "")
            self.items.append(self.item)
        elif self.item and self._continues(self.item, at, text):
            self.item.last = at
        elif self.item:
            self.item.stray = at
            self.item = None

    def _continues(self, item: Item, at: int, text: str) -> bool:
        # A metadata comment that an editor set apart or dedented is still the one of the entry above.
        return item.last == at - 1 or text.startswith((" ", "\t")) or parse_comment(text) is not None

    def _head(self, at: int, level: int, title: str) -> None:
        title = TextLine(0, 0, title, comments=find_comments(title)[0]).prose().strip(" \t")
        bare = title.rstrip("#")
        title = bare.rstrip(" \t") if not bare or bare.endswith((" ", "\t")) else title
        self.path = [(above, name) for above, name in self.path if above < level] + [(level, title)]
        section = " / ".join(name for _, name in self.path if name)
        self.headings.append(Heading(level, section, at))

    def _open(self, at: int, text: str) -> None:
        """Begin a region if the line opens one."""
        nested = self.item is not None and (text.startswith(("  ", "\t")) or self.item.first == at)
        code = not nested and text.startswith((" " * 4, "\t"))
        if _INDEX.match(text) and not ends_index(text):
            self.lines[at] = replace(self.lines[at], kind=Kind.HIDDEN)
            closed = self._look_ahead().index_end >= at
            self.region = _Region(Kind.HIDDEN, at, until_heading=not closed)
        elif not code and (fence := _FENCE.match(BULLET.sub("", text, count=1))):
            self.lines[at] = replace(self.lines[at], kind=Kind.CODE)
            self.region = _Region(Kind.CODE, at, nested=nested, fence=fence[1])
        elif "<!--" in text:
            self._open_comment(at, text, nested)

    def _open_comment(self, at: int, text: str, nested: bool) -> None:
        comments, opened = find_comments(text)
        if opened is not None:
            leads = not BULLET.sub("", text[:opened], count=1).strip(" \t")
            ahead = self._look_ahead()
            if leads:
                self.region = _Region(Kind.COMMENT, at, nested=nested)
            elif ahead.comment_end[at] < ahead.paragraph_end[at]:
                self.region = _Region(Kind.COMMENT, at)
            else:
                opened = None
        self.lines[at] = replace(self.lines[at], comments=comments, opened=opened)

    def _look_ahead(self) -> _Ahead:
        if self.ahead is None:
            self.ahead = _Ahead.of(self.lines)
        return self.ahead

    def outline(self, front: int, newline: bytes) -> Outline:
        region = self.region if self.region and self.region.kind is not Kind.HIDDEN else None
        problems: tuple[Problem, ...] = ()
        if region and not region.nested:
            if self.item:
                # What is never closed is nobody's: as part of a block it would hide what a move puts after it.
                self.item.last = min(self.item.last, region.at - 1)
            what = "fence" if region.kind is Kind.CODE else "comment"
            problems = (
                Problem(
                    f"unclosed_{what}",
                    f"line {region.at + 1}",
                    f"this {what} is never closed, so no entry after it is seen",
                    "close it",
                ),
            )
        return Outline(
            lines=tuple(self.lines),
            front=front,
            headings=tuple(self.headings),
            items=tuple(self.items),
            newline=newline,
            has_conflict=self.has_conflict,
            open_line=region.at if region else None,
            open_nested=bool(region and region.nested),
            problems=problems,
        )


@dataclass(frozen=True, slots=True)
class _Ahead:
    """For each line: the next that ends a comment, and the next outside its paragraph; the last that ends an index."""

    comment_end: list[int]
    paragraph_end: list[int]
    index_end: int

    @staticmethod
    def of(lines: list[TextLine]) -> _Ahead:
        count = len(lines)
        comment_end, paragraph_end = [count] * count, [count] * count
        for at in range(count - 2, -1, -1):
            text = lines[at + 1].text
            comment_end[at] = at + 1 if "-->" in text else comment_end[at + 1]
            paragraph_end[at] = at + 1 if _NEW_BLOCK.match(text) else paragraph_end[at + 1]
        ends = [at for at, line in enumerate(lines) if ends_index(line.text)]
        return _Ahead(comment_end, paragraph_end, ends[-1] if ends else -1)


def _is_break(text: str) -> bool:
    if text.startswith((" " * 4, "\t")):
        return False
    bare = text.strip(" \t")
    return bare[0] in "-*_" and bare.count(bare[0]) > 2 and not bare.strip(bare[0] + " \t")
