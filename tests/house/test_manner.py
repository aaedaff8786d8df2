"""Sizes and names that keep the code readable."""

import ast
import re
import statistics

import pytest

from tests.house.source_code import PACKAGE, code_lines, functions, modules, shown, tree

MOST_LINES = 400
MOST_FUNCTION_LINES = 60
VAGUE_NAMES = {"base", "common", "data", "helper", "helpers", "info", "manager", "misc", "util", "utils"}


@pytest.mark.parametrize("path", modules(), ids=shown)
def test_module_is_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", modules(), ids=shown)
def test_no_function_is_long(path):
    long = {function.name: code_lines(function) for function in functions(path)}
    assert {name: lines for name, lines in long.items() if lines > MOST_FUNCTION_LINES} == {}


def test_most_functions_are_small():
    sizes = sorted(code_lines(function) for path in modules() for function in functions(path))
    assert statistics.median(sizes) <= 10
    assert sizes[int(len(sizes) * 0.95)] <= 40


@pytest.mark.parametrize("path", modules(), ids=shown)
def test_module_says_in_its_first_line_what_it_is_for(path):
    docstring = ast.get_docstring(tree(path)) or ""
    assert docstring.partition("\n")[0].endswith((".", ":"))


def test_no_module_has_a_vague_name():
    parts = {part for path in modules() for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert parts & VAGUE_NAMES == set()


@pytest.mark.parametrize("path", modules(), ids=shown)
def test_every_noqa_names_its_rule_and_its_reason(path):
    lines = [line for line in path.read_text().splitlines() if "noqa" in line]
    bare = [line for line in lines if not re.search(r"noqa: \w+(, ?\w+)* - \w", line)]
    assert bare == []
