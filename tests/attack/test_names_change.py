"""Bases and sources get other names, folders and files in the configuration: no number changes by that."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from kbd.store.ledger import lessons
from tests.attack.lab import ENTRY, NOON, TITLE, Lab

DATED = f"2026-06-10 10:00 as in {TITLE} we close it\n\n"
UNDATED = f"again {TITLE} was the cause\n\n"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.note()
    lab.log(DATED)
    lab.log(UNDATED, "plain.log")
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    assert lab.ref() == 3
    lab.restart()
    return lab


def refs(lab: Lab, base: str) -> list[int]:
    assert lab.engine is not None
    db = lab.engine.frame.ledger.db
    return [row.ref for row in lessons.entries_of(db, lessons.base_id(db, base))]


def test_base_with_another_name_keeps_its_history(lab: Lab) -> None:
    lab.config = lab.config.replace("name: lessons", "name: wisdom")
    lab.say("s2", f"as in {TITLE} we close it")
    lab.run()
    assert refs(lab, "wisdom") == [4]


def test_file_given_to_another_base_is_written_for_that_one_alone(lab: Lab) -> None:
    lab.note("- **Something else entirely** — text\n", "other.md")
    lab.config = lab.config.replace('"kb/*.md"', '"kb/other.md"').replace(
        "sources:", '  - {name: wisdom, files: ["kb/lessons.md"], relations: kb/.other.yaml}\nsources:'
    )
    lab.run()
    lab.say("s2", f"as in {TITLE} we close it", "2026-06-12T09:00:00Z")
    lab.run(NOON + timedelta(days=1))
    assert (lab.root / "kb" / "lessons.md").read_text() == f"{ENTRY}  <!-- ref:4 | last:2026-06-12 | decay:active -->\n"
    assert refs(lab, "wisdom") == [4]
    assert len(refs(lab, "lessons")) == 1


def test_log_source_with_another_name_counts_nothing_twice(lab: Lab) -> None:
    lab.config = lab.config.replace("name: logs", "name: journal")
    lab.run()
    assert lab.ref() == 3
    lab.log(UNDATED, "plain.log")
    lab.log(DATED, "agent.log.1")
    lab.run()
    assert lab.ref() == 3


def test_log_source_with_another_name_and_a_rescan_counts_nothing_twice(lab: Lab) -> None:
    lab.config = lab.config.replace("name: logs", "name: journal")
    lab.run()
    assert lab.engine is not None
    lab.engine.rewind(None)
    lab.run()
    assert lab.ref() == 3


def test_log_source_in_another_folder_counts_nothing_twice(lab: Lab) -> None:
    os.rename(lab.root / "logs", lab.root / "records")
    lab.config = lab.config.replace("path: logs", "path: records")
    lab.run()
    assert lab.ref() == 3


def test_source_of_another_format_under_the_same_name_is_read(lab: Lab) -> None:
    lab.config = lab.config.replace("format: text", "format: chat-jsonl")
    lab.log('{"role": "assistant", "content": "as in ' + TITLE + ' we close it"}\n', "chat.jsonl")
    lab.run()
    assert lab.ref() == 4
