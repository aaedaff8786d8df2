"""The title that a command `kbd add` gives a new entry: what else stands in it was not written there."""

from __future__ import annotations

from collections.abc import Sequence

_VALUED = frozenset(
    ["--type", "--title", "--text", "--file", "--section", "--supersedes", "--applies-to", "--base"]
)  # fmt: skip


def added_title(args: Sequence[str]) -> str:
    """Return the title of the entry that kbd, run with these arguments, adds; "" if it adds none."""
    at = 0
    while at < len(args) and args[at].startswith("-"):  # global options, with a value or without
        has_value = "=" not in args[at] and at + 1 < len(args) and args[at + 1] != "add" and args[at + 1][:1] != "-"
        at += 1 + has_value
    return _title(args[at + 1 :]) if args[at : at + 1] == ["add"] else ""


def _title(args: Sequence[str]) -> str:
    words: list[str] = []
    given: dict[str, str] = {}
    rest = iter(args)
    for arg in rest:
        name, is_joined, value = arg.partition("=")
        if arg == "--":
            words += rest
        elif name in _VALUED:
            given[name] = value if is_joined else next(rest, "")
        elif arg == "--dry-run":
            return ""
        elif not arg.startswith("--"):
            words.append(arg)
    return given.get("--title", words[0] if words else "")
