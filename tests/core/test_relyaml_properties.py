"""Properties of edits in relations files: every byte that is not meant stays, whatever the file looks like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core import yamltext
from kbd.core.model import Relation
from kbd.core.relyaml import PREDICATES, parse, remove, triple, upsert
from kbd.errors import FileUnreadable, Refused

DAYS = st.dates(date(2020, 1, 1), date(2030, 12, 31))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
FREE = st.sampled_from(["informs", "applies_to", "addresses", "motivated_by"])
RELATIONS = st.builds(Relation, NAMES, FREE, NAMES, st.none() | DAYS, st.none() | DAYS, st.none() | DAYS)


@dataclass(frozen=True)
class Piece:
    """Text of one item with a slot for its day, and what it says."""

    template: str
    relation: Relation

    def text(self, day: date | None = None) -> str:
        return self.template.replace("@@", (day or self.relation.u or date.min).isoformat())


@st.composite
def pieces(draw: st.DrawFn, index: int, indent: str, flow: bool) -> Piece:
    quote = draw(st.sampled_from(["", "'", '"']))
    comment = draw(st.sampled_from(["", " # note: é – {x}", "\t# [", "   "]))
    extra = draw(st.sampled_from([[], ["note: 'kept: yes'"], [f"source: &a{index} manual"]]))
    subject = draw(st.sampled_from([f"Title {index}", f'"Title {index}"', f"'Title {index}'"]))
    fields = [f"s: {subject}", "p: informs", f"o: 'file {index}.py'", f"u: {quote}@@{quote}", *extra]
    fields = draw(st.permutations(fields))
    between = draw(st.sampled_from(["", f"{indent}# between\n", "\n"]))
    relation = Relation(f"Title {index}", "informs", f"file {index}.py", None, draw(DAYS))
    if flow:
        return Piece(f"{indent}- {{{', '.join(fields)}}}{comment}\n{between}", relation)
    gap = draw(st.sampled_from([" ", "   "]))
    body = f"{comment}\n{indent} {gap}".join(fields)
    return Piece(f"{indent}-{gap}{body}{comment}\n{between}", relation)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[Piece], str]:
    """Head, items, tail."""
    mapping = draw(st.booleans())
    indent = draw(st.sampled_from(["", "  "])) if mapping else ""
    head = draw(st.sampled_from(["", "# head\n", "---\n", "%YAML 1.1\n---\n# x\n"]))
    head += draw(st.sampled_from(["relations:\n", "v: [1, 2]\nrelations:   # r\n\n"])) if mapping else ""
    items = [draw(pieces(i, indent, draw(st.booleans()))) for i in range(draw(st.integers(1, 5)))]
    tail = draw(st.sampled_from(["", "# tail\n", "# no newline"])) + (
        draw(st.sampled_from(["", "\nz: 1\n"])) if mapping else ""
    )
    return head, items, tail


@given(documents(), st.data())
@settings(max_examples=150, deadline=None)
def test_only_the_days_concerned_change(document: tuple[str, list[Piece], str], data: st.DataObject) -> None:
    head, items, tail = document
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    bom = data.draw(st.sampled_from(["", "\ufeff"]))
    days = [data.draw(st.none() | DAYS) for _ in items]
    before = bom + head + "".join(piece.text() for piece in items) + tail
    expected = bom + head + "".join(piece.text(day) for piece, day in zip(items, days, strict=True)) + tail
    changes = [replace(piece.relation, u=day) for piece, day in zip(items, days, strict=True) if day]
    after = upsert(before.replace("\n", newline).encode(), changes, "f")
    assert after.decode() == expected.replace("\n", newline)


@given(documents(), st.lists(RELATIONS, max_size=3, unique_by=triple))
@settings(max_examples=150, deadline=None)
def test_added_items_stand_between_the_old_bytes(document: tuple[str, list[Piece], str], new: list[Relation]) -> None:
    head, items, tail = document
    before = head + "".join(piece.text() for piece in items) + tail
    after = upsert(before.encode(), new, "f").decode()
    split = next(i for i, (x, y) in enumerate(zip(before + "\0", after + "\1", strict=False)) if x != y)
    assert after.endswith(before[split:])
    assert parse(after.encode(), "f").relations == (*parse(before.encode(), "f").relations, *new)


@given(st.lists(RELATIONS, max_size=6, unique_by=triple), st.lists(RELATIONS, max_size=6, unique_by=triple))
@settings(max_examples=100, deadline=None)
def test_written_relations_are_read_back(first: list[Relation], second: list[Relation]) -> None:
    data = upsert(upsert(b"", first, "f"), second, "f")
    held = {triple(relation): relation for relation in first}
    for relation in second:
        old = held.get(triple(relation))
        kept = replace(old, u=relation.u or old.u, e=relation.e) if old else relation
        held[triple(relation)] = kept
    assert parse(data, "f").relations == tuple(held.values())
    assert upsert(data, second, "f") == data


@given(documents(), st.sets(st.integers(0, 4)))
@settings(max_examples=100, deadline=None)
def test_removal_leaves_the_other_items_byte_for_byte(document: tuple[str, list[Piece], str], gone: set[int]) -> None:
    head, items, tail = document
    before = head + "".join(piece.text() for piece in items) + tail
    after = remove(before.encode(), [items[i].relation for i in gone if i < len(items)], "f").decode()
    assert after.startswith(head)
    assert after.endswith(tail)
    position = len(head)
    for i, piece in enumerate(items):
        if i not in gone:
            position = after.index(piece.text(), position) + len(piece.text())


YAML_ISH = st.text(st.sampled_from(list("-:{}[],&*!|>'\"#%@?~ \n\r\tspouce0129é\ufeff\x85\u2028\x00")), max_size=60)


@given(YAML_ISH, st.integers(0, 400), st.sampled_from(PREDICATES))
@settings(max_examples=400, deadline=None)
def test_hostile_text_is_changed_as_meant_or_refused(noise: str, at: int, predicate: str) -> None:
    base = "relations:\n- s: a\n  p: informs\n  o: b\n  u: 2026-01-01\n- {s: c, p: informs, o: d, e: 2026-01-01}\n"
    text = base[:at] + noise + base[at:] if at < len(base) else noise
    changes = [
        Relation("a", "informs", "b", None, date(2026, 6, 10)),
        Relation("c", "informs", "d", None, date(2026, 6, 10)),
        Relation("new", predicate, "one", date(2026, 6, 10), date(2026, 6, 10)),
    ]
    try:
        after = upsert(text.encode(), changes, "f")
        held = {triple(relation): relation for relation in parse(after, "f").relations}
        cut = remove(after, changes, "f")
    except (Refused, FileUnreadable):
        return
    assert all((held[triple(change)].u, held[triple(change)].e) == (change.u, None) for change in changes)
    assert not {triple(change) for change in changes} & {triple(r) for r in parse(cut, "f").relations}


@given(documents())
@settings(max_examples=60, deadline=None)
def test_both_parsers_of_the_library_place_values_alike(document: tuple[str, list[Piece], str]) -> None:
    head, items, tail = document
    # The slow one does not take a tab for a separator.
    text = (head + "".join(piece.text() for piece in items) + tail).replace("\t", " ")
    slow = yamltext._Builder("f").build(yaml.parse(text, Loader=yaml.SafeLoader))
    assert yamltext.compose(text.encode(), "f").root == slow


def test_large_file_is_changed_in_linear_time() -> None:
    text = "".join(f"- s: Title {i}\n  p: applies_to\n  o: src/file{i}.py\n  u: 2026-01-01\n" for i in range(10_000))
    changes = [Relation(f"Title {i}", "applies_to", f"src/file{i}.py", None, date(2026, 6, 10)) for i in range(10_000)]
    assert upsert(text.encode(), changes, "f").decode() == text.replace("2026-01-01", "2026-06-10")
