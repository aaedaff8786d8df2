"""Which occurrences of titles are citations: echo, listing and authorship.

The matcher says where titles occur; here the domain decides what an occurrence means. A block is read on its
own (`read_block`), a listing is judged over all blocks of a message (`is_listing`), because one message may
reach kbd in several records.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kbd.core.datestamps import own_text
from kbd.core.haystack import Haystack
from kbd.core.headline import DEFAULT_TYPES
from kbd.core.match import Match, Matcher, PatternKind
from kbd.core.model import Line
from kbd.core.normal import ECHO_CHARS
from kbd.core.ownoutput import is_led_by_handle, own_output

LISTED_OWN_CHARS = 8
LISTED_ENTRIES = 5
LISTED_SHARE = 0.6
BEFORE_CHARS = 1000
"""How far before a title, in its line, a tag or a handle is looked for; a line may be megabytes long."""

_COMMENT = re.compile(r"<!--\s*(?:[\w-]{1,30}:[^|>\n]{0,60}\|\s*){0,8}(?:ref|last|decay)\s*:")
_TAG_BEFORE_BOLD = re.compile(r"\[([^\[\]\n]{1,30})\]\s*(?:\[[A-Z]{2,5}\d{2,}\]\s*)?\*\*\s*$")
_LED = re.compile(r"\s*(?:[-*+•]\s|\(?\d{1,3}[.):]\s)")


@dataclass(frozen=True, slots=True)
class MatchPolicy:
    """What counts, from when on a message is a listing (SPEC 13 `match`), and the words that tag entries."""

    count_tool_input: bool = True
    count_thinking: bool = False
    listing_min: int = 10
    listing_fraction: float = 0.2
    types: frozenset[str] = DEFAULT_TYPES


@dataclass(frozen=True, slots=True)
class Known:
    """An entry as citing sees it through one of its patterns.

    Attributes:
        entry: its id in the ledger.
        base: the id of its base.
        body: its own normalised text after the title, leading separators skipped.
        earlier: how it began before it was edited (`ECHO_CHARS`, or all): who was handed the old text repeats that.
    """

    entry: int
    base: int
    body: str
    earlier: tuple[str, ...] = ()


Lexicon = Mapping[int, Known]
"""From a pattern's reference (the ledger's pattern id) to the entry behind it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entry named in a block, echoes already removed.

    Attributes:
        pattern: the pattern's id.
        entry: the entry's id.
        base: the base's id.
        start: character offset in the block's text where it begins.
        end: end of it, exclusive.
        own: how many characters of the entry's own text follow.
        span: normalised characters of the name and that own text.
        prefix: hash of the normalised text up to the end of the name; equal in a streamed partial.
        listed: it stands in a listing (text sources; elsewhere the message decides).
    """

    pattern: int
    entry: int
    base: int
    start: int
    end: int
    own: int
    span: int
    prefix: bytes
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A block as read: normalised length without echo lines, hash of the normalised text, first mention per pattern."""

    length: int
    sha: bytes
    norm_length: int
    mentions: tuple[Mention, ...]


def read_block(text: str, matcher: Matcher, lexicon: Lexicon, types: frozenset[str] = DEFAULT_TYPES) -> Reading | None:
    """Return what a block names after the echo rule, None where no title occurs at all."""
    matches = matcher.find(text)
    if not matches:
        return None
    haystack, lines = Haystack(text), _Lines(text)
    norm = haystack.norm
    echo = _echo_lines(text, norm, matches, matcher, lexicon, lines, types)
    told = [match for match in matches if echo.isdisjoint(lines.of(match.start, match.end))]
    mentions = mentions_of(told, norm, matcher, lexicon)
    length = len(norm) - _norm_chars(haystack, lines, echo)
    return Reading(max(length, 1), digest(norm), len(norm), _first_per_line(mentions, lines))


