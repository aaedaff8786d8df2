"""Splits a patch into the lines an agent wrote and the lines it copied from a file.

Three notations: apply_patch (`*** Begin Patch`), unified diff, and SEARCH/REPLACE blocks (Aider, Cline, Roo). Text
around them is the agent's own. Only `+` lines and REPLACE halves are new; context, `-` lines and SEARCH halves stood in
the file before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kbd.core.model import BREAK

_MARK = re.compile(
    r"^(?:\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@"
    r"|--- [^\n]+\n\+\+\+ |(?:<{5,9}|-{5,9}) ?SEARCH\b)",
    re.MULTILINE,
)
_APPLY_HEAD = re.compile(r"\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)")
_UNIFIED_HEAD = re.compile(r"(?:---|\+\+\+) (?:[abciw]/)?([^\t\n]+)")
_RENAME = re.compile(r"(?:rename|copy) (?:from|to) (.+)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SEARCH = re.compile(r"(?:<{5,9}|-{5,9}) ?SEARCH\b")
_MIDDLE = re.compile(r"={5,9}\s*$")
_REPLACED = re.compile(r"(?:>{5,9}|\+{5,9}) ?REPLACE\b")


@dataclass(frozen=True, slots=True)
class Patch:
    """The two halves of a patch and the files its headers name, in order, without duplicates.

    `BREAK` stands between lines that are no neighbours: other hunks, or in `written` lines with context between them.
    """

    written: str
    copied: str
    files: tuple[str, ...]


def is_patch(text: str) -> bool:
    """Whether some line of `text` opens a patch."""
    if not ("*** " in text or "--- " in text or "@@ -" in text or "SEARCH" in text):
        return False  # nearly always
    return _MARK.search(text) is not None


def split_patch(text: str) -> Patch:
    """Split `text`; a text without any patch is all written. Linear; never raises."""
    splitter = _Splitter()
    for line in text.split("\n"):
        splitter.line(line.removesuffix("\r"))
    return Patch(splitter.written.text(), splitter.copied.text(), tuple(splitter.files))


class _Half:
    """Lines of one half, in runs of neighbours."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = [[]]

    def append(self, line: str) -> None:
        self.runs[-1].append(line)

    def cut(self) -> None:
        if self.runs[-1]:
            self.runs.append([])

    def text(self) -> str:
        return BREAK.join("\n".join(run) for run in self.runs if run)


class _Splitter:
    """Where the reader stands: in an apply_patch envelope, in a hunk (lines left per side), in a SEARCH or REPLACE.

    `signs` says that lines with a sign may go on: models miscount the lines of a hunk, or give no numbers.
    """

    def __init__(self) -> None:
        self.written = _Half()
        self.copied = _Half()
        self.files: dict[str, None] = {}
        self.envelope = False
        self.old_left = 0
        self.new_left = 0
        self.half = ""
        self.signs = False

    def line(self, line: str) -> None:
        if self.half:
            self._half_line(line)
        elif (self.old_left > 0 or self.new_left > 0) and not _HUNK.match(line):
            self._hunk_line(line)
        elif self._opens(line):
            self._cut()
            self.copied.append(line)
            self._cut()
            self.signs = line.startswith(("@@", "+++ "))
        elif self.envelope or self.signs and line.startswith(("+", "-", " ")):
            self._signed(line)
        else:
            self._end_of_signs()
            self.written.append(line)

    def _end_of_signs(self) -> None:
        if self.signs:
            self.signs = False
            self._cut()

    def _cut(self) -> None:
        self.written.cut()
        self.copied.cut()

    def _opens(self, line: str) -> bool:
        """Whether `line` belongs to the notation itself; takes its file name and the state it begins."""
        if line.startswith("*** "):
            self.envelope = not line.startswith("*** End Patch")
            self._file(_APPLY_HEAD.match(line))
            return True
        hunk = _HUNK.match(line)
        if hunk is not None:
            self.old_left, self.new_left = int(hunk[1] or 1), int(hunk[2] or 1)
            return True
        if _SEARCH.match(line):
            self.half = "search"
            return True
        return self.signs and line.startswith("@@") or not self.envelope and self._header(line)

    def _header(self, line: str) -> bool:
        found = _UNIFIED_HEAD.fullmatch(line) or _RENAME.fullmatch(line)
        self._file(found)
        return found is not None or line.startswith(("diff --git ", "index "))

    def _file(self, found: re.Match[str] | None) -> None:
        if found is not None and found[1].strip() not in ("", "/dev/null"):
            self.files.setdefault(found[1].strip())

    def _half_line(self, line: str) -> None:
        if _REPLACED.match(line):
            self.half = ""
            self._cut()
        elif self.half == "search" and _MIDDLE.match(line):
            self.half = "replace"
        elif self.half == "replace":
            self.written.append(line)
        else:
            self.copied.append(line)

    def _hunk_line(self, line: str) -> None:
        if line.startswith("\\"):
            return
        self.old_left -= not line.startswith("+")
        self.new_left -= not line.startswith("-")
        self._signed(line)
        if self.old_left <= 0 and self.new_left <= 0:
            self._cut()

    def _signed(self, line: str) -> None:
        if line.startswith("+"):
            self.written.append(line[1:])
        else:
            self.copied.append(line[1:])
            if not line.startswith("-"):
                self.written.cut()
