"""The core takes values and gives values: no disk, no clock, no chance, no output."""

import ast
import sys
from pathlib import Path

import pytest

from tests.house.source_code import PACKAGE, imports, modules, shown, tree

CORE = modules(PACKAGE / "core")

# Named by the architecture, and what would bring the same in by another door.
IMPURE = {
    *("os", "io", "pathlib", "time", "logging", "random", "threading", "subprocess", "socket"),
    *("asyncio", "concurrent", "ctypes", "fcntl", "glob", "http", "importlib", "mmap", "multiprocessing", "posix"),
    *("secrets", "select", "shutil", "signal", "sqlite3", "ssl", "tempfile", "urllib"),
}
# PyYAML turns text into nodes, as purely as the core; it stays behind one kind of module.
THIRD_PARTY = {
    "ahocorasick": lambda path: True,
    "yaml": lambda path: "yaml" in path.stem,
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
CLOCKS = {"now", "utcnow", "today"}


def may_import(path: Path, name: str) -> bool:
    package = name.partition(".")[0]
    if package == "kbd":
        return name.startswith(("kbd.core", "kbd.errors"))
    if package in THIRD_PARTY:
        return THIRD_PARTY[package](path)
    return package in sys.stdlib_module_names and package not in IMPURE


def impure_calls(module: ast.Module) -> list[str]:
    """Return calls of impure built-ins, and any mention of a clock, called or handed on."""
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            found.append(f"line {node.lineno}: {node.func.id}()")
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS and _names_a_date(node.value):
            found.append(f"line {node.lineno}: .{node.attr}")
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr", "sys.stdin"}:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def _names_a_date(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in {"datetime", "date"}


@pytest.mark.parametrize("path", CORE, ids=shown)
def test_core_imports_nothing_impure(path):
    assert [name for name in imports(path) if not may_import(path, name)] == []


@pytest.mark.parametrize("path", CORE, ids=shown)
def test_core_calls_nothing_impure(path):
    assert impure_calls(tree(path)) == []


@pytest.mark.parametrize(
    "text",
    ["open('x')", "print(1)", "datetime.now()", "f(datetime.datetime.utcnow)", "date.today()", "sys.stderr.write('')"],
)
def test_the_check_sees_an_impure_call(text):
    assert len(impure_calls(ast.parse(text))) == 1


@pytest.mark.parametrize("name", ["os.path", "pathlib.Path", "yaml", "msgspec", "kbd.store.tail", "bashlex"])
def test_the_check_sees_an_impure_import(name):
    assert not may_import(PACKAGE / "core/match.py", name)
