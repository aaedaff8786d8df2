"""What commands that must answer at once do not import: it costs more than their answer."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "ahocorasick",
    "watchdog",
    "rich",
    "difflib",
    "traceback",
    "kbd.core.cite",
    "kbd.store.rewrite",
    "kbd.sources.text",
    "kbd.engine",
)


@pytest.mark.parametrize("module", ["kbd.cli.main", "kbd.cli.health", "kbd.cli.seeing"])
def test_status_and_list_import_neither_matcher_nor_writer(module: str) -> None:
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*HEAVY} & {*json.loads(done.stdout)}


def test_a_question_to_the_graph_imports_neither_contracts_nor_writer() -> None:
    code = "import json, sys, kbd.cli.graph.asking; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {*HEAVY, "kbd.core.contracts", "kbd.store.ledger.lessons"} - {"difflib"}  # names the nearest name
    assert not heavy & {*json.loads(done.stdout)}
