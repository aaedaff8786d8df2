"""Reads the input of a tool call of any agent: what it wrote, what it copied, which files it names.

What a tool does is told by the words of its name (`read_file`, `mcp__git__log`, `WebSearch`) and the keys of its input
(`old_string`, `command`, `patch`), so that tools nobody listed here are read the same way. An input that only looks
something up writes nothing.
"""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from kbd.core.model import BREAK, ToolCall, Touch, TouchMode
from kbd.core.patch import is_patch, split_patch
from kbd.core.shell import analyse, is_path, join_path

MAX_DEPTH = 32
MAX_VALUES = 20_000
_KNOWN_CHARS = 256

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OWN = re.compile(r"(?:^(?:mcp_)?|__|--|[./:]|^mcp__plugin_(?:[\w-]*_)?)kbd(?:[_./:-]|$)", re.IGNORECASE)
_ADDS = re.compile(r"(?:^|[^A-Za-z])add$")
_OWN_SERVER = re.compile(r"(?:^|[-_./:])kbd$", re.IGNORECASE)
_PROGRAM_COMMAND = re.compile(
    r"""\b(?:cmd|command)["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""", re.DOTALL
)
_PATCH_BEGINS = ("*** ", "--- ", "diff --git ", "@@ ", "<<<<<")

_SHELL = frozenset(["bash", "shell", "exec", "terminal", "cmd", "command", "powershell", "run", "execute", "sh"])
_CHANGE = frozenset(
    ["write", "edit", "multiedit", "create", "update", "replace", "insert", "patch", "apply", "save", "append", "add",
     "delete", "remove", "move", "rename", "overwrite", "push", "send", "post", "put", "set", "ask", "plan", "commit",
     "editor", "todo"]
)  # fmt: skip
_LOOKUP = frozenset(
    ["read", "get", "list", "ls", "search", "find", "fetch", "query", "lookup", "view", "show", "grep", "glob",
     "browse", "recall", "retrieve", "describe", "inspect", "load", "open", "history", "cat", "ripgrep",
     "websearch", "webfetch", "output", "poll", "diagnostics", "wait", "status", "resolve", "diff", "blame"]
)  # fmt: skip
_MAKES = _CHANGE | frozenset(["structured", "report", "submit", "respond", "reply", "notify", "comment"])
_READS = frozenset(["read", "view", "cat", "open", "show"])
_WHOLE = frozenset(["write", "create", "save", "put", "overwrite", "push"])

_PATH_KEYS = frozenset(
    ["filepath", "path", "paths", "absolutepath", "notebookpath", "dirpath", "filename", "file", "files", "targetfile",
     "relativepath", "relativeworkspacepath", "newpath", "oldpath", "uri", "targetpath"]
)  # fmt: skip
_MAYBE_PATH_KEYS = frozenset(["source", "destination", "target", "from", "to", "src", "dest"])
_OWN_DIRECTORY_KEYS = frozenset(["workdir", "cwd", "workingdirectory"])
_DIRECTORY_KEYS = _OWN_DIRECTORY_KEYS | frozenset(["directory", "dir", "root", "targetdirectories"])
_COMMAND_KEYS = ("command", "cmd", "script", "commandline", "commands")
_ARGUMENT_KEYS = ("args", "argv")
_LINE_KEYS = frozenset([*_COMMAND_KEYS, *_ARGUMENT_KEYS])
_OLD_KEYS = frozenset(
    ["oldstring", "oldstr", "oldtext", "oldcontent", "original", "oldcode", "oldsource", "targetcontent"]
)
_NEW_KEYS = frozenset(["newstring", "newstr", "newtext", "replace", "replacement", "replacewith", "replacementcontent"])
_CONTENT_KEYS = frozenset(["content", "contents", "filetext", "text", "codecontent", "newsource", "body", "data"])
_HALVES = {
    "before": ("after", "oldtext"),
    "after": ("before", "newtext"),
    "old": ("new", "oldtext"),
    "new": ("old", "newtext"),
    "find": ("replace", "oldtext"),
}
"""Keys that are the halves of an edit only beside their other half, and what they are read as then."""
_TEXT_KEYS = _OLD_KEYS | _NEW_KEYS | _CONTENT_KEYS
_QUERY_KEYS = frozenset(["query", "queries", "pattern", "regex", "glob", "searchterm", "searchterms", "q"])


class _Kind(enum.Enum):
    LOOKUP = enum.auto()
    SHELL = enum.auto()
    OTHER = enum.auto()


