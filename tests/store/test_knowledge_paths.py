"""Telling a knowledge file in what a tool call says: texts are looked at word by word only where that can matter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import ToolCall
from kbd.core.shell import paths_in_code
from kbd.core.toolinput import tool_call
from kbd.store.knowledge_paths import KnowledgePaths

CWD = "/w/app"
FILES = ("/w/app/kb/lessons.md", "/w/app/kb/.knowledge-graph.yaml", "/w/app/kb/notes", "/w/kb.d/more.txt")
PIECES = (
    *FILES, "kb/lessons.md", "lessons.md", "../kb.d/more.txt", "kb/notes.", "kb/*", "/w/app/*/lessons.m?", "*.yaml",
    "kb/", "~/lessons.md", "other.md", "src/a.py", "more.txt", "lessons", "see",
    "*", " ", ", ", "\n", "'", "(", ")", ":", ".",
)  # fmt: skip
PATHS = KnowledgePaths(FILES, (), "/home/me")
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(st.lists(texts, max_size=3))
def test_a_text_names_a_file_if_one_of_its_words_does(given_texts: list[str]) -> None:
    named = [path.rstrip(".") for text in given_texts for path in paths_in_code(text)]
    word_by_word = any(PATHS.is_knowledge(path, CWD) for path in named)
    assert PATHS.named_by(ToolCall("Task", "", prose=tuple(given_texts)), CWD) is word_by_word


def test_a_prompt_that_sends_an_agent_to_a_knowledge_file_names_it() -> None:
    asked = tool_call("Task", {"description": "Tidy up", "prompt": "Please rewrite kb/lessons.md, then stop."})
    other = tool_call("Task", {"description": "Tidy up", "prompt": "Please rewrite src/lessons.py, then stop."})
    assert (PATHS.named_by(asked, CWD), PATHS.named_by(other, CWD)) == (True, False)
