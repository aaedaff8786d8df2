"""The README's example of a source is one that works."""

import re
from pathlib import Path
from types import ModuleType

from source_lines import NOON, at, kinds, messages, run, texts

from kbd.sources.contract import SourceFormat

README = Path(__file__).parents[2] / "README.md"


def example() -> SourceFormat:
    code = re.search(r"```python\n(.*?)```", README.read_text().partition("## Add a source")[2], re.DOTALL)
    assert code is not None
    module = ModuleType("example")
    exec(compile(code[1], "README.md", "exec"), module.__dict__)
    found: SourceFormat = module.FORMAT
    return found


def test_the_example_reads_what_it_says() -> None:
    said = {"id": "m1", "session": "S", "time": at(0), "who": "agent", "text": "R"}
    decoded = run(example(), "a.example.jsonl", [said, {**said, "who": "user"}, {"x": 1}], stops=frozenset([0]))
    assert texts(decoded) == ["R"]
    assert kinds(decoded) == ["message", "recognised", "unknown"]
    assert messages(decoded)[0].at == NOON
    assert example().agent == "example"
    assert example().file_kind("a.example.jsonl") is not None