def first_per_pattern(mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """Keep the first mention of each pattern."""
    first: dict[int, Mention] = {}
    for mention in mentions:
        first.setdefault(mention.pattern, mention)
    return tuple(first.values())


def digest(norm: str) -> bytes:
    """Return 16 bytes that identify a normalised text."""
    return hashlib.sha256(norm.encode("utf-8", "surrogatepass")).digest()[:16]


def is_listing(mentions: Sequence[Mention], length: int, live: int, policy: MatchPolicy) -> bool:
    """Tell whether a message that names these entries of one base is a listing.

    Args:
        mentions: of one base, over all blocks of the message.
        length: normalised characters of the message, echo lines left out.
        live: number of the base's live entries.
        policy: the limits.
    """
    named = {m.entry for m in mentions}
    if len(named) >= policy.listing_min and len(named) >= policy.listing_fraction * live:
        return True
    told: dict[int, int] = {}
    for mention in mentions:
        if mention.own >= LISTED_OWN_CHARS:
            told.setdefault(mention.entry, mention.span)
    return len(told) >= LISTED_ENTRIES and sum(told.values()) > LISTED_SHARE * length


def judge_lines(
    text: str, reading: Reading, lines: Sequence[Line], live: Mapping[int, int], policy: MatchPolicy
) -> Reading:
    """Mark listings in a paragraph of a text source: per run of led lines, else line by line."""
    marked: list[Mention] = []
    for mentions, length in _runs(text, reading.mentions, lines):
        for base in {m.base for m in mentions}:
            part = [m for m in mentions if m.base == base]
            listed = is_listing(part, length, live.get(base, 0), policy)
            marked.extend(replace(m, listed=listed) for m in part)
    marked.sort(key=lambda m: (m.start, m.pattern))
    return replace(reading, mentions=tuple(marked))


def _runs(text: str, mentions: Sequence[Mention], lines: Sequence[Line]) -> list[tuple[list[Mention], int]]:
    """Group mentions by run of led lines or by single line, with the run's length in characters."""
    starts = [line.start for line in lines] or [0]
    ends = [*starts[1:], len(text)]
    by_line: dict[int, list[Mention]] = {}
    for mention in mentions:
        by_line.setdefault(bisect.bisect_right(starts, mention.start) - 1, []).append(mention)
    led = [_is_led(text[a:b], a, by_line.get(i, [])) for i, (a, b) in enumerate(zip(starts, ends, strict=True))]
    groups: list[tuple[list[Mention], int]] = []
    open_run = False
    for i, (a, b) in enumerate(zip(starts, ends, strict=True)):
        found, length = by_line.get(i, []), len(text[a:b].strip())
        if led[i] and open_run:
            groups[-1] = (groups[-1][0] + found, groups[-1][1] + length)
        else:
            groups.append((list(found), length))
        open_run = led[i]
    return [(found, max(length, 1)) for found, length in groups if found]


def _is_led(line: str, start: int, mentions: Sequence[Mention]) -> bool:
    if _LED.match(line):
        return True
    lead = start + len(line) - len(line.lstrip(" \t*`\"'"))
    return any(m.start <= lead for m in mentions)


class _Lines:
    """The lines of a text, by character offset."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.text_end = len(text)

    def end(self, line: int) -> int:
        return self.starts[line + 1] if line + 1 < len(self.starts) else self.text_end

    def at(self, offset: int) -> int:
        return bisect.bisect_right(self.starts, offset) - 1

    def of(self, start: int, end: int) -> range:
        return range(self.at(start), self.at(max(start, end - 1)) + 1)


def _echo_lines(
    text: str,
    norm: str,
    matches: Sequence[Match],
    matcher: Matcher,
    lexicon: Lexicon,
    lines: _Lines,
    types: frozenset[str],
) -> set[int]:
    """Return the lines that repeat an entry instead of using it."""
    echo = {lines.at(m.start()) for m in _COMMENT.finditer(text)}
    for start, end in own_output(text):
        echo.update(lines.of(start, end))
    for match in matches:
        if matcher.patterns[match.pattern].kind is not PatternKind.TITLE:
            continue
        before = text[max(lines.starts[lines.at(match.start)], match.start - BEFORE_CHARS) : match.start]
        if _is_tagged(before, types) or is_led_by_handle(before) or _repeats(norm, match, matcher, lexicon):
            echo.update(lines.of(match.start, match.end))
    return echo


def _is_tagged(before: str, types: frozenset[str]) -> bool:
    """Tell whether what stands before a title ends in a type's tag and the opening of bold; a task box is no tag."""
    found = _TAG_BEFORE_BOLD.search(before)
    return found is not None and found[1].strip().lower() in types


def _repeats(norm: str, match: Match, matcher: Matcher, lexicon: Lexicon) -> bool:
    """Tell whether the title is followed by an entry's own next 20 characters, or all it has."""
    follows = own_text(norm[match.norm_end : match.norm_end + 400])
    known = [lexicon[ref] for ref in matcher.patterns[match.pattern].refs]
    return any(_opens_with(follows, own) for one in known for own in (one.body[:ECHO_CHARS], *one.earlier))


def _opens_with(text: str, own: str) -> bool:
    """Tell whether a text begins with an entry's own words; less than `ECHO_CHARS` of them must end there."""
    if not own or not text.startswith(own):
        return False
    rest = text[len(own) : len(own) + 1]
    return len(own) == ECHO_CHARS or not (own[-1].isalnum() and rest.isalnum())


def mentions_of(matches: Sequence[Match], norm: str, matcher: Matcher, lexicon: Lexicon) -> list[Mention]:
    """Return matches in a normalised text as mentions, one per entry behind the pattern."""
    prefixes = _prefixes(norm, {match.norm_end for match in matches})
    found = []
    for match in matches:
        follows = own_text(norm[match.norm_end : match.norm_end + 400])
        for ref in matcher.patterns[match.pattern].refs:
            known = lexicon[ref]
            own = _common(follows, known.body)
            span = match.norm_end - match.norm_start + own
            prefix = prefixes[match.norm_end]
            found.append(Mention(ref, known.entry, known.base, match.start, match.end, own, span, prefix))
    return found


def _prefixes(norm: str, ends: Collection[int]) -> dict[int, bytes]:
    """Return by end the first 8 bytes of `digest(norm[:end])`, in one pass over the text."""
    hasher, begin = hashlib.sha256(), 0
    prefixes: dict[int, bytes] = {}
    for end in sorted(ends):
        hasher.update(norm[begin:end].encode("utf-8", "surrogatepass"))
        prefixes[end], begin = hasher.digest()[:8], end
    return prefixes


def _common(a: str, b: str) -> int:
    """Return the length of the common beginning."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def _norm_chars(haystack: Haystack, lines: _Lines, echo: set[int]) -> int:
    """Count the normalised characters that stand on echo lines."""
    edges = [edge for line in sorted(echo) for edge in (lines.starts[line], lines.end(line))]
    lengths = list(haystack.lengths_before(edges))
    return sum(lengths[1::2]) - sum(lengths[::2])


def _first_per_line(mentions: Sequence[Mention], lines: _Lines) -> tuple[Mention, ...]:
    """Keep the first mention of a pattern in each line: a text source may date lines apart."""
    first: dict[tuple[int, int], Mention] = {}
    for mention in mentions:
        first.setdefault((mention.pattern, lines.at(mention.start)), mention)
    return tuple(first.values())
