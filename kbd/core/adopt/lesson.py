"""A lesson found in another form: its title chosen, written as an entry, and the proof that it is read back so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from kbd.core.datestamps import without_trailing_date
from kbd.core.entries import MATCHABLE_WIDTH, parse
from kbd.core.metadata import render as render_comment
from kbd.core.model import Entry, State
from kbd.core.normal import normalise, width
from kbd.core.redact import printable, redact
from kbd.core.textlines import code_spans

_LONGEST_TITLE = 120
_TELLING_WIDTH, _TELLING_WORDS, _TELLING_CJK_WIDTH = 20, 3, 16
_CUT = re.compile(
    r"\s(?:[—–]|--)\s|[:：](?=\s|$)|：|[.!?](?=\s|$)|[。！？]|\s(?=#[^\W\d])|\s(?=\([^()]*\)\s*$)", re.MULTILINE
)
_PARAGRAPH_END = re.compile(r"\n(?=[ \t]*(?:\n|$|<!--|\*\*|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|```|~~~|>|#|\|))|<!--")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|etc|approx|incl|no)$", re.IGNORECASE)
_WORD = re.compile(r"\w+|[^\w\s*#\[\]():,—–-]")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a file says in another form.

    Attributes:
        first: index of its first line in the source, 0-based.
        last: index of its last line.
        section: the headings above it, joined by ` / `.
        text: from the title on; lines after the first are indented as they shall stand.
        is_titled: the first line is the title, as a whole; else a title is cut from it.
        bullet: what leads it.
        lead: words to stand between the tags and the title, such as `2026-07-19: `.
        tag: the word of its type in the source; None if it has none.
        hints: words that tell the type less surely, such as those of its heading.
        ident: an id such as `KD07`.
        day: a date that it leads with, as written; it stands in the closing parentheses.
        origin: ids and the like for the closing parentheses.
        labels: hashtags and signs, to follow the title.
        ref: a count of its uses.
        extra: further pairs of its metadata comment.
        carried: words of the source that live on as something else.
    """

    first: int
    last: int
    section: str
    text: str
    is_titled: bool = False
    bullet: str = "- "
    lead: str = ""
    tag: str | None = None
    hints: tuple[str, ...] = ()
    ident: str | None = None
    day: str | None = None
    origin: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    ref: int | None = None
    extra: tuple[tuple[str, str], ...] = ()
    carried: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The types and the dormancy marker by which knowledge files are read."""

    types: frozenset[str]
    marker: str


@dataclass(frozen=True, slots=True)
class Form:
    """A lesson as an entry: the bytes, and what is read from them. `why_not` says why there is none."""

    block: bytes = b""
    entry: Entry | None = None
    why_not: str = ""


def form(lesson: Lesson, source: str, type_: str, known_day: date | None, newline: str, reading: Reading) -> Form:
    """Return the lesson as an entry, in the first way of writing it that is read back as meant.

    Args:
        lesson: what to write.
        source: its lines in the file, joined by newlines: all words of them must be in the result.
        type_: the type to tag it with.
        known_day: its date if its words have none; None if it is not known.
        newline: the line end to write.
        reading: how the result will be read.
    """
    if redact(source) != printable(source):
        return Form(why_not="it seems to hold a secret")
    start, end = title_range(lesson)
    norm = normalise(lesson.text[start:end].strip("* "))
    if width(norm) < MATCHABLE_WIDTH and not lesson.ident:
        return Form(why_not=f"it is under {MATCHABLE_WIDTH} wide and could never be cited")
    for text, day in _ways(lesson, type_, known_day, (start, end)):
        block = text.replace("\n", newline).encode("utf-8", "surrogateescape") + newline.encode()
        parsed = parse(block, reading.types, reading.marker)
        entry = parsed.entries[0] if len(parsed.entries) == 1 else None
        if entry is None or parsed.outline.open_line is not None or entry.block.end != len(block):
            continue
        is_meant = (entry.norm.rstrip(".:。 "), entry.type, entry.ident) == (norm.rstrip(".:。 "), type_, lesson.ident)
        is_dated = day is None or entry.created == day
        is_counted = lesson.ref is None or (entry.meta is not None and entry.meta.ref == lesson.ref)
        if is_meant and is_dated and is_counted and not missing(source, f"{text} {lesson.carried}"):
            return Form(block, entry)
    return Form(why_not="as an entry it would not be read back as it was meant")


def missing(source: str, result: str) -> list[str]:
    """Return the words and signs of `source` that are not in `result`, as often as they are missing.

    Bullets, hashes, asterisks, brackets, commas, colons and dashes are form, not words.
    """
    return list((Counter(_WORD.findall(source.casefold())) - Counter(_WORD.findall(result.casefold()))).elements())


def title_range(lesson: Lesson) -> tuple[int, int]:
    """Return the range of the title in the lesson's text.

    A bold beginning is the title; else the first sentence, or its part before a dash, colon, hashtag or closing
    parentheses, if that part says enough to be told from other texts; at most 120 characters.
    """
    text = lesson.text
    paragraph = _PARAGRAPH_END.search(text)
    end = paragraph.start() if paragraph else len(text)
    if lesson.is_titled:
        return 0, len(text[: (text + "\n").index("\n")].rstrip())
    if text.startswith("**") and (close := text.find("**", 3, end)) > 0:
        return 0, close + 2
    end = len(without_trailing_date(text[:end]))
    limit = min(end, _LONGEST_TITLE)
    hidden = list(code_spans(text[:end]))
    for match in _CUT.finditer(text, 0, min(end, _LONGEST_TITLE + 2)):
        at = match.start()
        inside = any(start <= at < stop for start, stop in hidden)
        short_form = match[0] == "." and _ABBREVIATION.search(text, max(0, at - 8), at)
        if at <= limit and not inside and not short_form and _tells(text[:at]):
            return 0, at
    if limit < end and (space := max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))) > 0:
        limit = space
    return 0, len(text[:limit].rstrip(" \t\n:.：。"))


def _tells(words: str) -> bool:
    wide = width(normalise(words))
    return wide >= MATCHABLE_WIDTH and bool(
        wide >= _TELLING_WIDTH
        or len(words.split()) >= _TELLING_WORDS
        or (wide >= _TELLING_CJK_WIDTH and _CJK.search(words))
    )


def _ways(
    lesson: Lesson, type_: str, known_day: date | None, title: tuple[int, int]
) -> Iterator[tuple[str, date | None]]:
    """Yield the ways to write it with the day that must be read from each, None for any."""
    words, rest = lesson.text[title[0] : title[1]], lesson.text[title[1] :]
    tags = f"[{type_}] " + (f"[{lesson.ident}] " if lesson.ident else "") + lesson.lead
    labels = "".join(f" {label}" for label in lesson.labels if label.casefold() != f"#{type_}")
    if labels and (mark := re.match(r"[.:。：]+", rest)):
        labels, rest = mark[0] + labels, rest[mark.end() :]
    given = _date(lesson.day)
    days: list[tuple[str | None, date | None]] = [(lesson.day, given)]
    # Words that begin with an asterisk are bold already, or would look so with two more.
    for pair in ("", "**") if words.startswith("*") else ("**", ""):
        plain = f"{lesson.bullet}{tags}{pair}{words}{pair}{labels}{rest}"
        if lesson.day is None and known_day is not None and _undated(plain):
            days = [(known_day.isoformat(), known_day)]
        for word, day in days:
            stamp = ", ".join([*([word] if word else []), *lesson.origin])
            for stamped in _stamped(plain, stamp, wraps="\n" in words):
                yield stamped + _comment(lesson), day


def _undated(text: str) -> bool:
    found = parse(text.encode("utf-8", "surrogateescape")).entries
    return not found or (found[0].created is None and (found[0].meta is None or found[0].meta.last is None))


def _stamped(text: str, stamp: str, *, wraps: bool) -> Iterator[str]:
    if not stamp:
        yield text
        return
    first, newline, rest = text.partition("\n")
    if not wraps:
        yield f"{first.rstrip()} ({stamp}){newline}{rest}"
    yield f"{text}\n  ({stamp})"


def _comment(lesson: Lesson) -> str:
    if lesson.ref is None:
        return ""
    return f"\n  {render_comment(lesson.ref, None, State.ACTIVE, lesson.extra)}"


def _date(word: str | None) -> date | None:
    try:
        return date.fromisoformat(word) if word else None
    except ValueError:
        return None
