"""The head of a list item: marker, tags, date and title, told apart from the entry's own text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from kbd.core.datestamps import without_trailing_date
from kbd.core.normal import normalise
from kbd.core.textlines import code_spans

DEFAULT_TYPES = frozenset({"guideline", "pitfall", "decision", "model", "process"})
DEFAULT_MARKER = "⚠️"
# Tags of other vocabularies and the type they come nearest to: a hint for the person, never a reading.
TYPE_ALIASES = {
    "best_practice": "guideline",
    "constraint": "guideline",
    "convention": "guideline",
    "fact": "model",
    "gotcha": "pitfall",
    "insight": "model",
    "knowledge_gap": "pitfall",
    "technique": "process",
}
_LONGEST_DERIVED = 120
_MOST_LEADS = 8
_TAG = re.compile(r"\[([^\[\]\n]{1,40})\]")
_TAG_WORD = re.compile(r"[^\W\d_][\w /+.-]*")
_IDENT = re.compile(r"[A-Z]{2,5}[0-9]{2,9}")
_LEAD_DATE = re.compile(r"\(?[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?\)?[ \t]*[:,—–-]*[ \t]*")
_BARE_DATE = re.compile(r"[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}(?:[T ][0-9:.Z]+)?")
_PARAGRAPH_END = re.compile(r"\n(?=[ \t]*(?:\n|$|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|```|~~~|>|#|\|))")
_DELIMITER = re.compile(r"\\.|\*\*+", re.DOTALL)
_SEPARATOR = re.compile(r"\s[—–]\s|[:：](?:\s|$)|：|[.!?](?=\s|$)|[。！？]")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|etc|approx|incl|no)$", re.IGNORECASE)
_SYMBOL = re.compile(r"[^\w\s\[\]*`<>()\\-]{1,8}(?=[ \t]+(?:\[\w|\*\*))")
_AFTER_TITLE = re.compile(r"[\s:.—–-]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a head: the parts of a `Problem` without its place."""

    code: str
    what: str
    hint: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The head of one item.

    Attributes:
        title: "" if the item is no entry.
        rest: what follows the title, without the tag that may stand between.
        type: known type, lower case.
        tag: raw word of the type tag, else of the first unknown tag.
        ident: id such as `KD07`.
        marker: the dormancy marker leads.
        derived: the title was cut from plain text.
        faults: what `lint` has to say.
    """

    title: str = ""
    rest: str = ""
    type: str | None = None
    tag: str | None = None
    ident: str | None = None
    marker: bool = False
    derived: bool = False
    faults: tuple[Fault, ...] = ()


def former_marker(text: str) -> str:
    """Return the symbol before the tag or title of an item whose comment says that it is dormant; "" if there is none.

    It was the marker when that was written: a base keeps old ones when the config changes.
    """
    match = _SYMBOL.match(text)
    return match[0] if match else ""


def marker_end(text: str, marker: str, *, is_entry: bool = False) -> int:
    """Return where the dormancy markers at the start of an item's text end, white space after them included.

    The default marker is known whatever `marker` says; of an item that is known to be an entry, any symbol is one.
    """
    match = _markers(marker).match(text)
    if match is None and is_entry and (former := former_marker(text)):
        match = _markers(former).match(text)
    return match.end() if match else 0


@lru_cache(8)
def _markers(marker: str) -> re.Pattern[str]:
    words = sorted(filter(None, {marker, DEFAULT_MARKER, DEFAULT_MARKER[0]}), key=len, reverse=True)
    return re.compile(f"(?:(?:{'|'.join(map(re.escape, words))})[ \\t]*)+")


def read_headline(text: str, types: frozenset[str], marker: str) -> Headline:
    """Read an item's text (without bullet and comments, lines joined by newlines).

    An entry has a bold title, or a known type or an id before its text; task boxes, emoji-led and plain items are none.
    """
    start = marker_end(text, marker)
    tags, at = _read_tags(text, start, types)
    if tags is None:
        return Headline()
    paragraph = _PARAGRAPH_END.search(text, at)
    end = paragraph.start() if paragraph else len(text)
    if text.startswith("**", at):
        head = _bold(text, at, end, tags, types)
    elif tags.type or (tags.ident and " | " not in text[at:end]):
        # An id before plain text with ` | ` is a line of an index, not an entry.
        head = _derived(text, at, end)
    else:
        return Headline(faults=tuple(_unknown(word, types) for word in tags.unknown if " " not in word))
    return _whole(head, tags, start > 0, types)


@dataclass(slots=True)
class _Tags:
    type: str | None = None
    raw: str | None = None  # the type's word as written
    ident: str | None = None
    unknown: tuple[str, ...] = ()

    def take(self, word: str, after: str, types: frozenset[str]) -> bool:
        """Take a word in brackets; False if it is a link, a footnote or anything but a tag."""
        if after == "(" or not _TAG_WORD.fullmatch(word):
            return False
        if self.type is None and word.lower() in types:
            self.type, self.raw = word.lower(), word
        elif self.ident is None and _IDENT.fullmatch(word):
            self.ident = word
        elif after in ("[", ":"):
            return False
        else:
            self.unknown += (word,)
        return True


def _read_tags(text: str, at: int, types: frozenset[str]) -> tuple[_Tags | None, int]:
    """Read tags and one date before the title; None instead of tags if a task box leads."""
    tags = _Tags()
    dated = False
    for _ in range(_MOST_LEADS):
        if match := _TAG.match(text, at):
            word = match[1].strip()
            if word in ("", "x", "X") or (len(word) == 1 and not word.isalpha()):
                return None, at
            if not tags.take(word, text[match.end() : match.end() + 1], types):
                return tags, at
            at = _skip(text, match.end(), ": \t" if tags.raw == word or tags.ident == word else " \t")
        elif not dated and (match := _LEAD_DATE.match(text, at)):
            if match.end() == len(text) or text[match.end()] == "\n":
                return tags, at
            dated, at = True, match.end()
        else:
            break
    return tags, at


def _skip(text: str, at: int, chars: str) -> int:
    while at < len(text) and text[at] in chars:
        at += 1
    return at


def _bold(text: str, at: int, end: int, tags: _Tags, types: frozenset[str]) -> Headline:
    """Read a bold title: within its line, else wrapped within its paragraph."""
    line_end = text.find("\n", at, end)
    close = (_closing(text, at, line_end) if line_end >= 0 else None) or _closing(text, at, end)
    if not close and not (tags.type or tags.ident):
        return Headline(faults=(Fault("unclosed_bold", "the bold title is never closed", "close it with `**`"),))
    if not close:
        return _derived(text, at, end)
    start = at + len(_run(text, at))
    start = _take_tag(text, start, close[0], tags, types) or start
    between = _AFTER_TITLE.match(text, close[1])
    if between:
        _take_tag(text, between.end(), len(text), tags, types)
    return _titled(text[start : close[0]], text[close[1] :])


def _take_tag(text: str, at: int, end: int, tags: _Tags, types: frozenset[str]) -> int | None:
    """Take a known type or an id that stands at `at`; return where the text after it begins."""
    match = _TAG.match(text, at, end)
    if not match or not (match[1].strip().lower() in types or _IDENT.fullmatch(match[1].strip())):
        return None
    taken = tags.take(match[1].strip(), text[match.end() : match.end() + 1], types)
    return _skip(text, match.end(), ": \t") if taken else None


def _run(text: str, at: int) -> str:
    return text[at : _skip(text, at, "*")]


def _closing(text: str, at: int, end: int) -> tuple[int, int] | None:
    """Return the range of the `**` that closes the bold begun at `at`.

    Nested pairs are counted. Where they do not balance (`**Use **kwargs carefully**`), the first that can only close
    is taken, else the first inside a word. Delimiters in inline code do not count.
    """
    depth = 1
    closing: tuple[int, int] | None = None
    loose: tuple[int, int] | None = None
    for start, stop in _delimiters(text, at + len(_run(text, at)), end):
        before, after = text[start - 1], text[stop : stop + 1] if stop < end else ""
        in_word = after.isascii() and (after.isalnum() or after == "_")
        if not before.isspace() and not in_word:
            closing = closing or (start, stop)
            depth -= 1
            if depth == 0:
                return start, stop
        elif in_word and not before.isalnum():
            depth += 1
        elif in_word:
            loose = loose or (start, stop)
    return closing or loose


def _delimiters(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[at:end]
    spans = iter(code_spans(part))
    code = next(spans, None)
    for match in _DELIMITER.finditer(part):
        while code and code[1] <= match.start():
            code = next(spans, None)
        if match[0][0] == "*" and match.start() and not (code and code[0] <= match.start()):
            yield at + match.start(), at + match.end()


def _derived(text: str, at: int, end: int) -> Headline:
    """Cut a title from plain text: up to the first separator or the sentence's end, at most 120 characters."""
    end = at + len(without_trailing_date(text[at:end]))
    cut = min(end, at + _LONGEST_DERIVED)
    if cut < end and (space := text.rfind(" ", at, cut)) > at:
        cut = space
    for match in _SEPARATOR.finditer(text, at, min(end, at + _LONGEST_DERIVED + 2)):
        word_start = max(at, match.start() - len(" approx"))
        if match.start() > at and not (match[0] == "." and _ABBREVIATION.search(text, word_start, match.start())):
            cut = min(end, at + _LONGEST_DERIVED, match.start())
            break
    return replace(_titled(text[at:cut], text[cut:]), derived=True)