def tool_call(name: str, tool_input: Mapping[str, object]) -> ToolCall:
    """Read one tool call; linear in its size, never raises.

    A call of kbd's own tools or commands has `own` set; what it said is in `copied`, its other segments in `written`.
    """
    keys = _plain_keys(tool_input)
    if "arguments" in keys:
        name, tool_input = _behind(name, tool_input, keys)
        keys = _plain_keys(tool_input)
    if (_is_own if len(name) <= _KNOWN_CHARS else _OWN.search)(name):
        given = list(_strings(tool_input))
        added = [text for key, text in given if key == "title"][:1] if _ADDS.search(name) else ()
        return ToolCall(name, "", copied=BREAK.join(text for _, text in given), own=True, added=tuple(added))
    reading = _Reading(name, tool_input, keys)
    reading.read()
    return ToolCall(
        name,
        BREAK.join(reading.written),
        copied=BREAK.join(reading.copied),
        whole_file=reading.whole_file,
        touched=tuple([Touch(path, mode) for path, mode in reading.touched.items()]),
        named=tuple([path for path in reading.named if path not in reading.touched]),
        own=reading.own,
        added=tuple(reading.added),
        prose=tuple(reading.prose),
    )


@lru_cache(1024)
def _is_own(name: str) -> bool:
    return _OWN.search(name) is not None


