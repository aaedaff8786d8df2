"""Recognises what kbd itself printed, so that it is never taken for an agent's words (a feedback loop otherwise).

What is made for agents stands between marks. What is made for people has no marks; it is told by its shape: a bare
handle before each title, and the forms of `kbd show`, `kbd log` and `--json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbd.core.model import BREAK
from kbd.core.relyaml import PREDICATES

OUTPUT_BEGIN = "<!-- kbd:"
OUTPUT_END = "<!-- /kbd -->"

_HANDLE = r"k-[0-9a-z]{6,10}"
_HANDLE_BEFORE = re.compile(rf"(?<!\[)\b{_HANDLE}\b(?!\])")
_JSON = re.compile(rf'"handle": ?"{_HANDLE}"')
_UNDER_TITLE = re.compile(rf"^{_HANDLE} · ", re.MULTILINE)
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"
_EVIDENCE = re.compile(
    rf"^  {_TIME}  [^\n]{{1,400}}  (?:agent_text|agent_tool_input|thinking)\n {{4}}“[^\n]*", re.MULTILINE
)
_RELATION = re.compile(r"\((?:used|expired) (?:\d{4}-\d\d-\d\d|never)\)$", re.MULTILINE)
_EVENT = re.compile(
    rf'^{_TIME} (?:to_[a-z]+|entry_[a-z]+|title_edited|person_edit|overruled|forgotten)  "', re.MULTILINE
)


def is_led_by_handle(before: str) -> bool:
    """Tell whether a bare handle stands before a title in its line, as in kbd's tables; agents cite in brackets."""
    return _HANDLE_BEFORE.search(before) is not None


def own_output(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of what kbd printed: between marks, and what has the shape of its screens."""
    begin = text.find(OUTPUT_BEGIN)
    while begin >= 0:
        end = text.find(OUTPUT_END, begin)
        field_end = text.find(BREAK, begin)
        field_end = len(text) if field_end < 0 else field_end
        end = field_end if end < 0 or end > field_end else end + len(OUTPUT_END)
        yield begin, end
        begin = text.find(OUTPUT_BEGIN, end)
    for shape in (_JSON, _EVIDENCE, _EVENT):
        yield from (found.span() for found in shape.finditer(text))
    yield from ((found.start() - 1, found.start()) for found in _UNDER_TITLE.finditer(text) if found.start())
    yield from (found.span() for found in _RELATION.finditer(text) if _is_relation(text, found.start()))


def _is_relation(text: str, end: int) -> bool:
    line = text[text.rfind("\n", 0, end) + 1 : end]
    return line.startswith("  ") and any(f" {predicate} " in line for predicate in PREDICATES)