def _titled(raw: str, after: str) -> Headline:
    """Tell the title from the punctuation that does not belong to it, which stays with the text."""
    shown = " ".join(raw.split()).strip("* ")
    title = shown.rstrip(":.：。 ")
    return Headline(title=title, rest=shown[len(title) :] + after)


def _whole(head: Headline, tags: _Tags, marker: bool, types: frozenset[str]) -> Headline:
    faults = (*head.faults, *(_unknown(word, types) for word in tags.unknown))
    if not normalise(head.title):
        untitled = Fault("untitled", "an entry without a title", "write one between `**` and `**`")
        return Headline(faults=faults or (untitled,))
    if _BARE_DATE.fullmatch(head.title):
        bare = Fault("date_title", f"a date alone is no title: {head.title}", "write a title that can be cited")
        return Headline(faults=(*faults, bare))
    tag = tags.raw or next(iter(tags.unknown), None)
    return replace(head, type=tags.type, tag=tag, ident=tags.ident, marker=marker, faults=faults)


def _unknown(word: str, types: frozenset[str]) -> Fault:
    if word.lower() in types:
        return Fault("unknown_type", f"a second type '{word}'", "keep one tag")
    folded = re.sub(r"[ -]", "_", word.lower())
    near = [TYPE_ALIASES[folded]] if folded in TYPE_ALIASES else difflib.get_close_matches(folded, sorted(types), n=1)
    hint = f"did you mean [{near[0]}]?" if near else "fix the tag or add the type to the config"
    return Fault("unknown_type", f"unknown type '{word}' (known: {', '.join(sorted(types))})", hint)
