"""The relations file as text: which relations it holds, and the text with some of them changed.

A top-level list of items, or a mapping with the list under `relations`. Comments, quoting, order, unknown keys
and unknown predicates stay byte for byte; what a change may not alter is proved by reading the result again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from datetime import date

from kbd.core import relcycles, relsplice
from kbd.core.model import Problem, Relation
from kbd.core.yamltext import Document, Edit, Listing, Mapping, Node, Plain, Scalar, compose, plain, spliced
from kbd.errors import FileUnreadable, Refused

PREDICATES = (
    "motivated_by",
    "supersedes",
    "extends",
    "addresses",
    "serves_thesis",
    "applies_to",
    "conflicts_with",
    "requires",
    "informs",
    "produced_by",
)
SYMMETRIC = frozenset({"conflicts_with"})
Triple = tuple[str, str, str]
_FIELDS = ("s", "p", "o", "c", "u", "e")
_DAY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt \t].*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a relations file holds.

    Attributes:
        relations: one per triple in order of the file, unknown predicates included; of a triple that stands
            there several times the one used last.
        problems: with the codes `bad_relation`, `unknown_predicate`, `unknown_key`, `invalid_date`,
            `duplicate_relation` and `relation_cycle`.
    """

    relations: tuple[Relation, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of the list; `relation` is None if it is none, `faults` are (code, what, hint)."""

    node: Node
    relation: Relation | None
    faults: tuple[tuple[str, str, str], ...] = ()


_Expected = tuple[_Item | None, Relation | None]  # the item as it was, None if it is new; the change it takes


@dataclass(frozen=True, slots=True)
class _Text:
    """A relations file as read: the list (or the null in its place) and all else by value."""

    document: Document
    holder: Node | None
    items: tuple[_Item, ...]
    rest: Plain

    @property
    def in_flow(self) -> bool:
        return isinstance(self.document.root, Mapping) and self.document.root.flow

    def known(self) -> dict[Triple, Relation]:
        """Return one relation per triple; of duplicates the one used last, in the place of the first."""
        known: dict[Triple, Relation] = {}
        for item in self.items:
            if item.relation is not None:
                held = known.setdefault(triple(item.relation), item.relation)
                if (held.u or date.min) < (item.relation.u or date.min):
                    known[triple(item.relation)] = item.relation
        return known


def triple(relation: Relation) -> Triple:
    """Return the identity of a relation; both directions of a symmetric one are the same."""
    s, o = relation.s, relation.o
    return (min(s, o), relation.p, max(s, o)) if relation.p in SYMMETRIC else (s, relation.p, o)


def parse(data: bytes, name: str) -> Parsed:
    """Return the relations in `data`, the bytes of the file `name` (for messages: `name:line`).

    An empty file holds none. Days may be quoted or not and may carry a time; null is no day.

    Raises:
        FileUnreadable: see `kbd.core.yamltext.compose`; or neither a list nor a mapping with `relations`.
    """
    text = _read(data, name)
    known = text.known()
    return Parsed(tuple(known.values()), (*_faults(text), *_cycle_problem(known.values(), name)))


def upsert(data: bytes, changes: Sequence[Relation], name: str) -> bytes:
    """Return `data` with the relations changed or added; idempotent.

    Of a triple that stands in the file, `u` is set unless it is None, and `e` is set, or taken out when it is
    None; `s`, `p`, `o`, `c` and the other keys of its items stay. The others are added at the end of the list.
    The last of several changes of one triple holds.

    Args:
        data: the file's bytes; empty for a new file.
        changes: any order.
        name: of the file, for messages.

    Raises:
        FileUnreadable: as `parse`.
        Refused: a new relation with an unknown predicate or without subject or object; a new or revived one
            that closes a cycle over supersedes, extends and requires; a form of the file that leaves no place.
    """
    text = _read(data, name)
    wanted = {triple(change): change for change in changes}
    known = text.known()
    new = [change for key, change in wanted.items() if key not in known]
    for change in new:
        _check_new(change, name)
    _check_cycles(known, wanted, name)
    edits = [edit for item in text.items for edit in _changes_of(text.document, item, wanted)]
    if new:
        edits += relsplice.appended(text.document, text.holder, new, in_flow=text.in_flow)
    expected: list[_Expected] = [(item, _change(item, wanted)) for item in text.items]
    return _proved(text, edits, expected + [(None, change) for change in new])


def remove(data: bytes, relations: Iterable[Relation], name: str) -> bytes:
    """Return `data` without the items of these relations' triples; those that are not there are passed over.

    Raises:
        FileUnreadable: as `parse`.
        Refused: a form of the file that leaves an item inseparable.
    """
    text = _read(data, name)
    gone = {triple(relation) for relation in relations}
    indexes = {i for i, item in enumerate(text.items) if item.relation and triple(item.relation) in gone}
    if not indexes or not isinstance(text.holder, Listing):
        return data
    kept = [(item, None) for i, item in enumerate(text.items) if i not in indexes]
    return _proved(text, relsplice.dropped(text.document, text.holder, indexes), kept)


def _read(data: bytes, name: str) -> _Text:
    document = compose(data, name)
    holder, rest = _holder(document)
    items = holder.items if isinstance(holder, Listing) else ()
    return _Text(document, holder, tuple(_item(node) for node in items), rest)


def _holder(document: Document) -> tuple[Node | None, Plain]:
    root = document.root
    if isinstance(root, Mapping):
        values = [value for key, value in root.pairs if plain(key) == "relations"]
        if len(values) == 1 and _holds_items(values[0]):
            return values[0], tuple((plain(key), plain(value)) for key, value in root.pairs if value is not values[0])
    elif root is None or _holds_items(root):
        return root, ()
    raise FileUnreadable(
        "neither a list of relations nor a mapping with one list under `relations`",
        where=document.name,
        hint="mend the file",
    )


def _holds_items(node: Node) -> bool:
    return isinstance(node, Listing) or (isinstance(node, Scalar) and node.null)


def _item(node: Node) -> _Item:
    own = node.own() if isinstance(node, Mapping) else {}
    texts = {key: value.text for key, (_, value) in own.items() if isinstance(value, Scalar) and not value.null}
    if not all(texts.get(key, "").strip() for key in "spo"):
        return _Item(node, None, (("bad_relation", "not an item with s, p and o", "give it all three"),))
    days = {key: _day(texts.get(key, "")) for key in ("c", "u", "e")}
    faults = [
        ("invalid_date", f"`{key}` is no date", "write it as YYYY-MM-DD")
        for key, day in days.items()
        if day is None and key in own and _says_something(own[key][1])
    ]
    relation = Relation(texts["s"], texts["p"], texts["o"], days["c"], days["u"], days["e"])
    if relation.p not in PREDICATES:
        faults.append(("unknown_predicate", f"unknown predicate {relation.p!r}", f"known: {', '.join(PREDICATES)}"))
    faults += [("unknown_key", f"unknown key {key!r}", "kbd keeps it") for key in own if key not in _FIELDS]
    return _Item(node, relation, tuple(faults))


def _says_something(node: Node) -> bool:
    return not isinstance(node, Scalar) or bool(node.text.strip() and not node.null)


def _day(text: str) -> date | None:
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return None
    try:
        return date(*(int(part) for part in found.groups()))
    except ValueError:
        return None


def _faults(text: _Text) -> Iterator[Problem]:
    seen: set[Triple] = set()
    for item in text.items:
        where = f"{text.document.name}:{item.node.line}"
        for code, what, hint in item.faults:
            yield Problem(code, where, what, hint)
        if item.relation is not None and triple(item.relation) in seen:
            yield Problem("duplicate_relation", where, "the same relation stands above", "remove one of them")
        if item.relation is not None:
            seen.add(triple(item.relation))


def _cycle_problem(relations: Iterable[Relation], name: str) -> Iterator[Problem]:
    names = relcycles.cycle(relations)
    if names:
        what = f"cycle over supersedes, extends, requires: {' → '.join(names)}"
        yield Problem("relation_cycle", name, what, "expire one of these relations")


def _check_new(change: Relation, name: str) -> None:
    where = f"{name}: {change.s!r} {change.p} {change.o!r}"
    if change.p not in PREDICATES:
        raise Refused(f"unknown predicate {change.p!r}", where=where, hint=f"known: {', '.join(PREDICATES)}")
    if not change.s.strip() or not change.o.strip():
        raise Refused("a relation needs a subject and an object", where=where, hint="name both")
    if any("\ud800" <= char <= "\udfff" for char in change.s + change.o):
        raise Refused("subject or object is not valid text", where=where, hint="mend the bytes that are not UTF-8")


def _check_cycles(known: Dict[Triple, Relation], wanted: Dict[Triple, Relation], name: str) -> None:
    after = {**known, **wanted}.values()
    for key, change in wanted.items():
        if key in known and known[key].e is None:
            # An old edge does not answer for a cycle that a person wrote: its days go on.
            continue
        names = relcycles.closed_cycle(after, change)
        if names:
            what = f"closes a cycle over supersedes, extends, requires: {' → '.join(names)}"
            raise Refused(what, where=f"{name}: {change.s!r} {change.p} {change.o!r}", hint="expire one of these")


def _change(item: _Item, wanted: Dict[Triple, Relation]) -> Relation | None:
    return wanted.get(triple(item.relation)) if item.relation is not None else None


def _changes_of(document: Document, item: _Item, wanted: Dict[Triple, Relation]) -> Iterator[Edit]:
    held, change = item.relation, _change(item, wanted)
    if held is None or change is None or not isinstance(item.node, Mapping):
        return
    if change.u is not None and change.u != held.u:
        yield relsplice.day_set(document, item.node, "u", change.u)
    if change.e is not None and change.e != held.e:
        yield relsplice.day_set(document, item.node, "e", change.e)
    elif change.e is None and held.e is not None:
        yield relsplice.key_unset(document, item.node, "e")


def _proved(text: _Text, edits: Sequence[Edit], expected: Sequence[_Expected]) -> bytes:
    """Return the text with the edits made, if it then says what is expected and nothing else has changed."""
    name = text.document.name
    try:
        data = spliced(text.document, edits)
        after = _read(data, name)
    except (ValueError, FileUnreadable) as error:
        raise _unproved(name) from error
    same = after.rest == text.rest and len(after.items) == len(expected)
    if not same or not all(_says(*pair) for pair in zip(after.items, expected, strict=True)):
        raise _unproved(name)
    return data


def _says(item: _Item, expected: _Expected) -> bool:
    before, change = expected
    if before is None or before.relation is None or change is None:
        return item.relation == change if before is None else plain(item.node) == plain(before.node)
    meant = replace(before.relation, u=change.u or before.relation.u, e=change.e)
    return item.relation == meant and _other_pairs(item.node) == _other_pairs(before.node)


def _other_pairs(node: Node) -> list[Plain]:
    pairs = node.pairs if isinstance(node, Mapping) else ()
    return [(plain(key), plain(value)) for key, value in pairs if plain(key) not in {"u", "e"}]


def _unproved(name: str) -> Refused:
    return Refused(
        "written in a form in which the change would alter more than is meant",
        where=name,
        hint="write the items as `- s: …` lines without anchors",
    )
