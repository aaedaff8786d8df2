"""The relations file as text: what is read, what an edit touches, what is refused."""

from __future__ import annotations

from datetime import date

import pytest
import yaml

from kbd.core import yamltext
from kbd.core.model import Relation
from kbd.core.relyaml import PREDICATES, parse, remove, triple, upsert
from kbd.errors import FileUnreadable, Refused

DAY = date(2026, 6, 10)
OLD = date(2026, 1, 1)
A = Relation("A lesson", "applies_to", "a.py", DAY, DAY)
B = Relation("B: lesson", "requires", "no", DAY, DAY)


def relations(text: str | bytes) -> tuple[Relation, ...]:
    return parse(text.encode() if isinstance(text, str) else text, "f").relations


def codes(text: str) -> list[str]:
    return [problem.code for problem in parse(text.encode(), "f").problems]


def changed(text: str, *changes: Relation) -> str:
    return upsert(text.encode(), changes, "f").decode()


# --- reading -------------------------------------------------------------------------------------------------


def test_list_and_mapping_form_hold_the_same_relations() -> None:
    items = "- s: a\n  p: informs\n  o: b\n  c: 2026-01-01\n  u: '2026-06-10'\n  e: \"2026-06-11\"\n"
    expected = (Relation("a", "informs", "b", OLD, DAY, date(2026, 6, 11)),)
    assert relations(items) == expected
    assert relations("version: 2\nrelations:\n" + items + "other: [1, 2]\n") == expected


@pytest.mark.parametrize(
    "text", ["", "# only a comment\n", "---\n", "[]\n", "relations:\n", "relations: []\n", "null\n"]
)
def test_empty_file_holds_no_relations(text: str) -> None:
    assert relations(text) == ()


@pytest.mark.parametrize("word", ["no", "1.10", "017", "2026-01-01", "off", "1e3", "0x1f", "true", ".inf", "12:30:45"])
def test_strings_stay_strings(word: str) -> None:
    assert relations(f"- {{s: {word}, p: informs, o: {word}}}\n") == (Relation(word, "informs", word, None, None),)


@pytest.mark.parametrize(
    "word", ["no", "1.10", "017", "2026-01-01", "~", "null", "=", "<<", "y", "a: b", "a #b", "- a"]
)
@pytest.mark.parametrize(
    "template", ["", "- s: plain\n  p: informs\n  o: plain\n", "[{s: plain, p: informs, o: plain}]\n"]
)
def test_added_strings_are_strings_for_every_reader(word: str, template: str) -> None:
    text = changed(template, Relation(word, "informs", word, None, None))
    assert relations(text)[-1] == Relation(word, "informs", word, None, None)
    assert yaml.safe_load(text)[-1] == {"s": word, "p": "informs", "o": word}


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-06-10", DAY),
        ('"2026-06-10"', DAY),
        ("2026-6-10", DAY),
        ("2026-06-10T23:59:59Z", DAY),
        ("2026-06-10 08:00:00.5 +02:00", DAY),
        ("", None),
        ("~", None),
        ("null", None),
        ('""', None),
    ],
)
def test_day_is_read_in_each_spelling(written: str, day: date | None) -> None:
    text = f"- s: a\n  p: informs\n  o: b\n  u: {written}\n"
    assert relations(text)[0].u == day
    assert codes(text) == []


@pytest.mark.parametrize(
    "written", ["yesterday", "2026-13-01", "2026-02-30", "20260610", "[2026-06-10]", "{}", "2026-06"]
)
def test_unreadable_day_is_a_problem_and_no_day(written: str) -> None:
    text = f"- s: a\n  p: informs\n  o: b\n  u: {written}\n"
    assert relations(text)[0].u is None
    assert codes(text) == ["invalid_date"]


