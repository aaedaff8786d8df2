"""What the configuration calls a type changes; what stands at a file's path is no file any more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.lab import CONFIG, TITLE, Lab


def test_type_added_to_the_configuration_holds_for_files_that_did_not_change(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note(f"- [gotcha] **{TITLE}** — text of it\n")
    lab.run()
    assert (lab.entries()[0].type, lab.entries()[0].type_source) != ("gotcha", "tag")
    lab.restart()
    lab.config += "types: {gotcha: [trap]}\n"
    lab.run()
    assert (lab.entries()[0].type, lab.entries()[0].type_source) == ("gotcha", "tag")
    assert lab.engine is not None
    assert [r[0] for r in lab.engine.frame.ledger.db.execute("SELECT problems FROM notes")] == ["[]"]
    before = lab.engine.frame.ledger.db.total_changes
    lab.run()
    assert lab.engine.frame.ledger.db.total_changes == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "fifo"])
@pytest.mark.parametrize("glob", ["kb/*.md", "kb/lessons.md"])
def test_entries_of_a_file_replaced_by_something_else_are_unread_and_not_gone(
    tmp_path: Path, glob: str, make: Callable[[Path], None]
) -> None:
    lab = Lab(tmp_path, CONFIG.replace("kb/*.md", glob))
    note = lab.note()
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    text = note.read_text()
    note.unlink()
    make(note)
    report = lab.run()
    assert [(p.code, p.where) for p in report.problems] == [("knowledge_unreadable", str(note))]
    assert lab.ref() == 1
    note.rmdir() if note.is_dir() else note.unlink()
    note.write_text(text)
    assert not lab.run().problems
    assert lab.ref() == 1


def test_transcript_with_two_names_is_counted_once_and_left_alone(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    first = lab.say("s1", f"as in {TITLE} we close it")
    os.link(first, first.with_name("second.jsonl"))
    lab.run()
    lab.run()
    assert lab.engine is not None
    before = lab.engine.frame.ledger.db.total_changes
    lab.run()
    assert lab.ref() == 1
    assert lab.engine.frame.ledger.db.total_changes == before
    first.unlink()
    lab.say("s1", "and more")
    lab.run()
    assert lab.ref() == 1


TORN = (
    b"- [pit\xe8] **Lock fd leaked on exception path** text\n",  # an unknown tag
    b"- **Lock fd leaked on exception** a\n  <!-- ref:\xe8 | last:2026-99-\xe8 | decay:act\xe8 | k\xe8y:v\xe8 -->\n",
    b"- **Lock fd \xe8** a\n- **Lock fd \xe8** b\n- **\xe8** c\n",  # two of one title, and one that never matches
    b"- **Lock fd leaked** [KD07] a\n\n# H\xe8\n\n- [KD07] **Another one that \xe8 long** (2099-01-01\xe8)\n",
    "- [pitfall] **缓存必须有上限** a\n".encode()[:-14] + b"\n",
)


@pytest.mark.parametrize("data", TORN, ids=range(len(TORN)))
def test_bytes_that_are_no_utf8_stop_no_pass_wherever_they_stand(tmp_path: Path, data: bytes) -> None:
    lab = Lab(tmp_path)
    note = lab.note("")
    for at in range(len(data), 0, -3):  # an editor may write in pieces
        note.write_bytes(data[:at])
        lab.run()
    note.write_bytes(data)
    lab.run()
    assert lab.engine is not None
    told = [r[0] for r in lab.engine.frame.ledger.db.execute("SELECT problems FROM notes")]
    assert all(text.isprintable() for text in told)


def test_wording_seen_while_it_was_being_written_makes_no_echo(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note(f"- [pitfall] **{TITLE}** — close it in finally\n")
    lab.run()
    lab.note(f"- [pitfall] **{TITLE}** — now")  # an editor writes in pieces
    lab.run()
    lab.note(f"- [pitfall] **{TITLE}** — nowhere without a test of the fault\n")
    lab.run()
    lab.say("s1", f"As in {TITLE} now we close it.")
    lab.run()
    assert lab.ref() == 1


def test_what_was_read_while_an_entry_was_away_counts_when_it_is_back_however_old(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    lab.run()
    lab.note("# Lessons\n")  # a checkout, or an editor that has written half of the file
    lab.say("s1", f"As in {TITLE} we close it.", at="2026-06-01T09:00:00Z")
    lab.run()
    lab.note()
    lab.run()
    assert lab.ref() == 1


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard", "symbolic"])
def test_a_file_that_two_bases_come_to_share_counts_once(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    second = '  - {name: second, files: ["kb2/*.md"]}\nsources:'
    lab = Lab(tmp_path, CONFIG.replace("sources:", second, 1))
    (tmp_path / "kb2").mkdir()
    note = lab.note()
    lab.run()
    link(note, tmp_path / "kb2" / "shared.md")  # the configuration was checked before
    for number in range(1, 4):
        lab.say(f"s{number}", f"as in {TITLE} we close it")
        report = lab.run()
        assert ("knowledge_unreadable", str(tmp_path / "kb2" / "shared.md")) in {
            (p.code, p.where) for p in report.problems
        }
        assert f"ref:{number} |" in note.read_text()
    (tmp_path / "kb2" / "shared.md").unlink()
    assert not lab.run().problems
