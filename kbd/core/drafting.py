"""A new entry: its words checked, its place in a file chosen, and the proof that it is read back as it was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher

from kbd.core.entries import MATCHABLE_WIDTH, Parsed, parse
from kbd.core.model import Entry
from kbd.core.normal import normalise, width
from kbd.core.outline import Outline
from kbd.core.redact import printable, redact
from kbd.core.splice import insert
from kbd.errors import Refused

NEAR = 0.85
"""From this similarity on two titles say the same; 1 is equal."""
MAX_TITLE_CHARS, MAX_TEXT_CHARS = 200, 10_000
_OWN_LINE = re.compile(r"```|~~~|[-*+] |\d+[.)] |[|>#]")
_TELLING = re.compile(
    r"\w*\d\w*|(?<!')\b[b-hj-z]\b|\b(?:no|not|never|always|without|don't|doesn't|cannot|can't)\b|[不别勿禁没无非]"
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The words of an entry to be, as `draft` leaves them."""

    type: str
    title: str
    text: str

    @property
    def norm(self) -> str:
        """The normalised title."""
        return normalise(self.title)


def trimmed(title: str) -> str:
    """Return a title as it is written for one that was given."""
    return " ".join(title.split()).rstrip(":.：。 ")


def draft(type_: str, title: str, text: str) -> Draft:
    """Return the words in the form that they are written in.

    Raises:
        Refused: a title that could not be cited, or words that could not stand in an entry.
    """
    title = trimmed(title)
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    text = "\n".join(lines).strip("\n").lstrip()
    for name, words, most in (("title", title, MAX_TITLE_CHARS), ("text", text, MAX_TEXT_CHARS)):
        if len(words) > most:
            raise Refused(f"the {name} has {len(words)} characters, over {most}", hint="say it shorter")
        if printable(words, keep_lines=True) != words.replace("\t", " "):
            raise Refused(f"the {name} holds control characters", hint="write plain text")
        if "<!--" in words or "-->" in words:
            raise Refused(f"the {name} holds an HTML comment", hint="kbd keeps its numbers in comments; leave them out")
    if width(normalise(title)) < MATCHABLE_WIDTH:
        what = f"the title {title!r} is under {MATCHABLE_WIDTH} wide and could never be cited"
        raise Refused(what, hint="name the lesson in a few words")
    return Draft(type_, title, text)


def refuse_secrets(words: Iterable[tuple[str, str]]) -> None:
    """Refuse words, each with its name, in which a secret seems to stand; the message does not hold it."""
    for name, text in words:
        if redact(text) != printable(text):
            raise Refused(
                f"the {name} seems to hold a secret", hint="say where it is kept instead; nothing was written"
            )


def block_of(words: Draft, today: date, newline: bytes) -> bytes:
    """Return the entry as bytes: tagged, dated, continued lines indented."""
    stamp = f"({today.isoformat()})"
    lead, lines = f"- [{words.type}] **{words.title}**", words.text.split("\n")
    if not words.text:
        lines = []
    elif not _OWN_LINE.match(lines[0]):
        lead, lines = f"{lead} — {lines[0]}", lines[1:]
    lines = [lead, *(f"  {line}" if line else "" for line in lines)]
    if lines[-1].endswith(stamp):
        pass
    elif _OWN_LINE.match(lines[-1].strip()) and len(lines) > 1:
        lines.append(f"  {stamp}")
    else:
        lines[-1] = f"{lines[-1]} {stamp}"
    return b"".join(line.encode() + newline for line in lines)


