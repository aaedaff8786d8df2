"""Lessons under headings: dated headings, `.learnings`, flow and Serena memories, Claude's notes with front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kbd.core.adopt.lesson import Lesson
from kbd.core.entries import Parsed
from kbd.core.normal import normalise, width
from kbd.core.outline import Heading
from kbd.core.textlines import Kind, TextLine

_HASHES = re.compile(r" {0,3}#{1,6}[ \t]*")
_DATE = re.compile(r"\(?([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.]+Z?)?\)?[ \t]*[:：,—–-]*[ \t]*")
_IDENT = re.compile(r"\[([A-Z]{2,5}[0-9]{2,9})\][ \t]*")
_CODE = re.compile(
    r"\[([A-Za-z]\w*(?:-\w+)*-(?=[A-Z]*[0-9])[0-9A-Z]{1,9})\][ \t]*|([A-Za-z][\w]*(?:-\w+)*-[0-9]{2,9}):[ \t]+"
)
_TAG = re.compile(r"\[([^\W\d_][\w /+.-]{0,39})\](?![\[(])[ \t]*")
_TAG_AT_END = re.compile(r"[ \t]*\[([^\W\d_][\w /+.-]{0,39})\][ \t]*$")
_AT_END = re.compile(r"[ \t]+\(([^()]+)\)$")
_MANNER = re.compile(r"(?:manual|auto|automatic)\b[ \t]*", re.IGNORECASE)
_FIELD = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\*\*[^*\n]{1,40}(?:\*\*:|:\*\*)|[A-Z][\w -]{0,30}:[ \t]*\S+$")
_LOGGED = re.compile(r"\W*(?:Logged|Date|Created|Added)\W+([0-9]{4}-[0-9]{2}-[0-9]{2})", re.IGNORECASE)
_SUMMARY = re.compile(r"#{1,6}[ \t]*(?:Summary|Lesson|Learning|What)[ \t]*$", re.IGNORECASE)
_PAIR = re.compile(r"[ \t]*([\w-]+):[ \t]*(.*)")
_LONGEST_TITLE, _LONGEST_SUMMARY = 200, 120
_SOURCE = re.compile(r"(?:\*\*)?Source(?:\*\*)?:", re.IGNORECASE)
_BREAK = re.compile(r"[ \t]*(?:-[ \t]*){3,}$|[ \t]*(?:\*[ \t]*){3,}$|[ \t]*(?:_[ \t]*){3,}$")


@dataclass(frozen=True, slots=True)
class _Head:
    """What a heading says: the parts of a `Lesson`, and the words that are left for a title."""

    title: str
    tag: str | None = None
    ident: str | None = None
    day: str | None = None
    code: str | None = None
    manner: str = ""
    source: str = ""

    @property
    def is_sign(self) -> bool:
        """It leads with a date, a tag or a code, as headings of chapters do not."""
        return bool(self.tag or self.ident or self.day or self.code)


def is_learning(text: str) -> bool:
    """Tell whether a heading is one of `.learnings`."""
    return re.match(r" {0,3}##+ \[(?:LRN|ERR|FEAT)-", text) is not None


def is_signed(parsed: Parsed, heading: Heading) -> bool:
    """Tell whether a heading is a lesson's by its own words or by the `Source:` below it."""
    lines = parsed.outline.lines
    below = next((line.text for line in lines[heading.at + 1 : heading.at + 4] if line.text.strip()), "")
    return _read_head(lines[heading.at].text).is_sign or bool(_SOURCE.match(below))


def headed(parsed: Parsed, *, every: bool) -> Iterator[Lesson]:
    """Yield a lesson for each heading that is one's, or (`every`) for each that has text of its own.

    The former reach to the next heading of their level, the latter to the next heading.
    """
    headings, count = parsed.outline.headings, len(parsed.outline.lines)
    signed = [every or is_signed(parsed, heading) for heading in headings]
    above: list[Heading] = []
    for number, heading in enumerate(headings):
        above = [*(one for one in above if one.level < heading.level), heading]
        if not signed[number]:
            continue
        later = range(number + 1, len(headings))
        ends = (headings[at].at for at in later if signed[at] or headings[at].level <= heading.level)
        lesson = _lesson(parsed, heading, above[-2].section if len(above) > 1 else "", next(ends, count))
        if lesson is not None:
            yield lesson


