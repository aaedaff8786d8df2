"""Splits a reply of Aider into its prose and the edits in it: SEARCH/REPLACE blocks, diffs, whole files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kbd.core.model import Author, Block, ToolCall, Touch, TouchMode
from kbd.core.shell import is_path

SEARCH = re.compile(r"<{5,9} ?SEARCH\b")
REPLACED = re.compile(r">{5,9} ?REPLACE\b")
_MIDDLE = re.compile(r"={5,9}\s*$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})\s*(\w*)")
_HEAD = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?(\S+)")


def fence_after(fence: str, line: str) -> str:
    """Return the mark of the fence that is open after `line`, "" if none, given the one open before it."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not found[2]
    return "" if closes else fence


@dataclass(slots=True)
class _Edit:
    path: str
    whole: bool = False
    written: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)


def edit_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the prose of a reply as one block, then its edits in order; linear, never raises."""
    splitter = _Splitter()
    for line in lines:
        splitter.line(line)
    prose = "\n".join(splitter.prose)
    if prose.strip():
        yield Block(Author.AGENT_TEXT, prose)
    for number, edit in enumerate(splitter.edits):
        touched = (Touch(edit.path, TouchMode.WRITE),) if edit.path else ()
        written = "\n".join(edit.written)
        call = ToolCall("edit", written, "\n".join(edit.copied), whole_file=edit.whole, touched=touched)
        yield Block(Author.AGENT_TOOL_INPUT, written, f"e{number}", call)


class _Splitter:
    """Where the reader stands: in prose, in a fence, in half of a SEARCH/REPLACE block."""

    def __init__(self) -> None:
        self.prose: list[str] = []
        self.edits: list[_Edit] = []
        self.path = ""
        self.above = ""  # the last line that was neither blank nor a fence
        self.fence = ""
        self.half = ""
        self.kind = ""  # what the open fence holds: diff, whole (a file's new content), or prose

    def line(self, line: str) -> None:
        if self.half:
            self._half_line(line)
        elif SEARCH.match(line):
            self._name()
            self.half = "search"
            self.edits.append(_Edit(self.path))
        elif (after := fence_after(self.fence, line)) != self.fence:
            self._fence_line(line, after)
        elif self.kind == "diff":
            self._diff_line(line)
        elif self.kind == "whole":
            self.edits[-1].written.append(line)
            self.above = line.strip() or self.above
        else:
            self.prose.append(line)
            self.above = line.strip() or self.above

    def _file_above(self) -> str:
        """Return the file that the line above names, dressed up as Markdown perhaps; "" if it names none."""
        word = self.above.strip("#*` \t").rstrip(":").strip("*` ")
        return word if is_path(word) else ""

    def _name(self) -> None:
        self.path = self._file_above() or self.path
        if self.kind == "whole" and len(self.edits[-1].written) < 2:  # the fence opened with the name, not with content
            self.edits.pop()
            self.kind = "prose"

    def _half_line(self, line: str) -> None:
        edit = self.edits[-1]
        if REPLACED.match(line):
            self.half = ""
        elif self.half == "search" and _MIDDLE.match(line):
            self.half = "replace"
        else:
            (edit.copied if self.half == "search" else edit.written).append(line)

    def _fence_line(self, line: str, after: str) -> None:
        self.fence = after
        found = _FENCE.match(line)
        if not after or found is None:
            self.kind = self.above = ""
            return
        word = self._file_above()
        if found[2] in ("diff", "udiff"):
            self.kind = "diff"
            self.edits.append(_Edit(self.path))
        elif word:
            self.kind, self.path = "whole", word
            self.edits.append(_Edit(word, whole=True))
        else:
            self.kind = "prose"

    def _diff_line(self, line: str) -> None:
        edit = self.edits[-1]
        head = _HEAD.match(line)
        if head is not None:
            edit.path = self.path = head[1] if head[1] != "/dev/null" else edit.path
        elif line.startswith("+"):
            edit.written.append(line[1:])
        else:
            edit.copied.append(line[1:])