def inserted(
    data: bytes, words: Draft, section: str | None, today: date, types: frozenset[str], marker: str
) -> tuple[bytes, Entry]:
    """Return `data` with the entry at the end of a section, and the entry as it is read there.

    Args:
        data: the file; empty for a new one.
        words: of the entry.
        section: a path of headings, or the end of one; it is made if it is not there. None: where its like stand.
        today: its date.
        types: known types.
        marker: the dormancy marker.

    Raises:
        Refused: read back, it would not be the entry that was meant, or another one would change.
    """
    before = parse(data, types, marker)
    path = usual_section(before, words.type) if section is None else _section(before.outline, section)
    after = insert(data, block_of(words, today, before.newline), path)
    parsed = parse(after, types, marker)
    new = [entry for entry in parsed.entries if entry.norm == words.norm]
    others = [_said(entry) for entry in parsed.entries if entry.norm != words.norm]
    as_meant = (
        len(new) == 1
        and (new[0].type, new[0].created, new[0].section, new[0].meta) == (words.type, today, path, None)
        and others == [_said(entry) for entry in before.entries if entry.norm != words.norm]
    )
    if not as_meant or parsed.has_conflict is not before.has_conflict:
        hint = "write it in plain sentences, without headings, open code fences or bold in the title"
        raise Refused("these words would not be read back as one entry", hint=hint)
    return after, new[0]


def _said(entry: Entry) -> tuple[object, ...]:
    return entry.norm, entry.type, entry.ident, entry.section, entry.meta, entry.created, entry.body


def _section(outline: Outline, wanted: str) -> str:
    """Return the path of headings that is meant: one that is there, else a new one below the file's only title."""
    wanted = " / ".join(filter(None, (part.strip().lstrip("#").strip() for part in wanted.split(" / "))))
    paths = list(dict.fromkeys(heading.section for heading in outline.headings))
    folded = wanted.casefold()
    same = [path for path in paths if path.casefold() == folded]
    ends = [path for path in paths if path.casefold().endswith(f" / {folded}")]
    if same or len(ends) == 1:
        return (same or ends)[0]
    tops = [heading for heading in outline.headings if heading.level == min(one.level for one in outline.headings)]
    is_titled = len(tops) == 1 and tops[0] is outline.headings[0] and tops[0].level == 1
    return f"{tops[0].section} / {wanted}" if is_titled and wanted else wanted


def usual_section(parsed: Parsed, type_: str) -> str:
    """Return where an entry of a type belongs: under a heading of its name, else beside its like, else at the end."""
    paths = [heading.section for heading in parsed.outline.headings]
    names = {type_, f"{type_}s", f"{type_}es"}
    named = [path for path in paths if path.rpartition(" / ")[2].casefold() in names]
    like = [entry.section for entry in parsed.entries if entry.type == type_]
    return next(iter([*named[:1], *like[-1:], *[entry.section for entry in parsed.entries][-1:], *paths[:1]]), "")


def namesake(norm: str, titles: Iterable[str]) -> str | None:
    """Return the first of these normalised titles that says the same as `norm`, an equal one first; None if none does.

    Near-same is a similarity of at least 0.85 of the letters, in order or by sorted words. Numbers, single letters and
    negations tell titles apart however alike they are otherwise: v1 is not v2, and never is not always.
    """
    known = list(titles)
    if norm in known:
        return norm
    matchers = [_matcher(norm), _matcher(_by_word(norm))]
    telling = _TELLING.findall(norm)
    for title in known:
        forms = zip(matchers, (title, _by_word(title)), strict=True)
        if any(_is_near(matcher, form) for matcher, form in forms) and _TELLING.findall(title) == telling:
            return title
    return None


def _matcher(norm: str) -> SequenceMatcher[str]:
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(norm)
    return matcher


def _is_near(matcher: SequenceMatcher[str], title: str) -> bool:
    matcher.set_seq1(title)
    return matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR and matcher.ratio() >= NEAR


def _by_word(norm: str) -> str:
    return " ".join(sorted(norm.split()))


def resolve(name: str, entries: Sequence[tuple[str, Entry]]) -> list[Entry]:
    """Return the entries that a handle, an id, a title or a part of one names; each given with its handle.

    The first of these readings that finds something holds.
    """
    bare, norm = name.strip().removeprefix("[").removesuffix("]"), normalise(name).rstrip(" .:")
    readings = (
        lambda handle, entry: handle == bare.lower(),
        lambda handle, entry: entry.ident == bare,
        lambda handle, entry: entry.norm in (norm, normalise(name)),
        lambda handle, entry: bool(norm) and norm in entry.norm,
    )
    for means in readings:
        found = [entry for handle, entry in entries if means(handle, entry)]
        if found:
            return found
    return []
