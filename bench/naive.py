"""Other ways to find titles in a text, to time beside kbd: each takes titles and returns text -> positions of titles.

All of them normalise the text as kbd does. Only `find_loop` keeps kbd's rules; what the others miss or add is counted
in the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import ahocorasick

from kbd.core.haystack import stands_alone
from kbd.core.match import MAX_BOUNDED_WIDTH, Matcher, Pattern, PatternKind
from kbd.core.normal import normalise, width

Engine = Callable[[str], set[int]]


def kbd(titles: Sequence[str]) -> Engine:
    """The matcher itself."""
    matcher = Matcher([Pattern(title, PatternKind.TITLE, (number,)) for number, title in enumerate(titles)])
    return lambda text: {match.pattern for match in matcher.find(text)}


def find_loop(titles: Sequence[str]) -> Engine:
    """`str.find` for each title, then the boundary rule and the rule on nested titles."""
    bounded = [width(title) <= MAX_BOUNDED_WIDTH for title in titles]

    def engine(text: str) -> set[int]:
        norm = normalise(text)
        spans = []
        for number, title in enumerate(titles):
            at = norm.find(title)
            while at >= 0:
                if not bounded[number] or stands_alone(norm, at, at + len(title)):
                    spans.append((at, -at - len(title), number))
                at = norm.find(title, at + 1)
        reached = 0
        outermost = set()
        for _, negative_end, number in sorted(spans):
            if -negative_end > reached:
                reached = -negative_end
                outermost.add(number)
        return outermost

    return engine


def regex_per_title(titles: Sequence[str]) -> Engine:
    r"""A regex `\btitle\b` for each title, as one writes it first."""
    regexes = [re.compile(rf"\b{re.escape(title)}\b") for title in titles]

    def engine(text: str) -> set[int]:
        norm = normalise(text)
        return {number for number, regex in enumerate(regexes) if regex.search(norm)}

    return engine


def alternation(titles: Sequence[str]) -> Engine:
    """One regex of all titles, the longest first."""
    numbers = {title: number for number, title in enumerate(titles)}
    regex = re.compile("|".join(map(re.escape, sorted(titles, key=len, reverse=True))))
    return lambda text: {numbers[title] for title in regex.findall(normalise(text))}


def raw_automaton(titles: Sequence[str]) -> Engine:
    """pyahocorasick as its documentation shows it: titles as they are, every hit counts."""
    automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    for number, title in enumerate(titles):
        automaton.add_word(title, number)
    automaton.make_automaton()
    return lambda text: {number for _, number in automaton.iter(normalise(text))}


ENGINES: dict[str, Callable[[Sequence[str]], Engine]] = {
    engine.__name__: engine for engine in (kbd, find_loop, regex_per_title, alternation, raw_automaton)
}
