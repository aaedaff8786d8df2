"""Regular expressions of a schema, matched in time that goes by the length of the text alone.

Python's `re` tries one way after the other, and takes longer than anyone waits for forty letters against `(a+)+$`.
Here all ways are followed at once (Thompson, "Regular Expression Search Algorithm", 1968). What needs more than that,
such as lookaheads and references to groups, is a fault of the schema. `re` still says what is an expression, and which
characters a class holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

MAX_STATES = 3000
MAX_CHARS = 10_000
"""A longer text matches no pattern: it is refused before it is looked at."""
_MAX_DEPTH = 40
_MAX_KEPT = 500
_TOKEN = re.compile(
    r"(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])"
    r"|(?P<place>\^|\$|\\[AZbB])"
    r"|(?P<group>\((?:\?:|\?P<\w+>)?)"
    r"|(?P<repeat>(?:[*+?]|\{(?:(?P<times>\d+)|(?P<least>\d*),(?P<most>\d*))\})\??)"
    r"|(?P<other>[|)])"
    r"|(?P<char>\\(?:[dDwWsStnrfva]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^0-9A-Za-z])|[^\\*+?()|\[^$])",
    re.DOTALL,
)
_WORD = re.compile(r"\w")
_START = frozenset({0})
_ANYWHERE: frozenset[str] = frozenset()
_Around = frozenset[str]
_Test = Callable[[str], object]
_Key = TypeVar("_Key")


class PatternFault(ValueError):
    """The text is no expression, or one that kbd does not match; the message is one clause."""


@dataclass(slots=True)
class _State:
    """Leads on to `after` without a character if `place` (an anchor, "" for none) allows; or to `next` over one."""

    after: list[int] = field(default_factory=list)
    place: str = ""
    test: _Test | None = None
    next: int = -1


@dataclass(slots=True)
class Pattern:
    """An expression ready for matching. What was worked out for one text is kept for the next, within bounds."""

    states: list[_State]
    end: int
    closed: dict[tuple[frozenset[int], _Around], frozenset[int]] = field(default_factory=dict)
    steps: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)

    def found_in(self, text: str) -> bool:
        """Tell whether it matches anywhere in a text of at most `MAX_CHARS`, as `re.search` does."""
        bound = any(state.place for state in self.states)
        active = _START
        for at in range(len(text) + 1):
            active = self._closed(active, _around(text, at) if bound else _ANYWHERE)
            if self.end in active:
                return True
            if at < len(text):
                active = self._stepped(active, text[at])
        return False

    def _closed(self, active: frozenset[int], around: _Around) -> frozenset[int]:
        """Return the states with all that they lead to without a character."""
        kept = self.closed.get((active, around))
        if kept is None:
            reached, waiting = set(active), list(active)
            while waiting:
                state = self.states[waiting.pop()]
                if not state.place or state.place in around:
                    waiting += [one for one in state.after if one not in reached]
                    reached.update(state.after)
            kept = frozenset(reached)
            _keep(self.closed, (active, around), kept)
        return kept

    def _stepped(self, active: frozenset[int], char: str) -> frozenset[int]:
        """Return the states after a character, with the first one: a match may begin anywhere."""
        kept = self.steps.get((active, char))
        if kept is None:
            states = map(self.states.__getitem__, active)
            kept = _START.union(state.next for state in states if state.test is not None and state.test(char))
            _keep(self.steps, (active, char), kept)
        return kept


def _keep(held: dict[_Key, frozenset[int]], key: _Key, value: frozenset[int]) -> None:
    if len(held) >= _MAX_KEPT:
        held.clear()
    held[key] = value


def _around(text: str, at: int) -> _Around:
    """Return the anchors that hold between two characters."""
    words = [0 <= one < len(text) and _WORD.match(text[one]) is not None for one in (at - 1, at)]
    anchors = {r"\b" if words[0] != words[1] else r"\B"}
    if at == 0:
        anchors |= {"^", r"\A"}
    if at == len(text):
        anchors |= {"$", r"\Z"}
    elif at == len(text) - 1 and text[at] == "\n":
        anchors.add("$")
    return frozenset(anchors)


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Pattern:
    """Return an expression ready for matching; raises PatternFault."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternFault(f"is no expression: {error}") from error
    states = [_State()]
    return Pattern(states, _Parser(pattern, states).whole())


class _Parser:
    """Recursive descent; each rule takes the state it begins in and returns the one it ends in."""

    def __init__(self, pattern: str, states: list[_State]) -> None:
        self._tokens = list(_tokens(pattern))
        self._states = states
        self._at = self._depth = 0

    def whole(self) -> int:
        return self._either(0)

    def _either(self, start: int) -> int:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise PatternFault(f"is nested more than {_MAX_DEPTH} deep")
        ends = [self._sequence(self._state(start))]
        while self._peek() == "|":
            self._at += 1
            ends.append(self._sequence(self._state(start)))
        self._depth -= 1
        return self._state(*ends)

    def _sequence(self, start: int) -> int:
        while self._peek() not in ("", "|", ")"):
            start = self._repeated(start)
        return start

    def _repeated(self, start: int) -> int:
        began = self._at
        after = self._after_one()
        if after == len(self._tokens) or self._tokens[after].lastgroup != "repeat":
            return self._one(start)
        least, most = _bounds(self._tokens[after])
        copies = max(least, 1) if most is None else most
        ends = [start] if least == 0 else []
        before = end = start
        for number in range(1, copies + 1):
            self._at = began
            before = self._state(end) if most is None else end
            end = self._one(before)
            if number >= least:
                ends.append(end)
        if most is None:
            # The last copy may be gone through again and again.
            self._states[end].after.append(before)
        self._at = after + 1
        return self._state(*ends)

    def _after_one(self) -> int:
        """Return where the tokens go on after the next character, place or group."""
        at, open_ = self._at, 0
        while True:
            token = self._tokens[at]
            open_ += (token.lastgroup == "group") - (token[0] == ")")
            at += 1
            if open_ == 0:
                return at

    def _one(self, start: int) -> int:
        token = self._tokens[self._at]
        self._at += 1
        match token.lastgroup:
            case "group":
                end = self._either(start)
                self._at += 1
                return end
            case "place":
                end = self._state(start)
                self._states[end].place = token[0]
                return self._state(end)
            case "repeat":
                raise PatternFault(f"cannot be matched in bounded time at {token[0]!r}")
            case _:
                end = self._state()
                over = self._state(start)
                self._states[over].test, self._states[over].next = _test_of(token[0]), end
                return end

    def _state(self, *before: int) -> int:
        """Return a new state that each of these leads to."""
        if len(self._states) >= MAX_STATES:
            raise PatternFault(f"needs more than {MAX_STATES} states; repeat less")
        self._states.append(_State())
        for one in before:
            self._states[one].after.append(len(self._states) - 1)
        return len(self._states) - 1

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None or pattern.startswith("(?", at) and found[0] == "(":
            raise PatternFault(f"cannot be matched in bounded time at {pattern[at : at + 12]!r}")
        yield found
        at = found.end()


def _bounds(token: re.Match[str]) -> tuple[int, int | None]:
    match token[0][0]:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
    if token["times"]:
        return int(token["times"]), int(token["times"])
    return int(token["least"] or 0), int(token["most"]) if token["most"] else None


def _test_of(text: str) -> _Test:
    if len(text) == 1 and text != ".":
        return text.__eq__
    return re.compile(text).match
