"""Lessons in lists: plain, dated and emoji-led bullets, Basic-Memory observations, lines of ACE playbooks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kbd.core.adopt.lesson import Lesson
from kbd.core.entries import Parsed
from kbd.core.outline import BULLET, Item
from kbd.core.textlines import Kind, TextLine

_TASK = re.compile(r"\[[ xX/-]?\](?:\s|$)")
_LINK = re.compile(r"!?\[[^\]\n]*\]\(|\[\[|<https?:|https?://\S+$")
_TAG = re.compile(r"\[([^\W\d_][\w /+.-]{0,39})\]:?[ \t]*(?![\[(])")
_IDENT = re.compile(r"\[([A-Z]{2,5}[0-9]{2,9})\]:?[ \t]*")
_BOLD_DATE = re.compile(r"\*\*([0-9]{4}-[0-9]{2}-[0-9]{2})\*\*[ \t]*(?:\(([^()\n]*)\))?[ \t]*[:：—–-]*[ \t]*")
_LEAD_DATE = re.compile(r"\(?[0-9]{4}-[0-9]{2}-[0-9]{2}\)?[ \t]*[:：,—–-]*[ \t]*")
_ACE = re.compile(
    r"(?:[-*+][ \t]+)?\[([A-Za-z]\w{0,19}-[0-9]{1,9})\][ \t]+"
    r"helpful=([0-9]{1,9})[ \t]+harmful=([0-9]{1,9})[ \t]*::?[ \t]*(?=\S)"
)
_RELATION = re.compile(
    r"[-*+][ \t]+(?:\*\*)?([A-Za-z][\w -]{0,39}?)(?:\*\*)?:?[ \t]+"
    r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]*)?\]\]"
)
# Basic Memory lets people name relations freely; these say the same as one of the ten predicates.
PREDICATES = {
    "relates_to": "informs", "related_to": "informs", "references": "informs", "links_to": "informs",
    "depends_on": "requires", "uses": "requires", "part_of": "extends", "builds_on": "extends", "refines": "extends",
    "replaces": "supersedes", "contradicts": "conflicts_with", "contrasts_with": "conflicts_with",
    "caused_by": "motivated_by", "inspired_by": "motivated_by", "because_of": "motivated_by",
    "fixes": "addresses", "solves": "addresses", "implements": "addresses",
    "created_by": "produced_by", "derived_from": "produced_by",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Link:
    """A relation in a note: index of its line, its word as written, and what it points to."""

    at: int
    word: str
    target: str


def is_ace(line: TextLine) -> bool:
    """Tell whether a line is one of an ACE playbook."""
    return line.kind is Kind.TEXT and _ACE.match(line.text) is not None


def ace(parsed: Parsed) -> Iterator[Lesson]:
    """Yield the lines of a playbook; `helpful` becomes the count, `harmful` a pair beside it."""
    lines, sections = parsed.outline.lines, _sections(parsed)
    for at, line in enumerate(lines):
        match = _ACE.match(line.text) if line.kind is Kind.TEXT else None
        if match is None:
            continue
        last = at
        while last + 1 < len(lines) and _goes_on(lines[last + 1]):
            last += 1
        below = [_indented(one.text) for one in lines[at + 1 : last + 1]]
        yield Lesson(
            at, last, sections[at], "\n".join([line.text[match.end() :].rstrip(), *below]), hints=(match[1],),
            origin=(match[1],), ref=int(match[2]), extra=(("harmful", str(int(match[3]))),),
            carried=f"helpful= harmful= {match[2]} {match[3]} ::",
        )  # fmt: skip


def items(parsed: Parsed, *, emoji: bool | None, rewrite_derived: bool = False) -> Iterator[tuple[Item, Lesson | str]]:
    """Yield the top-level items that are no entries, each as a lesson or with the reason why it is none.

    Args:
        parsed: the file.
        emoji: only emoji-led items, only others, or (None) both.
        rewrite_derived: entries without a bold title and without numbers, too: their title is cut anew.
    """
    entries = {entry.line: entry for entry in parsed.entries}
    for item in parsed.outline.items:
        entry = entries.get(item.first + 1)
        if entry is None or (rewrite_derived and entry.derived_title and entry.meta is None):
            yield item, _read(parsed.outline.lines[item.first : item.last + 1], item, emoji)


def relations(parsed: Parsed) -> Iterator[Link]:
    """Yield the relations `- relates_to [[Other Note]]`."""
    for item in parsed.outline.items:
        line = parsed.outline.lines[item.first]
        if line.kind is Kind.TEXT and (match := _RELATION.match(line.text)):
            yield Link(item.first, re.sub(r"[\s-]+", "_", match[1].strip()).casefold(), match[2].strip())


def is_observation(line: TextLine) -> bool:
    """Tell whether a line is a Basic-Memory observation: a category and hashtags."""
    text = BULLET.sub("", line.text, count=1)
    return bool(_TAG.match(text) and re.search(r"(?:^|\s)#[^\W\d]", text))


def _read(lines: Sequence[TextLine], item: Item, emoji: bool | None) -> Lesson | str:
    bullet = BULLET.match(lines[0].text)
    if lines[0].kind is not Kind.TEXT or bullet is None:
        return "code or a comment"
    text = "\n".join([lines[0].text[bullet.end() :], *(line.text for line in lines[1:])])
    if _TASK.match(text):
        return "a task"
    if _LINK.match(text) or _RELATION.match(lines[0].text):
        return "a link"
    signs, text = _signs(text)
    if emoji is not None and bool(signs) is not emoji:
        return "of another form"
    labels = (signs,) if signs else ()
    lesson = Lesson(item.first, item.last, item.section, text, bullet=_bullet(bullet[0]), labels=labels)
    return _led(lesson)


def _bullet(lead: str) -> str:
    """Return the bullet with the space that an entry's needs."""
    return lead if lead.endswith((" ", "\t")) else f"{lead} "