@pytest.mark.parametrize(
    "item",
    ["- text", "-", "- [a]", "- {s: a, p: informs}", "- {s: a, p: informs, o: [b]}", '- {s: " ", p: informs, o: b}'],
)
def test_item_without_its_three_parts_is_a_problem_and_stays(item: str) -> None:
    text = f"- {{s: q, p: informs, o: r}}\n{item}\n"
    assert codes(text) == ["bad_relation"]
    assert changed(text, A).startswith(text)


def test_unknown_predicates_and_keys_are_reported_and_kept() -> None:
    text = "- s: a\n  p: reminds_of\n  o: b\n  note: mine # c\n  u: 2026-01-01\n"
    assert codes(text) == ["unknown_predicate", "unknown_key"]
    assert changed(text, Relation("a", "reminds_of", "b", None, DAY)) == text.replace("2026-01-01", "2026-06-10")


def test_problem_names_file_and_line() -> None:
    assert parse(b"# c\n- {s: q, p: informs, o: r}\n- 5\n", "kb/f.yaml").problems[0].where == "kb/f.yaml:3"


def test_relation_used_last_stands_for_its_duplicates() -> None:
    text = "- {s: a, p: informs, o: b, u: 2026-01-01, e: 2026-02-01}\n- {s: a, p: informs, o: b, u: 2026-06-10}\n"
    assert relations(text) == (Relation("a", "informs", "b", None, DAY),)
    assert codes(text) == ["duplicate_relation"]


def test_conflict_is_the_same_in_both_directions() -> None:
    assert triple(Relation("b", "conflicts_with", "a", None, None)) == triple(
        Relation("a", "conflicts_with", "b", None, None)
    )
    text = "- {s: a, p: conflicts_with, o: b, u: 2026-01-01}\n"
    assert changed(text, Relation("b", "conflicts_with", "a", DAY, DAY)) == text.replace("2026-01-01", "2026-06-10")


def test_cycle_in_the_file_is_a_problem_with_its_path() -> None:
    text = "- {s: a, p: requires, o: B}\n- {s: b, p: extends, o: c}\n- {s: c, p: supersedes, o: a}\n"
    [problem] = parse(text.encode(), "f").problems
    assert problem.code == "relation_cycle"
    assert any(path in problem.what for path in ("a → b → c → a", "b → c → a → b", "c → a → b → c"))


# --- what is no relations file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"just text\n",
        b"a: 1\n",
        b"relations: 5\n",
        b"relations: {a: b}\n",
        b"relations: []\nrelations: []\n",
        b"- {s: a\n- b\n",
        b"- s: a\n\tp: b\n",
        b"[]\n---\n[]\n",
        b"- {s: *nowhere}\n",
        b"- &a [*a]\n",
        b"\xff\xfe-\x00",
        b"- s: caf\xe9\n",
        b"\x00" * 700,
        b"<<<<<<< HEAD\n- {s: a, p: informs, o: b}\n=======\n>>>>>>> b\n",
        b'- "\\UFFFFFFFF"\n',
        b"%YAML 99999999999999999999.1\n---\n[]\n",
        b"x" * (yamltext.MAX_BYTES + 1),
    ],
)
def test_broken_file_is_never_taken_for_empty(data: bytes) -> None:
    with pytest.raises(FileUnreadable):
        parse(data, "f")
    with pytest.raises(FileUnreadable):
        upsert(data, [A], "f")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_unreadable(opening: str) -> None:
    with pytest.raises(FileUnreadable):
        parse((opening * 50_000).encode(), "f")


def test_alias_bomb_is_unreadable() -> None:
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 12)]
    with pytest.raises(FileUnreadable, match="nodes"):
        parse(("\n".join(laughs) + "\nrelations: []\n").encode(), "f")


def test_depth_counts_through_aliases() -> None:
    chain = ["a0: &a0 [[[[[[[[[[x]]]]]]]]]]"]
    chain += [f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 400)]
    with pytest.raises(FileUnreadable, match="deep"):
        parse(("\n".join(chain) + "\nrelations: []\n").encode(), "f")


