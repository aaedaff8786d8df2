"""A tolerant reader of shell text: simple commands with their words, redirections and here-documents.

Agents write commands that no shell would run, for shells that differ, so every string has a reading: an open quote or
here-document goes on to the end, a stray closer is skipped. One cursor passes the text once (linear time). Quotes are
resolved; `$name` stays for the caller to expand. Nested commands (`$(…)`, backticks, `<(…)`, subshells) become
segments of their own, in groups, because `cd` inside a group does not outlive it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kbd.core.lean import lean

MAX_DEPTH = 40  # nested commands below this depth are read as if they stood side by side
MAX_PIECES = 100_000  # a hostile text of quotes or separators only would take seconds; here-documents cost nothing

_BLANKS = re.compile(r"[ \t\r]+")
_PLAIN = re.compile(r"[^ \t\r\n\\'\"`$;&|<>()]+")
_WHOLE_WORD = re.compile(_PLAIN.pattern + r"(?=[ \t\r\n;&|<>()])")
# Whole words, none a comment, with the blanks behind them.
_WHOLE_WORDS = re.compile(rf"(?:(?!#){_PLAIN.pattern}+(?=[ \t\r\n;&|<>()])[ \t\r]*+)+")
_WORDS_CHARS = 4096
_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_REDIRECT = re.compile(r"&>>?|<<<|<<-?|<>|<&|>>|>\||>&|[<>]")
_SEPARATORS = re.compile(r"[;&|]+")
_ANSI_C = re.compile(r"((?:[^'\\]|\\.)*)'?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(slots=True)
class Segment:
    """One simple command.

    Attributes:
        group: number of the (sub)shell it runs in, an index into `Script.parents`.
        words: its words with quotes resolved.
        redirects: pairs of operator and target, here-documents and copies of descriptors left out.
        bodies: its here-documents and here-strings.
    """

    group: int
    words: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@lean(frozen=True, slots=True)
class Script:
    """All segments in order of their ends.

    Attributes:
        segments: the simple commands.
        comments: text of the comments, without `#`.
        parents: for each group the one around it (-1: none).
        unread: what follows the first `MAX_PIECES` pieces.
    """

    segments: tuple[Segment, ...]
    comments: tuple[str, ...]
    parents: tuple[int, ...]
    unread: str


def read_script(text: str) -> Script:
    """Read `text` as shell commands; never raises."""
    lexer = _Lexer(text)
    lexer.commands("", 0)
    return Script(tuple(lexer.segments), tuple(lexer.comments), tuple(lexer.parents), lexer.unread)


class _Lexer:
    """The cursor. Each method reads from `at` and leaves it behind what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.segments: list[Segment] = []
        self.comments: list[str] = []
        self.parents: list[int] = [-1]
        self.depth = 0
        self.closer = ""
        self.pending: list[tuple[Segment, int, str, bool]] = []
        self.word_end = -1
        self.comment_end = -1
        self.arithmetic_ends = True
        self.pieces = 0
        self.unread = ""

    def commands(self, closer: str, group: int) -> None:
        """Read segments up to `closer` (or the end), which is consumed."""
        outer, self.closer = self.closer, closer
        segment = Segment(group)
        while self.at < len(self.text):
            char = self.text[self.at]
            if self._whole_words(segment):
                continue
            self._count()
            if char == closer:
                self.at += 1
                break
            if char in " \t\r\\#" and self._blank(char):
                continue
            if char in "\n;&|()" and not self.text.startswith("&>", self.at):
                self._keep(segment)
                segment = Segment(group)
                self._separator(char, group)
            elif char in "<>&":
                self._redirect(segment)
            else:
                segment.words.append(self._word(group))
                self.word_end = self.at
        self._keep(segment)
        self.closer = outer

    def _whole_words(self, segment: Segment) -> bool:
        """Take several plain words at once, as most of a command is; they count as if taken one by one."""
        found = _WHOLE_WORDS.match(self.text, self.at, self.at + _WORDS_CHARS)
        if found is None:
            return False
        words = _PLAIN.findall(found[0])
        pieces = 2 * len(words) - (found[0][-1] not in " \t\r")
        if self.pieces + pieces >= MAX_PIECES:
            return False
        self.pieces += pieces
        self.at = found.end()
        segment.words += words
        self.word_end = self.at if found[0][-1] not in " \t\r" else -1
        return True

    def _count(self) -> None:
        self.pieces += 1
        if self.pieces == MAX_PIECES:
            self.unread = self.text[self.at + 1 :]
            self.text = self.text[: self.at + 1]

    def _keep(self, segment: Segment) -> None:
        if segment.words or segment.redirects or segment.bodies:
            self.segments.append(segment)

    def _blank(self, char: str) -> bool:
        blanks = _BLANKS.match(self.text, self.at)
        if blanks is not None:
            self.at = blanks.end()
        elif self.text.startswith("\\\n", self.at):
            self.at += 2
        elif char == "#":
            end = self._line_end()
            self._comment(self.text[self.at + 1 : end].strip())
            self.at = self.comment_end = end
        else:
            return False
        return True

    def _comment(self, words: str) -> None:
        """Keep a comment; on the line below another it goes on with that one's text."""
        if self.comment_end >= 0 and self.text[self.comment_end : self.at].strip(" \t\r") == "\n":
            words = f"{self.comments.pop()}\n{words}"
        self.comments.append(words)

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _separator(self, char: str, group: int) -> None:
        if char == "\n":
            self.at += 1
            self._here_documents()
        elif self.text.startswith("((", self.at):
            self._arithmetic(2)
        elif char == "(":
            self.at += 1
            self._nested(")", group)
        elif char == ")":
            self.at += 1
        else:
            found = _SEPARATORS.match(self.text, self.at)
            end = found.end() if found else self.at + 1
            self.at = end - 1 if self.text.startswith("&>", end - 1) and end - 1 > self.at else end

    def _nested(self, closer: str, group: int) -> None:
        if self.depth >= MAX_DEPTH:
            return
        self.depth += 1
        self.parents.append(group)
        self.commands(closer, len(self.parents) - 1)
        self.depth -= 1

    def _arithmetic(self, opener: int) -> None:
        # `1<<2` is no here-document inside `((…))`
        end = self.text.find("))", self.at + opener) if self.arithmetic_ends else -1
        self.arithmetic_ends = end >= 0
        self.at = self.at + opener if end < 0 else end + 2

    def _redirect(self, segment: Segment) -> None:
        found = _REDIRECT.match(self.text, self.at)
        if self.word_end == self.at and segment.words and segment.words[-1].isdigit():
            segment.words.pop()  # the descriptor of `2>file`
        operator = found.group() if found else ""
        self.at += len(operator)
        if operator in ("<", ">") and self.text.startswith("(", self.at):
            self.at += 1
            self._nested(")", segment.group)
            return
        blanks = _BLANKS.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at
        target = self._word(segment.group)
        if operator in ("<<", "<<-"):
            self.pending.append((segment, len(segment.bodies), target, operator == "<<-"))
            segment.bodies.append("")
        elif operator == "<<<":
            segment.bodies.append(target)
        elif not (operator in (">&", "<&") and target.rstrip("-").isdigit() or target in ("", "-")):
            segment.redirects.append((operator, target))

    def _here_documents(self) -> None:
        pending, self.pending = self.pending, []
        for segment, index, delimiter, tabs in pending:
            segment.bodies[index] = self._here_document(delimiter, tabs)

    def _here_document(self, delimiter: str, tabs: bool) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            end = self._line_end()
            line = self.text[self.at : end]
            shown = line.lstrip("\t") if tabs else line
            if shown.rstrip("\r ") == delimiter:
                self.at = end + 1
                break
            if self.depth and shown.startswith(delimiter + ")"):
                self.at += line.index(")")
                break
            lines.append(shown)
            self.at = end + 1
        self.at = min(self.at, len(self.text))
        return "\n".join(lines)

    def _word(self, group: int) -> str:
        plain = _WHOLE_WORD.match(self.text, self.at)
        if plain is not None:  # nearly always
            self.at = plain.end()
            return plain[0]
        parts: list[str] = []
        while self.at < len(self.text):
            plain = _PLAIN.match(self.text, self.at)
            if plain is not None:
                parts.append(plain.group())
                self.at = plain.end()
                continue
            char = self.text[self.at]
            if char in " \t\r\n;&|<>()" or char == self.closer:
                break
            self.at += 1
            parts.append(self._special(char, group))
        return "".join(parts)

    def _special(self, char: str, group: int) -> str:
        """Read what a quote, backslash, backtick or dollar sign (just passed) begins; return its text."""
        self._count()
        match char:
            case "'":
                return self._until("'")
            case '"':
                return self._double_quoted(group)
            case "\\":
                self.at += 1
                return self.text[self.at - 1 : self.at].replace("\n", "")
            case "`":
                self._nested("`", group)
                return ""
            case _:
                return self._dollar(group)

    def _until(self, mark: str) -> str:
        end = self.text.find(mark, self.at)
        end = len(self.text) if end < 0 else end
        start, self.at = self.at, min(end + 1, len(self.text))
        return self.text[start:end]

    def _double_quoted(self, group: int) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            plain = _IN_DOUBLE.match(self.text, self.at)
            if plain is not None:
                parts.append(plain.group())
                self.at = plain.end()
                continue
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                break
            parts.append(self._escaped() if char == "\\" else self._special_in_double(char, group))
        return "".join(parts)

    def _escaped(self) -> str:
        following = self.text[self.at : self.at + 1]
        self.at += 1
        return following.replace("\n", "") if following in '"\\$`\n' else "\\" + following

    def _special_in_double(self, char: str, group: int) -> str:
        if char == "$" and self.text[self.at : self.at + 1] in ("'", '"'):
            return char  # no quoting inside double quotes
        return self._special(char, group)

    def _dollar(self, group: int) -> str:
        if self.text.startswith("((", self.at):
            self._arithmetic(2)
        elif self.text.startswith("(", self.at) and self.depth < MAX_DEPTH:
            self.at += 1
            self._nested(")", group)
        elif self.text.startswith("{", self.at):
            return "$" + self._until("}") + "}"
        elif self.text.startswith("'", self.at):
            quoted = _ANSI_C.match(self.text, self.at + 1)
            self.at = quoted.end() if quoted else len(self.text)
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), quoted[1] if quoted else "", flags=re.DOTALL)
        elif not self.text.startswith('"', self.at):
            return "$"
        return ""