def _led(lesson: Lesson) -> Lesson:
    """Take date, tag and id off the beginning of the text."""
    text = lesson.text
    if match := _BOLD_DATE.match(text):
        origin = (match[2].strip(),) if match[2] and match[2].strip() else ()
        lesson, text = replace(lesson, day=match[1], origin=origin), text[match.end() :]
    elif match := _LEAD_DATE.match(text):
        lesson, text = replace(lesson, lead=match[0].rstrip() + " "), text[match.end() :]
    for _ in range(2):
        if lesson.ident is None and (match := _IDENT.match(text)):
            lesson, text = replace(lesson, ident=match[1]), text[match.end() :]
        elif lesson.tag is None and (match := _TAG.match(text)):
            label = "#" + re.sub(r"[\s/+.]+", "-", match[1].strip())
            lesson = replace(lesson, tag=match[1], labels=(*lesson.labels, label))
            text = text[match.end() :]
    if match := re.match(r"\*\*\[([^\[\]\n]+)\][ \t]*(?=[^*\s])", text):
        # Within a bold title the brackets would be read as a tag.
        text = f"**{match[1]}: {text[match.end() :]}"
    return replace(lesson, text=text, hints=_closing_words(text.split("\n", 1)[0].rstrip()))


def _closing_words(line: str) -> tuple[str, ...]:
    """Return the words in the parentheses that end a line: `(2026-06-25, 7cae4a9f, correction)`."""
    return tuple(line[line.rfind("(") + 1 : -1].split(",")) if line.endswith(")") and "(" in line else ()


def _signs(text: str) -> tuple[str, str]:
    """Return the emoji and arrows that lead a text, and the text after them."""
    end = 0
    while end < len(text) and (unicodedata.category(text[end]) in _SIGN or text[end] in "\ufe0f\u200d"):
        end += 1
    if not end or text[0] in "$+<=>|~^`":
        return "", text
    return text[:end], text[end:].lstrip(" \t")


_SIGN = frozenset({"So", "Sm", "Sk"})


def _goes_on(line: TextLine) -> bool:
    if line.kind is not Kind.TEXT or not line.text.strip(" \t"):
        return False
    return not (_ACE.match(line.text) or re.match(r"[-*+][ \t]|#|<!--|---", line.text))


def _indented(text: str) -> str:
    return text if text.startswith(("  ", "\t")) else f"  {text.lstrip()}"


def _sections(parsed: Parsed) -> list[str]:
    """Return the path of headings above each line."""
    paths: list[str] = []
    headings = {heading.at: heading.section for heading in parsed.outline.headings}
    path = ""
    for at in range(len(parsed.outline.lines)):
        path = headings.get(at, path)
        paths.append(path)
    return paths
