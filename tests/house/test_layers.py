"""Imports go downwards only, for modules import-linter has not been told of, too."""

import pytest

from tests.house.source_code import dotted_name, imports, modules, shown

LAYERS = ["errors", "core", "sources", "store", "service"]
EDGE = len(LAYERS)


def layer(name: str) -> int:
    """Return the height of a kbd module; whatever is no layer's package stands at the edge."""
    part = (name.split(".") + [""])[1]
    return LAYERS.index(part) if part in LAYERS else EDGE


def imported_modules(path):
    names = {dotted_name(module) for module in modules()}
    for name in imports(path):
        if name.partition(".")[0] == "kbd":
            yield name if name in names else name.rpartition(".")[0]


@pytest.mark.parametrize("path", modules(), ids=shown)
def test_module_imports_nothing_above_it(path):
    height = layer(dotted_name(path))
    version_only = {"kbd"}  # the package itself holds the version and imports nothing
    assert [name for name in imported_modules(path) if layer(name) > height and name not in version_only] == []


def test_package_itself_imports_nothing():
    assert list(imports(modules()[0].parent / "__init__.py")) == []


@pytest.mark.parametrize("path", [path for path in modules() if layer(dotted_name(path)) == 4], ids=shown)
def test_no_use_case_imports_another(path):
    own = dotted_name(path).split(".")[:3]
    others = [name for name in imported_modules(path) if layer(name) == 4 and name != "kbd.service"]
    assert [name for name in others if name.split(".")[:3] != own] == []
