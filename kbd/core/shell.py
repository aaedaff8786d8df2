"""Tells what an agent wrote in a shell command from what it looked up, and which files the command names.

A command is judged by simple commands (segments). Retrieval (rg, cat, git log, …) writes nothing; all else is written,
here-documents and comments included, down through `bash -c`. Written in place of a general parser because agents' most
frequent form, a here-document with a quoted delimiter, is a syntax error for the one that exists (bashlex 0.18).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbd.core.lean import lean
from kbd.core.model import BREAK, Touch, TouchMode
from kbd.core.ownadds import added_title
from kbd.core.patch import is_patch, split_patch
from kbd.core.shelllex import Segment, read_script
from kbd.core.shellverbs import (
    FILTERS,
    INTERPRETERS,
    MOVERS,
    REMOVERS,
    SEARCHERS,
    SHELLS,
    VIEWERS,
    edits_in_place,
    is_lookup,
    verb_index,
)

MAX_NAMED = 512  # paths kept of one command
_MAX_DEPTH = 8
_MAX_VALUE = 65_536  # a variable that doubles itself must not fill the memory
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_NO_FILE = re.compile(r"/dev/(?!shm/)|&")
_SUFFIX = re.compile(r"\.[A-Za-z][\w-]{0,9}$")
_SUFFIXED = re.compile(r"\.[A-Za-z]")
_NOT_IN_PATH = re.compile(r"[\s'\"`()|;<>]|://")
# Tried only where a token begins: a megabyte without a blank is passed once.
_CODE_TOKEN = re.compile(r"""(?<![^{0}])[^{0}./\\]*+[./\\][^{0}]*+""".replace("{0}", r"""\s'"`()\[\]{}<>|;,=?!$#&:"""))
_RUN_STRING = re.compile(r"-[A-Za-z]*c|-Command|/c", re.IGNORECASE)
_SUBSTITUTION = re.compile(
    r"[\d,$]*s([/|#,@!%~:])((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1?[gimpI\d]*", re.DOTALL
)


@lean(frozen=True, slots=True)
class ShellCommand:
    """What one command says.

    Attributes:
        written: the segments that are no retrieval, with here-documents and comments.
        copied: old halves (patch context, `s/old/`) and arguments of kbd's own commands.
        touched: files read or written, relative ones joined with the directory a `cd` before them names.
        named: further words that could be paths, joined alike; globs stay globs.
        own: kbd itself is run.
        added: titles of the entries that it adds.
    """

    written: str
    copied: str = ""
    touched: tuple[Touch, ...] = ()
    named: tuple[str, ...] = ()
    own: bool = False
    added: tuple[str, ...] = ()


def analyse(command: str, directory: str = "") -> ShellCommand:
    """Read `command` as run in `directory` ("" for the session's own); linear, never raises."""
    reading = _Reading()
    reading.script(command, directory, 0)
    touched = tuple([Touch(path, mode) for path, mode in reading.touched.items()])
    named = tuple([path for path in reading.named if path not in reading.touched])
    return ShellCommand(
        BREAK.join(reading.written), BREAK.join(reading.copied), touched, named, reading.own, tuple(reading.added)
    )


def join_path(directory: str, path: str) -> str:
    """Return `path` as seen from outside `directory`; absolute paths and `~` stay."""
    path = path.removeprefix("./")
    if not directory or path.startswith(("/", "~", "$", "\\")) or path[1:3] in (":\\", ":/"):
        return path
    return f"{directory.rstrip('/')}/{path}" if path not in ("", ".") else directory


def is_path(word: str) -> bool:
    """Whether a word could name a file: it has a slash or a suffix that begins with a letter, and is no URL."""
    if not ("/" in word or "\\" in word or "." in word) or not 1 < len(word) <= 1024:
        return False  # most words: told by the cheapest tests
    if word.startswith("-") or _NOT_IN_PATH.search(word):
        return False
    return "/" in word or "\\" in word or _SUFFIX.search(word) is not None


def paths_in_code(text: str) -> list[str]:
    """Return the tokens of program text that could be paths, at most `MAX_NAMED`."""
    if not ("/" in text or "\\" in text or _SUFFIXED.search(text)):
        return []
    found: dict[str, None] = {}
    for token in _CODE_TOKEN.finditer(text):
        if is_path(token[0]):
            found.setdefault(token[0])
            if len(found) >= MAX_NAMED:
                break
    return list(found)