def fronted(parsed: Parsed, fallback: str) -> Lesson | None:
    """Return a note with front matter (`name`, `description`, `type`) as one lesson; None if it is none.

    Args:
        parsed: the note.
        fallback: its title if it describes itself with nothing that could be cited.
    """
    lines = parsed.outline.lines
    pairs = {match[1].lower(): match[2].strip().strip("\"'") for match in _pairs(parsed)}
    if "name" not in pairs or not ({"description", "type"} & pairs.keys()):
        return None
    options = [pairs.get("description", ""), pairs["name"], fallback]
    title = next((one for one in options if width(normalise(one)) >= 8 and len(one) <= _LONGEST_TITLE), fallback)
    kept = [match[0].strip() for match in _pairs(parsed) if match[1].lower() not in ("name", "type")]
    kept = [line for line in kept if not line.endswith(":") and line.partition(":")[2].strip(" \"'") != title]
    front = parsed.outline.front
    other = [line.text.strip() for line in lines[1 : front - 1] if not _PAIR.fullmatch(line.text) and line.text.strip()]
    last = _last(parsed, front, len(lines))
    body = [line.text for line in lines[front : last + 1]]
    while body and not body[0].strip():
        body.pop(0)
    told = [f"  {line}" for line in [*kept, *other]]
    text = "\n".join([title.rstrip(" .:"), *told, *([""] if told and body else []), *map(_indent, body)])
    kind = pairs.get("type")
    return Lesson(0, last, "", text, is_titled=True, tag=kind, origin=(pairs["name"], *([kind] if kind else [])),
                  carried="name description type metadata")  # fmt: skip


def _pairs(parsed: Parsed) -> Iterator[re.Match[str]]:
    for line in parsed.outline.lines[1 : max(1, parsed.outline.front - 1)]:
        if match := _PAIR.fullmatch(line.text):
            yield match


def _read_head(line: str) -> _Head:
    text = _HASHES.sub("", line, count=1).rstrip().rstrip("#").rstrip()
    head = _Head("")
    for _ in range(4):
        if not head.day and (match := _DATE.match(text)):
            head = replace(head, day=match[1])
        elif not head.ident and (match := _IDENT.match(text)):
            head = replace(head, ident=match[1])
        elif not head.code and (match := _CODE.match(text)):
            head = replace(head, code=match[1] or match[2])
        elif not head.tag and (match := _TAG.match(text)):
            head = replace(head, tag=match[1])
        elif head.day and not head.manner and (match := _MANNER.match(text)):
            head = replace(head, manner=match[0].strip())
        else:
            break
        text = text[match.end() :]
    if not head.tag and (match := _TAG_AT_END.search(text)):
        head, text = replace(head, tag=match[1]), text[: match.start()]
    if head.day and (match := _AT_END.search(text)):
        head, text = replace(head, source=match[1].strip()), text[: match.start()]
    if head.code and not head.tag and text and " " not in text:
        head, text = replace(head, tag=text), ""
    return replace(head, title=text.strip())


def _lesson(parsed: Parsed, heading: Heading, parent: str, end: int) -> Lesson | None:
    lines = parsed.outline.lines
    head = _read_head(lines[heading.at].text)
    last = _last(parsed, heading.at + 1, end)
    body = [line.text for line in lines[heading.at + 1 : last + 1]]
    if not any(text.strip() for text in body) and not head.is_sign:
        return None
    title, carried = head.title, ""
    if width(normalise(title)) < 8 and title:
        above = parent.rpartition(" / ")[2]
        title = f"{above}: {title}" if above else title
    is_titled = bool(title)
    if not title:
        title, body, carried = _from_body(body)
        is_titled = bool(carried) and len(title) <= _LONGEST_SUMMARY
    day = head.day or next((match[1] for text in body if (match := _LOGGED.match(text))), None)
    origin = tuple(filter(None, (head.code, head.manner, head.source)))
    label = ("#" + re.sub(r"[\s/+.]+", "-", head.tag.strip()),) if head.tag else ()
    text = "\n".join([title, *map(_indent, body)])
    return Lesson(heading.at, last, parent, text, is_titled=is_titled, tag=head.tag,
                  ident=head.ident, day=day, origin=origin, labels=label, carried=carried)  # fmt: skip


def _from_body(body: Sequence[str]) -> tuple[str, list[str], str]:
    """Take the line that says what the lesson is out of a body: after `Summary`, else the first of plain prose."""
    summary = next((at for at, text in enumerate(body) if _SUMMARY.match(text)), None)
    start = 0 if summary is None else summary + 1
    prose = (at for at in range(start, len(body)) if re.match(r"\w|[*`\"'(]", body[at]) and not _FIELD.match(body[at]))
    at = next(prose, None)
    if at is None:
        return "", list(body), ""
    gone = {at} if summary is None else {summary, at}
    rest = [text for number, text in enumerate(body) if number not in gone]
    if 0 < min(gone) < len(rest) and not rest[min(gone)].strip() and not rest[min(gone) - 1].strip():
        rest.pop(min(gone))  # one of the blank lines before and after what was taken out
    while rest and not rest[0].strip():
        rest.pop(0)
    return body[at].strip(), rest, "" if summary is None else body[summary].strip("# ")


def _last(parsed: Parsed, start: int, end: int) -> int:
    """Return the index of the last line of text, without blank lines and rules at the end."""
    lines = parsed.outline.lines

    def is_empty(line: TextLine) -> bool:
        return not line.text.strip() or (line.kind is Kind.TEXT and _BREAK.match(line.text) is not None)

    last = end - 1
    while last >= start and is_empty(lines[last]):
        last -= 1
    return max(last, start - 1)


def _indent(text: str) -> str:
    return f"  {text}" if text.strip() else text
