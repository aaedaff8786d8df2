"""The lines of a Markdown file, and what stands inside one line: inline code and HTML comments."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"
_COMMENT_OR_TICKS = re.compile(r"<!--|`+")


class Kind(enum.Enum):
    """What a line is read as."""

    TEXT = "text"
    CODE = "code"
    COMMENT = "comment"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line.

    Attributes:
        start: byte offset of its first character (after a BOM).
        end: byte offset after its line end.
        text: decoded as UTF-8 with surrogateescape, without `\\n` or `\\r\\n`.
        kind: opaque or not.
        comments: character ranges of the HTML comments that begin and end in it, outside inline code.
        opened: where a comment begins that ends in a later line, None if none does.
    """

    start: int
    end: int
    text: str
    kind: Kind = Kind.TEXT
    comments: tuple[tuple[int, int], ...] = ()
    opened: int | None = None

    def prose(self) -> str:
        """Return the text without its comments."""
        text = self.text if self.opened is None else self.text[: self.opened]
        for start, end in reversed(self.comments):
            text = text[:start] + text[end:]
        return text


def code_spans(text: str) -> Iterable[tuple[int, int]]:
    """Yield the ranges of inline code in one paragraph: a run of backticks up to the next run of the same length."""
    ends = _tick_ends(text)
    at = 0
    for start, end in ends.items():
        if start >= at:
            yield start, end
            at = end


def find_comments(text: str) -> tuple[tuple[tuple[int, int], ...], int | None]:
    """Return the ranges of whole HTML comments in a line, and where one begins that the line does not end.

    Inline code and comments exclude each other; the one that begins first wins.
    """
    comments: list[tuple[int, int]] = []
    ends = _tick_ends(text) if "<!--" in text else {}
    at = 0
    while "<!--" in text and (match := _COMMENT_OR_TICKS.search(text, at)):
        if match[0] != "<!--":
            at = ends.get(match.start(), match.end())
        elif (end := text.find("-->", match.end())) < 0:
            return tuple(comments), match.start()
        else:
            at = end + len("-->")
            comments.append((match.start(), at))
    return tuple(comments), None


def _tick_ends(text: str) -> dict[int, int]:
    """Map the start of each run of backticks to the end of the next run of the same length, in order."""
    runs = [match.span() for match in re.finditer("`+", text)] if "`" in text else []
    later: dict[int, int] = {}
    ends: dict[int, int] = {}
    for start, end in reversed(runs):
        if end - start in later:
            ends[start] = later[end - start]
        later[end - start] = end
    return dict(reversed(ends.items()))


def read_lines(data: bytes) -> list[TextLine]:
    """Split at `\\n` only: U+2028, U+0085 and form feeds do not end a line."""
    start = len(BOM) if data.startswith(BOM) else 0
    lines: list[TextLine] = []
    for raw in data[start:].split(b"\n"):
        end = min(start + len(raw) + 1, len(data))
        lines.append(TextLine(start, end, raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")))
        start = end
    if lines[-1].start == lines[-1].end:
        lines.pop()
    return lines