def test_error_names_file_and_line() -> None:
    with pytest.raises(FileUnreadable, match="^kb/f.yaml:3: "):
        parse(b"- {s: a, p: informs, o: b}\n# c\n- *x\n", "kb/f.yaml")


# --- changing what is there ----------------------------------------------------------------------------------

BLOCK = "# head\n- s: A lesson # s\n  p: applies_to\n  o: 'a.py'\n  u: {u}   # hm\n  x: kept\n# tail\n"


@pytest.mark.parametrize("quote", ["", '"', "'"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_used_day_changes_in_place_with_its_quotes(quote: str, newline: str, bom: str) -> None:
    before = bom + BLOCK.format(u=f"{quote}2026-01-01{quote}").replace("\n", newline)
    assert changed(before, A) == before.replace("2026-01-01", "2026-06-10")


def test_same_change_twice_changes_nothing_more() -> None:
    once = changed(BLOCK.format(u="2026-01-01"), A, B)
    assert changed(once, A, B) == once


def test_missing_day_is_not_touched_by_a_change_without_one() -> None:
    text = "- {s: A lesson, p: applies_to, o: a.py}\n"
    assert changed(text, Relation("A lesson", "applies_to", "a.py", DAY, None)) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- s: A lesson\n  p: applies_to\n  o: a.py  # c\n",
            '- s: A lesson\n  p: applies_to\n  o: a.py  # c\n  u: "2026-06-10"\n',
        ),
        ("- s: A lesson\n  p: applies_to\n  o: a.py", '- s: A lesson\n  p: applies_to\n  o: a.py\n  u: "2026-06-10"'),
        (
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u:\n",
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: 2026-06-10\n",
        ),
        (
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: # c\n",
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: 2026-06-10 # c\n",
        ),
        (
            "-   c: 2026-01-01\n    s: A lesson\n    p: applies_to\n    o: |-\n      a.py\n",
            "-   c: 2026-01-01\n    s: A lesson\n    p: applies_to\n    u: 2026-06-10\n    o: |-\n      a.py\n",
        ),
        (
            "-\n  s: A lesson\n  p: applies_to\n  o: a.py\n",
            '-\n  s: A lesson\n  p: applies_to\n  o: a.py\n  u: "2026-06-10"\n',
        ),
        ("- {s: A lesson, p: applies_to, o: a.py}\n", '- {s: A lesson, p: applies_to, o: a.py, u: "2026-06-10"}\n'),
        (
            "- { s: A lesson, p: applies_to, o: a.py, }\n",
            '- { s: A lesson, p: applies_to, o: a.py, u: "2026-06-10", }\n',
        ),
        (
            '[{"s": "A lesson", "p": "applies_to", "o": "a.py"}]',
            '[{"s": "A lesson", "p": "applies_to", "o": "a.py", "u": "2026-06-10"}]',
        ),
        (
            "- {s: A lesson, p: applies_to, o: a.py, u: &d !!str 2026-01-01}\n",
            "- {s: A lesson, p: applies_to, o: a.py, u: &d !!str 2026-06-10}\n",
        ),
        (
            "- {s: q, p: informs, o: r, u: &d 2026-01-01}\n- {s: A lesson, p: applies_to, o: a.py, u: *d}\n",
            "- {s: q, p: informs, o: r, u: &d 2026-01-01}\n- {s: A lesson, p: applies_to, o: a.py, u: 2026-06-10}\n",
        ),
        (
            "- {s: A lesson, p: applies_to, o: a.py, u: soon}\n",
            "- {s: A lesson, p: applies_to, o: a.py, u: 2026-06-10}\n",
        ),
    ],
)
def test_used_day_is_set_in_the_manner_of_its_item(before: str, after: str) -> None:
    assert changed(before, A) == after


def test_both_of_two_equal_items_change() -> None:
    item = "- {s: A lesson, p: applies_to, o: a.py, u: 2026-01-01}\n"
    assert changed(item * 2, A) == item.replace("2026-01-01", "2026-06-10") * 2