class _Reading:
    """What has been found so far."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.copied: list[str] = []
        self.touched: dict[str, TouchMode] = {}
        self.named: dict[str, None] = {}
        self.own = False
        self.added: list[str] = []
        self.variables: dict[str, str] = {}

    def script(self, text: str, directory: str, depth: int) -> None:
        script = read_script(text)
        self.written += [part for part in (*script.comments, script.unread) if part]
        directories: dict[int, str] = {-1: directory}
        for segment in script.segments:
            group = segment.group
            while group not in directories:
                group = script.parents[group]
            directories[segment.group] = self._segment(segment, directories[group], depth)

    def _segment(self, segment: Segment, directory: str, depth: int) -> str:
        """Take one segment in; return the directory after it."""
        words = [self._expand(word) if "$" in word else word for word in segment.words]
        start = verb_index(words)
        if start:
            self._assign(words[:start])
        verb = words[start].rsplit("/", 1)[-1].lstrip("\\") if start < len(words) else ""
        args = words[start + 1 :]
        if verb in ("cd", "pushd", "Set-Location"):
            return join_path(directory, next((arg for arg in args if not arg.startswith("-")), "~"))
        inside = join_path(directory, args[1]) if verb == "git" and args[:1] == ["-C"] and len(args) > 1 else directory
        for operator, target in segment.redirects:
            self._touch(self._expand(target), TouchMode.READ if operator == "<" else TouchMode.WRITE, inside)
        self._name(words, inside)
        if verb == "kbd" or args[:2] == ["-m", "kbd"]:
            self.own = True
            title = added_title(args if verb == "kbd" else args[2:])
            self.added += [title] if title else []
            self.copied.append(" ".join([*args, *segment.bodies]))
        elif not self._inner(words[start:], segment.bodies, directory, depth):
            self._judge(verb, args, segment, inside)
        return directory

    def _expand(self, word: str) -> str:
        return _VARIABLE.sub(lambda m: self.variables.get(m[1] or m[2], m[0]), word)[: max(_MAX_VALUE, len(word))]

    def _assign(self, words: Sequence[str]) -> None:
        for word in words:
            found = _ASSIGNMENT.fullmatch(word)
            if found is not None:
                self.variables[found[1]] = found[2][:_MAX_VALUE]

    def _inner(self, words: Sequence[str], bodies: Sequence[str], directory: str, depth: int) -> bool:
        """Read what is a script for another shell; say whether there was one."""
        scripts: list[str] = []
        for index, option in enumerate(words[1:-1], 1):
            is_option = option[:1] in ("-", "/")  # told first: most words are none
            if is_option and words[index - 1].rsplit("/", 1)[-1] in SHELLS and _RUN_STRING.fullmatch(option):
                scripts = [words[index + 1] if option.islower() else " ".join(words[index + 1 :])]
                break
        verb = words[0].rsplit("/", 1)[-1] if words else ""
        if not scripts and verb in ("eval", "ssh") and len(words) > 1 + (verb == "ssh"):
            scripts = [" ".join(words[2:] if verb == "ssh" else words[1:])]
        elif not scripts and verb in SHELLS:
            scripts = list(bodies)
        if depth >= _MAX_DEPTH:
            return False
        for script in scripts:
            self.script(script, directory, depth + 1)
        return bool(scripts)

    def _judge(self, verb: str, args: Sequence[str], segment: Segment, directory: str) -> None:
        in_place = edits_in_place(verb, args)
        lookup = is_lookup(verb, args) and not in_place and not (verb in FILTERS and self._redirected(segment))
        if not lookup and verb:
            self._write_args(verb, args, in_place, directory)
        if verb not in SEARCHERS:
            for body in segment.bodies:
                self._write_body(body, directory)
        if verb in INTERPRETERS:
            for text in (*args, *segment.bodies):
                self._name(paths_in_code(text), directory)
        self._touch_args(verb, [arg for arg in args if not arg.startswith("-")], in_place, directory)

    def _redirected(self, segment: Segment) -> bool:
        return any(operator != "<" and not _NO_FILE.match(target) for operator, target in segment.redirects)

    def _write_args(self, verb: str, args: Sequence[str], in_place: bool, directory: str) -> None:
        kept = [verb]
        for arg in args:
            if is_patch(arg):
                self._write_body(arg, directory)
                continue
            halves = _SUBSTITUTION.fullmatch(arg) if in_place else None
            if halves is not None:
                self.copied.append(halves[2])
            kept.append(arg if halves is None else halves[3])
        self.written.append(" ".join(kept))

    def _write_body(self, body: str, directory: str) -> None:
        if not is_patch(body):
            self.written.append(body)
            return
        patch = split_patch(body)
        self.written.append(patch.written)
        self.copied.append(patch.copied)
        for path in patch.files:
            self._touch(path, TouchMode.WRITE, directory)

    def _touch_args(self, verb: str, args: Sequence[str], in_place: bool, directory: str) -> None:
        if verb in FILTERS or verb in SEARCHERS:
            args = args[1:]  # the first is the script or the pattern
        if verb in MOVERS and len(args) > 1:
            self._touch_all(args[:-1], TouchMode.READ, directory)
            self._touch(args[-1], TouchMode.WRITE, directory)
        elif in_place or verb in REMOVERS:
            self._touch_all(args, TouchMode.WRITE, directory)
        elif verb in VIEWERS or verb in SEARCHERS or verb in FILTERS:
            self._touch_all([arg for arg in args if _SUFFIX.search(arg)], TouchMode.READ, directory)

    def _touch_all(self, paths: Sequence[str], mode: TouchMode, directory: str) -> None:
        for path in paths:
            if is_path(path):
                self._touch(path, mode, directory)

    def _touch(self, path: str, mode: TouchMode, directory: str) -> None:
        if not path or _NO_FILE.match(path) or any(mark in path for mark in "*?\n"):
            return
        joined = join_path(directory, path)
        if len(self.touched) < MAX_NAMED and (joined not in self.touched or mode is TouchMode.WRITE):
            self.touched[joined] = mode

    def _name(self, words: Sequence[str], directory: str) -> None:
        for word in words:
            if not ("/" in word or "." in word or "\\" in word):
                continue  # most words
            parts = [word]
            if "=" in word:
                parts.append(word.partition("=")[2])
            if ":" in word:
                parts.append(word.rpartition(":")[2])
            for part in parts:
                if is_path(part) and len(self.named) < MAX_NAMED:
                    self.named.setdefault(join_path(directory, part))
