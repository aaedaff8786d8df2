"""Constraint expressions: what they say, what they refuse to be, and their three values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.constraint_eval import holds
from kbd.core.constraints import Literal, Name, RuleFault, parse_condition, parse_rule
from kbd.core.operations import Entity


class Alone:
    """No graph around."""

    def named_exist(self, entity, name):
        return entity.properties.get(name) == "p1"

    def has_relation(self, entity, rel, type_):
        return rel == "owner" and type_ in ("", "Person")


def value_of(text, **properties):
    known = {"start", "end", "status"}
    return holds(parse_rule(text, {"Task"}, known).expression, Entity("t1", "Task", properties), Alone())


CASES = [
    ("end >= start", {"end": "2026-01-02", "start": "2026-01-01"}, True),
    ("end >= start", {"end": "2026-01-01", "start": "2026-01-02"}, False),
    ("end >= start", {"start": "2026-01-02"}, None),
    ("end >= start if end exists", {"start": "2026-01-02"}, True),
    ("if end exists: end >= start", {"end": "2026-01-01", "start": "2026-01-02"}, False),
    ("if end exists then end >= start", {"end": "2026-01-03", "start": "2026-01-02"}, True),
    ("end >= start", {"end": "2026-01-01T10:00:00Z", "start": "2026-01-01T10:30:00+02:00"}, True),
    ("end >= start", {"end": "2026-01-01", "start": "noon"}, False),
    ("end >= start", {"end": 3, "start": 2.5}, True),
    ("end >= start", {"end": True, "start": 0}, False),
    ("end > 2026-01-01", {"end": "2026-01-01T00:00:01"}, True),
    ("status = open", {"status": "open"}, True),
    ("status == 'open'", {"status": "done"}, False),
    ("status != done", {}, True),
    ("status != done", {"status": "done"}, False),
    ("status = null", {"status": ""}, True),
    ("status in [open, 'in progress']", {"status": "in progress"}, True),
    ("status not in (open, done)", {"status": "open"}, False),
    ("status in [open]", {}, None),
    ("n = 1", {"n": 1.0}, True),
    ("n = 1", {"n": True}, False),
    ("n = true", {"n": True}, True),
    ("tags contains urgent", {"tags": ["urgent"]}, True),
    ("title contains 'CACHE'", {"title": "the cache"}, True),
    ("due exists", {"due": " "}, False),
    ("due must exist", {"due": "x"}, False),
    ("assignee must exist", {"assignee": "p1"}, True),
    ("not due exists", {}, True),
    ("due not exists", {}, True),
    ("has_relation(owner, Person)", {}, True),
    ("has_relation(blocks) or has_property(a)", {}, False),
    ("a exists and (b exists or c exists)", {"a": 1, "c": 1}, True),
    ("a > 1 and b exists", {}, False),
    ("a > 1 or b exists", {}, None),
    ("a > 1 and b exists", {"b": 1}, None),
    ("Task.a exists", {"a": 0}, True),
    ("Task: a exists", {"a": False}, True),
    ("Created Task has status=open", {"status": "open"}, True),
    ("created < 5", {"created": 3}, True),
    ("id = 't1'", {}, True),
]


@pytest.mark.parametrize(("text", "properties", "expected"), CASES, ids=[f"{t} {p}" for t, p, _ in CASES])
def test_an_expression_has_its_value(text, properties, expected):
    assert value_of(text, **properties) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a >=",
        "a >= b c",
        "(a exists",
        "a in b",
        "a in []",
        "if a exists",
        "a exists exists",
        "1 exists",
        "= 3",
        "a ; b",
        "a.b.c() = 1",
        "not",
        "(" * 100 + "a exists" + ")" * 100,
        "not " * 100 + "a exists",
        "a = " + "9" * 3000,
        "Task.a = 1 and Other: b",
        "lambda: 0",
        "a = b = c",
    ],
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(RuleFault):
        parse_rule(text, {"Task", "Other"})


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_crashes_the_parser(text):
    try:
        parse_condition(text)
    except RuleFault as fault:
        assert str(fault)


def test_a_bare_word_on_the_right_is_text_unless_it_is_a_property():
    assert parse_condition("a = b").right == Literal("b")
    assert parse_condition("a = b", {"b"}).right == Name("b")
    assert parse_condition("a >= b").right == Name("b")


def test_a_rule_about_two_types_is_refused():
    with pytest.raises(RuleFault, match="at once"):
        parse_rule("A.x = 1 and B.y = 2", {"A", "B"})