EXPIRED = Relation("A lesson", "applies_to", "a.py", None, None, DAY)


@pytest.mark.parametrize(
    ("live", "expired"),
    [
        (
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: 2026-01-01\n",
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: 2026-01-01\n  e: 2026-06-10\n",
        ),
        (
            "- s: A lesson\n  p: applies_to\n  o: 'a.py'",
            "- s: A lesson\n  p: applies_to\n  o: 'a.py'\n  e: \"2026-06-10\"",
        ),
        (
            "- {s: A lesson, p: applies_to, o: a.py, c: 2026-01-01}\r\n",
            "- {s: A lesson, p: applies_to, o: a.py, c: 2026-01-01, e: 2026-06-10}\r\n",
        ),
        (
            "-\r\n  s: A lesson\r\n  p: applies_to\r\n  o: a.py\r\n# c",
            '-\r\n  s: A lesson\r\n  p: applies_to\r\n  o: a.py\r\n  e: "2026-06-10"\r\n# c',
        ),
    ],
)
def test_expiry_comes_and_goes_without_a_trace(live: str, expired: str) -> None:
    assert changed(live, EXPIRED) == expired
    assert changed(expired, Relation("A lesson", "applies_to", "a.py", None, None)) == live


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- e: '2026-01-01'\n  s: A lesson\n  p: applies_to\n  o: a.py\n",
            "- e: null\n  s: A lesson\n  p: applies_to\n  o: a.py\n",
        ),
        (
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  e: 2026-01-01 # why\n",
            "- s: A lesson\n  p: applies_to\n  o: a.py\n  e: null # why\n",
        ),
        (
            "- {e: 2026-01-01, s: A lesson, p: applies_to, o: a.py}\n",
            "- {e: null, s: A lesson, p: applies_to, o: a.py}\n",
        ),
    ],
)
def test_expiry_that_shares_its_place_becomes_null(before: str, after: str) -> None:
    assert changed(before, Relation("A lesson", "applies_to", "a.py", None, None)) == after
    assert relations(after)[0].e is None


def test_revival_takes_the_expiry_out_and_sets_the_day() -> None:
    before = "- s: A lesson\n  p: applies_to\n  o: a.py\n  e: 2026-01-01\n"
    assert changed(before, A) == "- s: A lesson\n  p: applies_to\n  o: a.py\n  u: 2026-06-10\n"


# --- adding --------------------------------------------------------------------------------------------------

