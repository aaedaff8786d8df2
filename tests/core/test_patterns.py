"""Patterns of a schema match what `re` matches, in bounded time; what cannot be bounded is no pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kbd.core.patterns import MAX_CHARS, PatternFault, compiled
from tests.core.graph_world import asked, create, schema

ATOMS = st.sampled_from(
    [*("a", "b", ".", r"\d", r"\w", r"\W", r"\s", "[ab]", "[^a]", "[]a]", "[^]a]", r"[\]a]", r"[\d-]", "^", "$")]
    + [*(r"\b", r"\B", r"\A", r"\Z", r"\.", r"\x61", r"é", "{", "}", "-", "é", " ", "\n")]
)
REPEATS = st.sampled_from(
    [*("", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,2}", "{,2}", "{2,}", "{0,1}?", "{,}", "{}")]
)
EXPRESSIONS = st.recursive(
    st.tuples(ATOMS, REPEATS).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(st.lists(inner, max_size=2), REPEATS).map(lambda it: f"(?:{'|'.join(it[0])}){it[1]}"),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=300)
@given(EXPRESSIONS, st.lists(st.text("ab.1 \nA]{-é", min_size=1, max_size=7), min_size=1, max_size=4))
def test_an_expression_is_found_where_re_finds_it(expression, texts):
    try:
        known = re.compile(expression)
    except re.error:
        assume(False)
    for text in texts:
        assert compiled(expression).found_in(text) == bool(known.search(text)), text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(a+)+$", "a" * (MAX_CHARS - 1) + "b"),
        ("(a|a)*c", "a" * MAX_CHARS),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * MAX_CHARS),
        (r"(.*)(.*)(.*)(.*)(.*)[^a]", "a" * MAX_CHARS),
        (r"\s+$", " " * (MAX_CHARS - 1) + "x"),
    ],
)
def test_no_text_makes_an_expression_hang(expression, text):
    assert not compiled(expression).found_in(text)
    # What is kept of one text for the next is bounded as well.
    held = compiled(expression)
    assert len(held.closed) + len(held.steps) <= 1000


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "(?=a)",
            "(?!a)b",
            "(?<=a)b",
            "(?<!a)b",
            r"(a)\1",
            "(?P<n>a)(?P=n)",
            "(?i)a",
            "(?>a)",
            "a++",
            "(a",
            "a**",
            "[",
        ),
        *("a{99999999999999999999}", "(?:a{100}){100}", "(" * 50 + ")" * 50, "(" * 5000 + ")" * 5000),
    ],
)
def test_what_cannot_be_bounded_is_no_pattern(expression):
    with pytest.raises(PatternFault):
        compiled(expression)


def test_a_text_too_long_for_a_pattern_is_refused_and_not_looked_at():
    rules = schema("types: {T: {properties: {code: {type: string, pattern: '^a+$'}}}}")
    assert asked(rules, [], create("t", "T", code="a" * MAX_CHARS)).problems == []
    problem = asked(rules, [], create("t", "T", code="a" * (MAX_CHARS + 1))).problems[0]
    assert problem.code == "value_invalid"
    assert "too long for a pattern (10,001 characters)" in problem.what