def _behind(
    name: str, tool_input: Mapping[str, object], keys: Mapping[str, object]
) -> tuple[str, Mapping[str, object]]:
    """Return the tool that one tool for all servers calls (Cline's `use_mcp_tool`, Cursor's `CallMcpTool`)."""
    server, tool = keys.get("servername") or keys.get("server"), keys.get("toolname") or keys.get("tool")
    given = keys.get("arguments")
    if not isinstance(server, str) or not isinstance(tool, str) or not isinstance(given, Mapping):
        return name, tool_input
    return f"mcp__{'kbd' if _OWN_SERVER.search(server) else server}__{tool}", given


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _strings(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each string of a nested input with the plain form of the nearest key above it, in order."""
    if isinstance(value, str):
        yield key, value
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        for inner_key, inner in _plain_keys(value).items():
            yield from _strings(inner, inner_key, depth + 1)
    elif isinstance(value, list | tuple) and _are_lines(value, key):
        yield key, ("" if value[0].endswith("\n") else "\n").join(value)
    elif depth < MAX_DEPTH and isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner, key, depth + 1)


def _flat_strings(plain: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the strings of an object that holds no others, as most inputs; nothing if it does."""
    if len(plain) > MAX_VALUES or any(isinstance(value, dict | list | tuple) for value in plain.values()):
        return []
    return [(key, value) for key, value in plain.items() if isinstance(value, str)]


def _plain_keys(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return an object with its keys in plain form, the halves of an edit under one name."""
    keys = tuple(map(str, value))
    names = _known_names(keys) if sum(map(len, keys)) <= _KNOWN_CHARS else _names(keys)
    return dict(zip(names, value.values(), strict=True))


def _names(keys: tuple[str, ...]) -> tuple[str, ...]:
    plain = [_plain(key) for key in keys]
    paired = {key for key, (other, _) in _HALVES.items() if key in plain and other in plain}
    return tuple([_HALVES[key][1] if key in paired else key for key in plain])


# A session's calls have a few dozen forms.
_known_names = lru_cache(1024)(_names)


@lru_cache(1024)
def _words_of(name: str) -> tuple[str, ...]:
    words = tuple(word.lower() for word in _WORDS.findall(name.rsplit("__", 1)[-1]))
    words = words[1:] if words[:1] == ("builtin",) else words
    return words[:-1] if words[1:] and words[-1] == "tool" else words


def _command_lines(call: Mapping[str, object]) -> Iterator[str]:
    """Yield the commands of an input, each with its arguments: one as a line or in words, or several."""
    given = [call[key] for key in _ARGUMENT_KEYS if key in call]
    arguments = "".join(f" {one if isinstance(one, str) else _in_words(one)}" for one in given)
    for key in _COMMAND_KEYS:
        value = call.get(key)
        if isinstance(value, str):
            yield value + arguments
        elif key != "commands" and isinstance(value, Sequence):
            yield _in_words(value) + arguments
        for one in value if key == "commands" and isinstance(value, list | tuple) else ():
            named = _plain_keys(one) if isinstance(one, Mapping) else {"command": one}
            yield from _command_lines({key: inner for key, inner in named.items() if key != "commands"})


def _with_line_ends(program: str) -> str:
    """Return a program whose patch, where it is a string of one line, has the line ends it stands for."""
    return program.replace("\\n", "\n") if "*** Begin Patch\\n" in program else program


def _in_words(value: object) -> str:
    return shlex.join(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ""


def _are_lines(items: Sequence[object], key: str) -> bool:
    """Tell whether the items are the lines of one text (a notebook's cell), rather than values of their own."""
    if len(items) < 2 or not all(isinstance(item, str) for item in items):
        return False
    return key in _TEXT_KEYS or all(isinstance(item, str) and item.endswith("\n") for item in items[:-1])


class _Reading:
    """What has been found in one input."""

    def __init__(self, name: str, tool_input: Mapping[str, object], keys: Mapping[str, object]) -> None:
        self.name = _words_of(name[:_KNOWN_CHARS])
        self.keys = keys
        self.values = _flat_strings(self.keys) or list(islice(_strings(tool_input), MAX_VALUES))
        self.written: list[str] = []
        self.copied: list[str] = []
        self.touched: dict[str, TouchMode] = {}
        self.named: dict[str, None] = {}
        self.prose: list[str] = []
        self.own = False
        self.added: list[str] = []
        self.directory = next((text for key, text in self.values if key in _OWN_DIRECTORY_KEYS), "")
        self.halves = not _NEW_KEYS.isdisjoint([key for key, _ in self.values])
        self.kind = self._kind()
        self.whole_file = self._is_whole_file()

    def read(self) -> None:
        """Take all values in."""
        mode, is_shell = self._mode(), self.kind is _Kind.SHELL
        if is_shell:
            self._commands()
        searched = self.kind is _Kind.LOOKUP or is_shell and not self.written
        for key, text in self.values:
            if key in _PATH_KEYS and "\n" not in text or key in _MAYBE_PATH_KEYS and is_path(text):
                self._path(text, mode)
            elif key in _DIRECTORY_KEYS:
                self.named.setdefault(text)
            elif text and not searched and not (is_shell and key in _LINE_KEYS):
                self._text(key, text)

    def _said(self, words: frozenset[str]) -> bool:
        return not words.isdisjoint(self.name)

    def _kind(self) -> _Kind:
        command = next((self.keys[key] for key in _COMMAND_KEYS if key in self.keys), None)
        if self.halves:
            return _Kind.OTHER
        if command == "view" and self._said(_CHANGE):
            return _Kind.LOOKUP  # one tool that views and edits, told by its `command`
        if command is not None and (self._said(_SHELL) or not self._said(_CHANGE)):
            return _Kind.SHELL
        action = [word.lower() for word in _WORDS.findall(str(self.keys.get("action", "")))]
        if action and not _LOOKUP.isdisjoint(action[:1]):
            return _Kind.LOOKUP  # one tool of many actions, told by its `action`
        ends = self.name[:1] + self.name[-1:]
        changes = not _MAKES.isdisjoint(self.name[:1]) or self._said(frozenset(["write", "edit", "todo"]))
        return _Kind.LOOKUP if not changes and not _LOOKUP.isdisjoint(ends) else _Kind.OTHER

    def _is_whole_file(self) -> bool:
        if "filetext" in self.keys:
            return True
        writes = self._said(_WHOLE) and not self._said(frozenset(["append", "insert"]))
        return writes and not _PATH_KEYS.isdisjoint(self.keys) and not _CONTENT_KEYS.isdisjoint(self.keys)

    def _mode(self) -> TouchMode:
        if self.kind is _Kind.LOOKUP:
            reads = self._said(_READS) or self.keys.get("command") == "view"
            return TouchMode.READ if reads else TouchMode.MENTION
        return TouchMode.WRITE if self.halves or self._said(_CHANGE) else TouchMode.MENTION

    def _path(self, path: str, mode: TouchMode) -> None:
        if 0 < len(path) <= 4096:
            self.touched.setdefault(path.removeprefix("file://"), mode)

    def _commands(self) -> None:
        for command in _command_lines(self.keys):
            self._command(command)

    def _command(self, command: str) -> None:
        found = analyse(command, self.directory)
        self.written += [found.written] if found.written else []
        self.copied += [found.copied] if found.copied else []
        for touch in found.touched:
            self.touched.setdefault(touch.path, touch.mode)
        self.named.update(dict.fromkeys(found.named))
        self.own = self.own or found.own
        self.added += found.added

    def _text(self, key: str, text: str) -> None:
        if key in _QUERY_KEYS:
            return
        if key not in _CONTENT_KEYS and key not in _NEW_KEYS:  # a prompt may send another agent to a file
            self.prose.append(text)
        if key in _OLD_KEYS or key == "search" and self.halves:
            self.copied.append(text)
        elif key in ("input", "code") and not text.lstrip().startswith(_PATCH_BEGINS):
            self._patch(_with_line_ends(text), self._program)
        elif not self.whole_file and is_patch(text):
            self._patch(text)
        else:
            self.written.append(text)

    def _patch(self, text: str, read: Callable[[str], str] = str) -> None:
        patch = split_patch(text)
        self.written.append(read(patch.written))
        self.copied.append(patch.copied)
        for path in patch.files:
            self.touched.setdefault(join_path(self.directory, path), TouchMode.WRITE)

    def _program(self, text: str) -> str:
        """Return a program without the commands it runs, which are judged as such (Codex writes JavaScript)."""

        def take(found: re.Match[str]) -> str:
            self._command(re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), found[1][1:-1]))
            return ""

        rest = _PROGRAM_COMMAND.sub(take, text)
        for token in re.findall(r"[\"'`]([^\"'`\n]{1,1024})[\"'`]", rest):
            if is_path(token):
                self.named.setdefault(token)
        return rest