NEW = '- s: "A lesson"\n  p: applies_to\n  o: "a.py"\n  c: "2026-06-10"\n  u: "2026-06-10"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW + "\n"),
        ("# c", f"# c\n{NEW}\n"),
        ("---\n", f"---\n{NEW}\n"),
        ("[]\n", f"{NEW}\n"),
        ("[]  # c\n", f"  # c\n{NEW}\n"),
        ("relations: []\n", "relations:\n  " + NEW.replace("\n", "\n  ") + "\n"),
        ("relations: [] # c\nz: 1\n", "relations:  # c\n  " + NEW.replace("\n", "\n  ") + "\nz: 1\n"),
        ("relations:\r\n# c\r\n", "relations:\r\n  " + NEW.replace("\n", "\r\n  ") + "\r\n# c\r\n"),
        ("relations: null\n", "relations:\n  " + NEW.replace("\n", "\n  ") + "\n"),
        (
            '{"relations": []}',
            '{"relations": [{"s": "A lesson", "p": "applies_to", "o": "a.py", "c": "2026-06-10", "u": "2026-06-10"}]}',
        ),
        (
            "relations: [\n  # c\n]\n",
            'relations: [{s: "A lesson", p: applies_to, o: "a.py", c: "2026-06-10", u: "2026-06-10"}\n  # c\n]\n',
        ),
    ],
)
def test_first_relation_makes_the_list(before: str, after: str) -> None:
    assert changed(before, A) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- s: q\n  p: informs\n  o: r # c\n# tail\n",
            "- s: q\n  p: informs\n  o: r # c\n"
            + NEW.replace('"A lesson"', "A lesson").replace('"a.py"', "a.py")
            + "\n# tail\n",
        ),
        (
            '- s: "q"\n  p: "informs"\n  o: "r"',
            '- s: "q"\n  p: "informs"\n  o: "r"\n' + NEW.replace("applies_to", '"applies_to"'),
        ),
        (
            "relations:\n    -   s: 'q'\n        p: informs\n        o: 'r'\n        u: 2026-01-01\n\nz: 1\n",
            "relations:\n    -   s: 'q'\n        p: informs\n        o: 'r'\n        u: 2026-01-01\n"
            "    -   s: 'A lesson'\n        p: applies_to\n        o: 'a.py'\n        c: 2026-06-10\n"
            "        u: 2026-06-10\n\nz: 1\n",
        ),
        (
            "- {s: q, p: informs, o: r, u: 2026-01-01}\n...\n",
            "- {s: q, p: informs, o: r, u: 2026-01-01}\n"
            "- {s: A lesson, p: applies_to, o: a.py, c: 2026-06-10, u: 2026-06-10}\n...\n",
        ),
        (
            '[\n  {"s": "q", "p": "informs", "o": "r"} # d\n]\n',
            '[\n  {"s": "q", "p": "informs", "o": "r"}, # d\n'
            '  {"s": "A lesson", "p": "applies_to", "o": "a.py", "c": "2026-06-10", "u": "2026-06-10"}\n]\n',
        ),
        (
            '[\n  {"s": "q", "p": "informs", "o": "r"},\n]\n',
            '[\n  {"s": "q", "p": "informs", "o": "r"},\n'
            '  {"s": "A lesson", "p": "applies_to", "o": "a.py", "c": "2026-06-10", "u": "2026-06-10"},\n]\n',
        ),
        (
            "[{s: q, p: informs, o: r}]\n",
            '[{s: q, p: informs, o: r}, {s: A lesson, p: applies_to, o: a.py, c: "2026-06-10", u: "2026-06-10"}]\n',
        ),
        (
            "- s: q\n  p: informs\n  o: |\n    r\n\n# tail\n",
            "- s: q\n  p: informs\n  o: |\n    r\n\n" + NEW.replace('"A lesson"', "A lesson") + "\n# tail\n",
        ),
    ],
)
def test_new_item_follows_the_manner_of_the_last(before: str, after: str) -> None:
    assert changed(before, A) == after


@pytest.mark.parametrize("predicate", PREDICATES)
def test_each_predicate_can_be_written(predicate: str) -> None:
    new = Relation("a", predicate, "b", DAY, DAY)
    assert relations(changed("", new)) == (new,)


def test_hostile_names_come_back_as_they_are() -> None:
    names = [
        "a\nb",
        "\u2028",
        "\x85",
        "\x00\x07\x7f",
        "\ufeff",
        "\ufffe",
        "😀",
        "'\"\\",
        "- x",
        "{a: b}",
        "#",
        "a: ",
        "&x",
        "*x",
        "%x",
        "\t",
    ]
    for name in names:
        for text in ("", "- {s: 'q', p: 'informs', o: 'r'}\n", "- s: q\n  p: informs\n  o: r\n"):
            new = Relation(f"x{name}y", "informs", f"{name}z", DAY, DAY)
            assert relations(changed(text, new))[-1] == new


# --- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        Relation("a", "reminds_of", "b", DAY, DAY),
        Relation("a", "", "b", DAY, DAY),
        Relation("", "informs", "b", DAY, DAY),
        Relation("a", "informs", " \n", DAY, DAY),
        Relation("a\udcff", "informs", "b", DAY, DAY),
        Relation("a", "requires", "A", DAY, DAY),
    ],
)
def test_new_relation_that_breaks_a_rule_is_refused(change: Relation) -> None:
    with pytest.raises(Refused):
        upsert(b"", [A, change], "f")


