"""Records made to hang or to stop the daemon: each is read in its time, and what stands behind it as well."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.attack.lab import ENTRY, TITLE, Lab

SLOW_SECONDS = 20.0


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        f"- **{TITLE}** " * 20_000,
        "\n".join(f"x - **{TITLE}** y" for _ in range(20_000)),
        ("-" + " " * 900 + f"x {TITLE}") * 2_000,
    ],
    ids=["heads on one line", "heads without an end", "blanks before a title"],
)
def test_edit_of_a_knowledge_file_with_many_titles_is_read_in_linear_time(lab: Lab, text: str) -> None:
    note = lab.note()
    call = {"file_path": str(note), "old_string": "x", "new_string": text}
    content = [{"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": call}]
    lab.say("s1", "", message={"id": "m1", "role": "assistant", "content": content})
    lab.say("s2", f"as in {TITLE} we close it")
    began = time.process_time()
    lab.run()
    assert time.process_time() - began < SLOW_SECONDS
    assert lab.ref() == 1


@pytest.mark.parametrize("seconds", [15_032_385_535, 10**17, -(10**13)])
def test_log_with_a_wild_modification_time_does_not_stop_the_pass(lab: Lab, seconds: int) -> None:
    lab.note()
    path = lab.log(f"as in {TITLE} we close it\n\n")
    try:
        os.utime(path, (seconds, seconds))
    except OSError:
        pytest.skip("the file system holds no such time")
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run(hints=[str(path), str(lab.root / "claude" / "-home-x" / "s1.jsonl")])
    lab.run()
    assert lab.ref() == 2


def test_knowledge_file_with_a_wild_modification_time_does_not_stop_the_pass(lab: Lab) -> None:
    note = lab.note(ENTRY)
    os.utime(note, (15_032_385_535, 15_032_385_535))
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    lab.run()
    assert "ref:1" in note.read_text()
