"""What the README says is what the code does."""

import ast
import re

import msgspec
import pytest

from kbd import errors
from kbd.config.sections import AGENTS, BaseConfig, Document, GraphConfig, SourceConfig
from tests.house.source_code import PROJECT, modules, shown, tree

README = (PROJECT / "README.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table under a heading."""
    section = re.split(r"^#+ ", README.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def error_classes(kind: type[errors.KbdError] = errors.KbdError) -> set[type[errors.KbdError]]:
    return {kind}.union(*(error_classes(sub) for sub in kind.__subclasses__() if sub.__module__ == errors.__name__))


def test_exit_codes_are_those_of_the_errors():
    documented = {name: int(code) for code, _, names in rows("Exit codes") for name in words(names)}
    raised = error_classes() - {errors.KbdError}
    assert documented == {error.__name__: error.exit_code for error in raised}


def test_exit_codes_are_each_explained_once():
    codes = [int(row[0]) for row in rows("Exit codes")]
    assert codes == sorted(set(codes))
    assert {error.exit_code for error in error_classes()} <= set(codes)
    assert all(meaning for _, meaning, _ in rows("Exit codes"))


def section_keys() -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for field in msgspec.structs.fields(Document):
        is_section = isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
        keys[field.name] = set(field.type.__struct_fields__) if is_section else set()
    lists = {"bases": BaseConfig, "bases.graph": GraphConfig, "sources": SourceConfig}
    return keys | {name: set(struct.__struct_fields__) for name, struct in lists.items()}


def test_configuration_keys_are_those_of_the_code():
    documented = {name: words(keys) for section, keys in rows("Configuration") for name in words(section)}
    assert documented == section_keys()


def test_agents_are_those_of_the_code():
    named = README.partition("\nAgents: ")[2].partition(".\n")[0]
    assert set(re.split(r",\s+", named)) == AGENTS


def codes_in(path) -> set[str]:
    """Return the codes that a module gives to a `Problem` literally."""
    calls = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and node.args)
    first = (call.args[0] for call in calls if ast.unparse(call.func).rpartition(".")[2] == "Problem")
    return {str(node.value) for node in first if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("path", [path for path in modules() if codes_in(path)], ids=shown)
def test_codes_of_the_code_are_documented(path):
    tables = (*rows("Reasons in `status`"), *rows("Problems"))
    documented = {code for row in tables for code in words(row[0])}
    assert codes_in(path) - documented == set()


def test_codes_are_documented_once():
    for heading in ("Reasons in `status`", "Problems"):
        codes = [code for row in rows(heading) for code in words(row[0])]
        assert codes == list(dict.fromkeys(codes))
        assert codes
