"""Finds tool calls that an agent wrote as XML inside its text (older Cline and Roo Code).

A call is a tag named in snake case at the start of a line whose first child is a parameter: `<write_to_file><path>…`.
A call without its end goes to the end of the text. Linear; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kbd.core.model import Author, Block
from kbd.core.toolinput import tool_call
from kbd.sources.jsonl import parsed_arguments

_OPEN = re.compile(r"^[ \t]*<(?:([a-z]+(?:_[a-z]+)+|condense)>\s*(?=<[a-z_]+>|</\1>)|(thinking)>)", re.MULTILINE)
_SUMMARIES = frozenset(["condense", "summarize_task"])
_PARAMETER = re.compile(r"\s*<([a-z_]{1,40})>")
_GREEDY = frozenset(["content", "diff", "arguments", "result"])  # may hold tags of their own
_NESTED = frozenset(["args", "file", "files", "operations"])
_MAX_NESTED = 4


def split_calls(text: str, part: int = 0) -> Iterator[Block]:
    """Yield the blocks of an agent's text in order: prose, thinking it marked as such, tool calls.

    Calls are numbered within the `part` of the message that holds them.
    """
    at, calls = 0, 0
    while (found := _OPEN.search(text, at)) is not None:
        yield from _prose(text[at : found.start()])
        name = found[1] or found[2]
        end = text.find(f"</{name}>", found.end())
        body = text[found.end() : end if end >= 0 else len(text)]
        at = end + len(name) + 3 if end >= 0 else len(text)
        if found[2]:
            yield from (Block(Author.THINKING, body),) if body.strip() else ()
            continue
        yield from called(name, _parameters(body), f"x{part}.{calls}")
        calls += 1
    yield from _prose(text[at:])


def called(name: str, given: Mapping[str, object], call_id: str | None) -> Iterator[Block]:
    """Yield the block of one call, none for a summary that the harness asked for."""
    if name not in _SUMMARIES:
        if name == "use_mcp_tool":  # its arguments are JSON in a text
            given = {**given, "arguments": parsed_arguments(given.get("arguments"))}
        call = tool_call(name, given)
        yield Block(Author.AGENT_TOOL_INPUT, call.written, call_id, call)


def _prose(text: str) -> Iterator[Block]:
    if text.strip():
        yield Block(Author.AGENT_TEXT, text)


def _parameters(body: str, depth: int = 0) -> dict[str, object]:
    """Return the parameters of a call; several of one name become a list."""
    found: dict[str, list[object]] = {}
    at = 0
    while (opened := _PARAMETER.match(body, at)) is not None:
        name = opened[1]
        closing = f"</{name}>"
        end = body.rfind(closing, opened.end()) if name in _GREEDY else body.find(closing, opened.end())
        value = body[opened.end() : end if end >= 0 else len(body)].strip("\r\n")
        nested = name in _NESTED and depth < _MAX_NESTED
        found.setdefault(name, []).append(_parameters(value, depth + 1) if nested else value)
        at = end + len(closing) if end >= 0 else len(body)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}