CHAIN = "- {s: a, p: requires, o: b}\n- {s: B, p: extends, o: c}\n- {s: c, p: supersedes, o: a, e: 2026-01-01}\n"


def test_closing_a_cycle_over_three_predicates_is_refused() -> None:
    with pytest.raises(Refused, match="c → a → b → c"):
        upsert(CHAIN.encode(), [Relation("c", "extends", "a", DAY, DAY)], "f")


def test_reviving_into_a_cycle_is_refused_and_touching_it_expired_is_not() -> None:
    with pytest.raises(Refused, match="cycle"):
        upsert(CHAIN.encode(), [Relation("c", "supersedes", "a", None, DAY)], "f")
    assert "u: 2026-06-10" in changed(CHAIN, Relation("c", "supersedes", "a", None, DAY, OLD))


def test_cycle_that_a_person_wrote_does_not_stop_other_changes() -> None:
    text = "- {s: a, p: requires, o: b, u: 2026-01-01}\n- {s: b, p: requires, o: a, u: 2026-01-01}\n"
    assert changed(text, Relation("a", "requires", "b", None, DAY)) == text.replace("2026-01-01", "2026-06-10", 1)
    assert len(relations(changed(text, A))) == 3


def test_two_new_relations_that_close_a_cycle_together_are_refused() -> None:
    with pytest.raises(Refused, match="cycle"):
        upsert(b"", [Relation("a", "requires", "b", DAY, DAY), Relation("b", "requires", "a", DAY, DAY)], "f")


def test_long_chain_is_searched_without_recursion() -> None:
    chain = "".join(f"- {{s: n{i}, p: requires, o: n{i + 1}}}\n" for i in range(5000))
    with pytest.raises(Refused, match="cycle"):
        upsert(chain.encode(), [Relation("n5000", "extends", "n0", DAY, DAY)], "f")


@pytest.mark.parametrize(
    "text",
    [
        "- {s: A lesson, p: applies_to, o: a.py, u: &d 2026-01-01}\n- {s: q, p: informs, o: r, u: *d}\n",
        "- ? s\n  : A lesson\n  p: applies_to\n  o: a.py\n",
        "relations: &r\n- {s: A lesson, p: applies_to, o: a.py, u: 2026-01-01}\ncopy: *r\n",
        "- {s: A lesson, p: applies_to, o: a.py, u: [1]}\n",
    ],
)
def test_form_that_would_change_more_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        upsert(text.encode(), [A], "f")


# --- removing ------------------------------------------------------------------------------------------------


def test_removed_item_goes_with_its_lines_and_comments_between_stay() -> None:
    text = "# head\n- s: A lesson\n  p: applies_to\n  o: a.py # x\n# between\n- {s: q, p: informs, o: r}\n"
    assert remove(text.encode(), [A], "f") == b"# head\n# between\n- {s: q, p: informs, o: r}\n"


@pytest.mark.parametrize("gone", ["a", "b", "c", "ab", "bc", "ac", "abc", "z", ""])
@pytest.mark.parametrize(
    "form",
    [
        "[{s: %s, p: informs, o: x}, {s: %s, p: informs, o: x} ,{s: %s, p: informs, o: x}]\n",
        "- {s: %s, p: informs, o: x}\n" * 3,
    ],
)
def test_what_is_not_removed_stays_in_order(form: str, gone: str) -> None:
    removed = [Relation(name, "informs", "x", None, None) for name in gone]
    after = remove((form % tuple("abc")).encode(), removed, "f")
    assert [relation.s for relation in relations(after)] == [name for name in "abc" if name not in gone]
    assert [relation.s for relation in relations(upsert(after, [A], "f"))][-1] == "A lesson"


def test_comment_at_a_comma_is_not_removed_with_an_item() -> None:
    text = "[{s: q, p: informs, o: r}, # mine\n {s: A lesson, p: applies_to, o: a.py}]\n"
    with pytest.raises(Refused):
        remove(text.encode(), [A], "f")
