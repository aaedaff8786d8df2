"""Relations that grow by themselves: which file an entry applies to, and when a relation has had its time.

A change is a relation before and after; the store splices the values or appends the item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from kbd.core.model import Relation
from kbd.core.redact import holds_secret

APPLIES_TO = "applies_to"
GROWN = frozenset({APPLIES_TO})
FILES_PER_CITATION = 5
FILES_PER_ENTRY = 20
STALE_DAYS = 180
EXPIRE_DAYS = 360
ARCHIVE_DAYS = 360
_LONGEST_PATH = 300


@dataclass(frozen=True, slots=True)
class Change:
    """One relation to write: `before` is None for a new one; otherwise only `u` and `e` differ."""

    before: Relation | None
    after: Relation


def name_file(path: str, cwd: str | None, git_root: str | None) -> str:
    """Return the name a file has in a relation: relative to the git root, else to `cwd`, else its base name.

    `path` is as the agent wrote it; a relative one is relative to `cwd`. Back slashes count as slashes in a Windows
    path. Returns "" for what can be no file's name (empty, control characters, over 300 characters, a root), and for
    one that holds a secret.
    """
    if len(path) > _LONGEST_PATH or any(not char.isprintable() for char in path) or holds_secret(path):
        return ""
    parts = _parts(path)
    if not _is_absolute(path):
        if cwd is None:
            return "/".join(parts) if ".." not in parts else _last(parts)
        parts = _resolved([*_parts(cwd), *parts])
    for root in (git_root, cwd):
        above = _parts(root) if root else []
        below = parts[len(above) :]
        if above and below and parts[: len(above)] == above and ".." not in below:
            return "/".join(below)
    return _last(parts)


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", path) is not None


def _parts(path: str) -> list[str]:
    windows = re.match(r"[A-Za-z]:[\\/]|\\\\", path) or ("\\" in path and "/" not in path)
    return _resolved((path.replace("\\", "/") if windows else path).split("/"))


def _resolved(parts: Iterable[str]) -> list[str]:
    """Take out `.` and what `..` cancels; a leading `..` stays."""
    kept: list[str] = []
    for part in parts:
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return kept


def _last(parts: list[str]) -> str:
    return parts[-1] if parts and parts[-1] not in ("..", "~") else ""


_URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:)[^\s<>\"'`]*", re.IGNORECASE)
_TOKEN = re.compile(r"(?:\b[A-Za-z]:[\\/])?[A-Za-z0-9_.~/\\@+-]+")
_EXTENSION = re.compile(r"[a-z][a-z0-9]{1,9}\Z")
_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|ai|app|cn|de|edu|gov)\Z", re.IGNORECASE)
_COMMON_EXTENSION = re.compile(
    r"(?:bash|c|cc|cfg|clj|conf|cpp|cs|css|csv|cu|dart|ex|exs|fs|gd|go|gradle|graphql|groovy|h|hpp|hs|html?|ini|ipynb"
    r"|java|jl|js|json|json5|jsonl|jsx|kts?|less|lock|lua|md|mdx|mjs|ml|mm|nix|php|pl|plist|proto|ps1|py|pyi|pyx|r|rb|rs"
    r"|rst|sass|scala|scss|service|sh|sol|sql|svelte|svg|swift|tex|tf|tfvars|toml|tsx?|txt|vue|xml|ya?ml|zig|zsh)\Z",
    re.IGNORECASE,
)
_WHOLE_NAME = re.compile(
    r"(?:Makefile|Dockerfile|Containerfile|Jenkinsfile|Procfile|Rakefile|Gemfile|Justfile|Vagrantfile|CODEOWNERS"
    r"|\.env|\.gitignore|\.gitattributes|\.dockerignore|\.editorconfig|\.npmrc|\.bashrc|\.zshrc)\Z"
)
_NAMES_WITHOUT_DOT = ("file", "CODEOWNERS")
_PRODUCT = re.compile(r"(?:node|next|vue|nuxt|react|express|three|d3|ember|nest|alpine|chart)\.js\Z", re.IGNORECASE)


def paths_in_prose(text: str) -> tuple[str, ...]:
    """Return the first five different paths named in running text, such as `src/net.py` or `retry.py:41`.

    A name without a slash must have an extension in common use, or be a file's whole name such as `Makefile`.
    Addresses, versions, dotted identifiers and calls are no paths. Line numbers are cut off.
    """
    found: dict[str, None] = {}
    for line in _URL.sub(" ", text).split("\n"):
        if "." not in line and not any(name in line for name in _NAMES_WITHOUT_DOT):  # most lines
            continue
        for path in _paths_in_line(line):
            found[path] = None
            if len(found) == FILES_PER_CITATION:
                return tuple(found)
    return tuple(found)


def _paths_in_line(line: str) -> Iterator[str]:
    for token in _TOKEN.finditer(line):
        path = token.group().rstrip(".-+@").lstrip("-+@")
        if "." not in path and not path.endswith(_NAMES_WITHOUT_DOT):  # most words
            continue
        is_call = line[token.end() : token.end() + 1] == "("
        if not is_call and _is_path(path):
            yield path


def _is_path(path: str) -> bool:
    if len(path) > _LONGEST_PATH or "@" in path.replace("/@", "/"):
        return False
    folder, _, name = path.replace("\\", "/").rpartition("/")
    if folder and _HOST.match(folder.partition("/")[0]):
        return False
    if _WHOLE_NAME.match(name):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or not re.search(r"[A-Za-z0-9_]", stem):
        return False
    if _COMMON_EXTENSION.match(extension):
        return bool(folder) or not _PRODUCT.match(name)
    return bool(folder) and _EXTENSION.match(extension) is not None


def expire(existing: Sequence[Relation], today: date, grown: frozenset[str] = GROWN) -> tuple[Change, ...]:
    """Return the changes that expire what was not used for 360 days. Idempotent.

    Only predicates in `grown` expire: that one entry supersedes another does not end because nobody repeats it.
    A relation without a usable date is used as of today: its year begins.
    """
    changes = []
    for relation in existing:
        if relation.p not in grown or relation.e is not None:
            continue
        used = _used(relation, today)
        if used is None:
            changes.append(Change(relation, replace(relation, u=today)))
        elif (today - used).days >= EXPIRE_DAYS:
            changes.append(Change(relation, replace(relation, e=today)))
    return tuple(changes)


def archivable(existing: Sequence[Relation], today: date) -> tuple[Relation, ...]:
    """Return the relations that expired 360 or more days ago: they move to the archive."""
    return tuple(relation for relation in existing if relation.e and (today - relation.e).days >= ARCHIVE_DAYS)


def is_stale(relation: Relation, today: date) -> bool:
    """Return whether a relation was not used for 180 days, or has no usable date: it ranks last."""
    used = _used(relation, today)
    return used is None or (today - used).days >= STALE_DAYS


def _used(relation: Relation, today: date) -> date | None:
    """Return the newest usable day; one in the future counts as absent."""
    return max((day for day in (relation.u, relation.c) if day is not None and day <= today), default=None)
