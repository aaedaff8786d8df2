"""Edits of a relations file: which characters to replace so that one value, one key or one item changes.

Nothing is rendered anew but what is added, in the manner of its surroundings: block or flow, the quoting and
the indentation of the last item. Where a form leaves no place for an edit, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from datetime import date

from kbd.core.model import Relation
from kbd.core.yamltext import Document, Edit, Listing, Mapping, Node, Scalar
from kbd.errors import Refused

# Without a pattern to follow: subjects and objects are free text, days stay strings for every other reader.
_DEFAULT = {"s": '"', "p": "", "o": '"', "c": '"', "u": '"', "e": '"'}
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_COMMA = re.compile(r"\s*,\s*")
_DASH = re.compile(r"( *)-( +)")
_SAFE_PLAIN = re.compile(r"[^\W\d_](?:[\w./()+@~-]| (?! |$))*")
_RESOLVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_ESCAPED = re.compile('[\\x00-\\x1f"\\\\\x7f-\xa0\xad\u2028\u2029\ufeff\ufffe\uffff]')


def quoted(text: str, style: str) -> str:
    """Return `text` as a scalar in the style (`"`, `'` or "" for plain), in double quotes where that cannot hold it.

    Plain is used only for words that every reader takes for a string.
    """
    if style == "" and _SAFE_PLAIN.fullmatch(text) and text.lower() not in _RESOLVED:
        return text
    if style == "'" and not re.search(_ESCAPED, text.replace('"', "").replace("\\", "")):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return "\\" + char if char in '"\\' else f"\\u{ord(char):04x}"


def day_set(document: Document, item: Mapping, key: str, day: date) -> Edit:
    """Return the edit that gives the item's `key` the day: its scalar alone, else a key added after the others.

    Raises:
        Refused: the item leaves no place for it.
    """
    pair = item.own().get(key)
    if pair is None:
        return _key_added(document, item, key, day)
    value = pair[1]
    if not isinstance(value, Scalar):
        raise _no_place(document, value)
    start = _inner_start(document, value)
    text = _day_text(day, value.style)
    if start == value.end and document.text[start - 1 : start] == ":":
        text = " " + text
    return Edit(start, value.end, text)


def key_unset(document: Document, item: Mapping, key: str) -> Edit:
    """Return the edit that takes `key` out of the item, or sets it to null where it shares its line or comes first."""
    index = max(i for i, (node, _) in enumerate(item.pairs) if isinstance(node, Scalar) and node.text == key)
    name, value = item.pairs[index]
    text = document.text
    if item.flow:
        before = item.pairs[index - 1][1].end if index else name.start
        if _COMMA.fullmatch(text, before, name.start):
            return Edit(before, value.end, "")
    else:
        start, end = document.line_start(name.start), document.line_end(value.end)
        # One line, so the key and the end of the value stand on it; nothing else may, or it would go too.
        one_line = start > 0 and end == document.line_end(name.start)
        if one_line and text[start : name.start].isspace() and not text[value.end : end].strip():
            return Edit(_before_break(text, start), end, "")
    return Edit(_inner_start(document, value), value.end, "null")


def appended(
    document: Document, holder: Node | None, relations: Sequence[Relation], *, in_flow: bool
) -> tuple[Edit, ...]:
    """Return the edits that put new items at the end of the list.

    Args:
        document: the file.
        holder: the list; or the null scalar in its place, None in a file without a document.
        relations: at least one.
        in_flow: the list stands in a flow mapping, so it must be flow itself.

    Raises:
        Refused: the list leaves no place for them.
    """
    if isinstance(holder, Listing) and holder.items:
        return (_after_flow if holder.flow else _after_block)(document, holder, relations)
    return _into_empty(document, holder, relations, in_flow)


def dropped(document: Document, listing: Listing, indexes: Collection[int]) -> tuple[Edit, ...]:
    """Return the edits that take items out of the list; comments between items stay.

    Raises:
        Refused: an item shares its lines with something else, or a comment stands at its comma.
    """
    if not listing.flow:
        return tuple(_lines_of(document, listing.items[index]) for index in sorted(indexes))
    items = listing.items
    first_kept = min(set(range(len(items))) - set(indexes), default=len(items))
    edits = []
    for index in sorted(indexes):
        if index > first_kept:
            start, end, comma = items[index - 1].end, items[index].end, (items[index - 1].end, items[index].start)
        elif index + 1 < len(items):
            start, end = items[index].start, items[index + 1].start
            comma = (items[index].end, end)
        else:
            edits.append(Edit(items[index].start, items[index].end, ""))
            continue
        if not _COMMA.fullmatch(document.text, *comma):
            raise _no_place(document, items[index])
        edits.append(Edit(start, end, ""))
    return tuple(edits)


def _no_place(document: Document, node: Node) -> Refused:
    where = f"{document.name}:{node.line}"
    return Refused("written in a form that kbd does not edit", where=where, hint="write the item as `- s: …` lines")


def _inner_start(document: Document, value: Node) -> int:
    """Return where a value begins after its anchor and tag, which stay."""
    properties = _PROPERTIES.match(document.text, value.start, value.end)
    return properties.end() if properties else value.start


def _before_break(text: str, line_start: int) -> int:
    return line_start - (2 if text.endswith("\r\n", 0, line_start) else 1)


def _day_text(day: date, style: str) -> str:
    quote = style if style in {'"', "'"} else ""
    return f"{quote}{day.isoformat()}{quote}"


def _key_added(document: Document, item: Mapping, key: str, day: date) -> Edit:
    style = _manner(item)
    pair = f"{style.key(key)}: {style.value(key, day.isoformat())}"
    if item.flow:
        if not item.pairs:
            raise _no_place(document, item)
        end = item.pairs[-1][1].end
        return Edit(end, end, f", {pair}")
    first = item.pairs[0][0].start
    lead = document.text[document.line_start(first) : first]
    for name, value in reversed(item.pairs):
        end = document.line_end(value.end)
        simple = isinstance(value, Scalar) and document.line_end(name.start) == end
        # `e` may go at the same time as `u` comes.
        if simple and not (isinstance(name, Scalar) and name.text == "e") and not lead.strip(" -"):
            return Edit(end, end, f"{document.newline}{' ' * len(lead)}{pair}")
    raise _no_place(document, item)


@dataclass(frozen=True, slots=True)
class _Manner:
    """How an item is written: quote of its keys, style of its values by key."""

    key_quote: str
    values: Dict[str, str]

    def key(self, key: str) -> str:
        return f"{self.key_quote}{key}{self.key_quote}"

    def value(self, key: str, text: str) -> str:
        style = self.values.get(key, '"' if self.key_quote == '"' else _DEFAULT[key])
        return _day_text(date.fromisoformat(text), style) if key in {"c", "u", "e"} else quoted(text, style)

    def pairs(self, relation: Relation) -> list[str]:
        fields = [("s", relation.s), ("p", relation.p), ("o", relation.o)]
        days = [("c", relation.c), ("u", relation.u), ("e", relation.e)]
        fields += [(key, day.isoformat()) for key, day in days if day is not None]
        return [f"{self.key(key)}: {self.value(key, text)}" for key, text in fields]

    def flow(self, relation: Relation) -> str:
        return "{" + ", ".join(self.pairs(relation)) + "}"


_NEW = _Manner("", _DEFAULT)


def _manner(item: Mapping) -> _Manner:
    first = item.pairs[0][0] if item.pairs else None
    key_quote = first.style if isinstance(first, Scalar) and first.style in {'"', "'"} else ""
    values = {
        key: value.style for key, (_, value) in item.own().items() if isinstance(value, Scalar) and not value.null
    }
    days = [values[key] for key in ("u", "c", "e") if key in values]
    if days:
        values = dict.fromkeys(("c", "u", "e"), days[0]) | values
    return _Manner(key_quote, values)


def _last_mapping(listing: Listing) -> Mapping | None:
    return next((item for item in reversed(listing.items) if isinstance(item, Mapping) and item.pairs), None)


def _block(relations: Sequence[Relation], manner: _Manner, indent: str, gap: str, newline: str) -> str:
    inner = newline + " " * (len(indent) + 1 + len(gap))
    return newline.join(f"{indent}-{gap}{inner.join(manner.pairs(relation))}" for relation in relations)


def _below(document: Document, end: int) -> tuple[int, bool]:
    """Return the place below what ends at `end`, and whether that is the start of a line (after a block scalar)."""
    start = document.line_start(end)
    if start and not document.text[start:end].strip(" "):
        return start, True
    return document.line_end(end), False


def _after_block(document: Document, listing: Listing, relations: Sequence[Relation]) -> tuple[Edit, ...]:
    template = _last_mapping(listing)
    manner = _manner(template) if template else _NEW
    dash = _DASH.fullmatch(document.text, document.line_start(listing.items[-1].start), listing.items[-1].start)
    start = document.line_start(listing.start)
    indent, gap = dash.groups() if dash else (" " * (listing.start - start), " ")
    newline = document.newline
    if template and template.flow:
        text = newline.join(f"{indent}-{gap}{manner.flow(relation)}" for relation in relations)
    else:
        text = _block(relations, manner, indent, gap, newline)
    at, at_line_start = _below(document, listing.end)
    return (Edit(at, at, text + newline if at_line_start else newline + text),)


def _after_flow(document: Document, listing: Listing, relations: Sequence[Relation]) -> tuple[Edit, ...]:
    template = _last_mapping(listing)
    items = [(_manner(template) if template else _NEW).flow(relation) for relation in relations]
    last, text = listing.items[-1], document.text
    start, end = document.line_start(last.start), document.line_end(last.end)
    lead = text[start : last.start]
    rest = re.fullmatch(r"(\s*,)?\s*(#.*)?", text[last.end : end])
    if lead.strip() or start <= listing.start or not rest:
        return (Edit(last.end, last.end, ", " + ", ".join(items)),)
    separator = f",{document.newline}{lead}"
    below = Edit(end, end, document.newline + lead + separator.join(items) + ("," if rest[1] else ""))
    return (below,) if rest[1] else (Edit(last.end, last.end, ","), below)


def _into_empty(
    document: Document, holder: Node | None, relations: Sequence[Relation], in_flow: bool
) -> tuple[Edit, ...]:
    newline, text = document.newline, document.text
    if holder is None:
        lead = newline if text and document.line_start(len(text)) < len(text) else ""
        return (Edit(len(text), len(text), lead + _block(relations, _NEW, "", " ", newline) + newline),)
    inside = isinstance(holder, Listing) and text[holder.start + 1 : holder.end - 1].strip()
    if in_flow or inside:
        json = '"' if isinstance(document.root, Mapping) and _manner(document.root).key_quote == '"' else ""
        items = ", ".join(_Manner(json, {} if json else _DEFAULT).flow(relation) for relation in relations)
        if isinstance(holder, Listing):
            return (Edit(holder.start + 1, holder.start + 1, items),)
        return (Edit(holder.start, holder.end, f" [{items}]" if holder.start == holder.end else f"[{items}]"),)
    block = _block(relations, _NEW, "  " if isinstance(document.root, Mapping) else "", " ", newline)
    end = document.line_end(holder.end)
    alone = not (text[document.line_start(holder.start) : holder.start] + text[holder.end : end]).strip()
    if alone:
        return (Edit(holder.start, holder.end, block if text[end:] else block + newline),)
    start = holder.start
    if not text[holder.end : end].strip():
        # No trailing space is left behind where the line ends with the list.
        start = len(text[: holder.start].rstrip(" "))
    return (Edit(start, holder.end, ""), Edit(end, end, newline + block))


def _lines_of(document: Document, item: Node) -> Edit:
    start = document.line_start(item.start)
    if not _DASH.fullmatch(document.text, start, item.start):
        raise _no_place(document, item)
    at, at_line_start = _below(document, item.end)
    return Edit(start, at if at_line_start else document.next_line(at), "")
