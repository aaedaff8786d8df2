"""`kbd adopt` as a command: diff, yes, target, relations, dates from git, undo."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import date
from pathlib import Path

import pytest

from kbd.cli.adding import shelving_of
from kbd.cli.adopting import adopt_file
from kbd.cli.session import Session
from kbd.config import load_config
from kbd.core.adopt.lesson import Reading
from kbd.core.headline import DEFAULT_TYPES
from kbd.errors import ChangedUnderneath
from kbd.service.adopting import Wish, adopt, propose
from kbd.store.locks import InstanceLock, Locks
from tests.cli.world import World

FILES = Path(__file__).parent / "files"
PLAIN = "# Notes\n\n- Close the lock descriptor in finally\n- [ ] a task that is open\n"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    for ledger in world.opened:
        ledger.close()


def place(world: World, name: str, text: str | bytes) -> Path:
    path = world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_nothing_is_written_without_a_yes(world):
    path = place(world, "kb/notes.md", PLAIN)
    asked = world.run("adopt", str(path))
    dry = world.run("adopt", str(path), "--dry-run")
    assert (asked.exit_code, dry.exit_code, path.read_text()) == (2, 0, PLAIN)
    assert "+- [guideline] **Close the lock descriptor in finally**" in dry.stdout
    assert "left: line 4 (a task): - [ ] a task that is open" in dry.stdout


def test_items_outside_the_lessons_under_headings_are_named(world):
    text = "# Notes\n\n- check the lock file first\n\n## 2026-05-01 The pool was drained\n\nText.\n\n- its own item\n"
    answer = world.answer("adopt", str(place(world, "kb/notes.md", text)), "--dry-run")
    why = "under no heading of a lesson"
    assert answer["sources"][0]["left"] == [{"line": 3, "why": why, "text": "- check the lock file first"}]


def test_entries_are_listed_once_adopted_and_undo_gives_the_bytes_back(world):
    path = place(world, "kb/notes.md", PLAIN)
    world.run("run", "--once")
    assert world.run("adopt", str(path), "--yes").exit_code == 0
    assert [one["title"] for one in world.answer("list")["entries"]] == ["Close the lock descriptor in finally"]
    assert world.run("undo").exit_code == 0
    assert path.read_text() == PLAIN


def test_second_run_changes_nothing(world):
    path = place(world, "kb/notes.md", PLAIN)
    world.run("adopt", str(path), "--yes")
    once = path.read_bytes()
    again = world.answer("adopt", str(path), "--yes")
    assert (again["written"], again["sources"][0]["adopted"], path.read_bytes()) == (False, [], once)


def test_folder_of_notes_goes_into_a_file_and_stays_as_it_is(world):
    note = (FILES / "claude-memory.md").read_bytes()
    place(world, "mem/one.md", note)
    place(world, "mem/MEMORY.md", "- [One](one.md) — the index\n")
    target = place(world, "kb/lessons.md", "# Base\n")
    answer = world.answer("adopt", str(world.root / "mem"), "--into", "lessons.md", "--yes")
    assert [source["dialect"] for source in answer["sources"]] == ["claude-memory"]
    assert "**Integration tests must hit a real database, never mocks**" in target.read_text()
    assert (world.root / "mem/one.md").read_bytes() == note


def test_foreign_notes_are_not_changed_in_place(world):
    path = place(world, "mem/one.md", (FILES / "claude-memory.md").read_bytes())
    assert world.run("adopt", str(path), "--yes").exit_code == 2
    assert world.run("adopt", str(path.parent), "--yes").exit_code == 2


def test_target_outside_the_base_is_refused(world):
    path = place(world, "notes.md", PLAIN)
    outside = place(world, "other.md", "# Other\n")
    (world.root / "kb" / "link.md").symlink_to(outside)
    assert world.run("adopt", str(path), "--into", str(outside.with_name("new.md")), "--yes").exit_code == 6
    assert world.run("adopt", str(path), "--into", str(world.root / "kb/x-archive.md"), "--yes").exit_code == 6


def test_relations_come_along_and_those_against_the_rules_are_named(world):
    text = (FILES / "basic-memory.md").read_text() + "- requires [[Coffee Service]]\n"
    path = place(world, "kb/coffee.md", text)
    answer = world.answer("adopt", str(path), "--yes")
    assert [one["p"] for one in answer["relations"]] == ["informs", "requires"]
    assert [one["o"] for one in answer["refused"]] == ["Coffee Service"]
    assert "Order Service" in (world.root / "kb/.knowledge-graph.yaml").read_text()


@pytest.mark.parametrize(
    "held", [None, "relations:\n  - {s: one, p: informs, o: two}\n", "# mine\n- s: one\n  p: informs\n  o: two\n"]
)
def test_undo_takes_the_relations_back_as_well(world, held):
    path = place(world, "kb/coffee.md", (FILES / "basic-memory.md").read_bytes())
    graph, before = world.root / "kb/.knowledge-graph.yaml", path.read_bytes()
    if held is not None:
        graph.write_text(held)
    world.run("run", "--once")
    assert len(world.answer("adopt", str(path), "--yes")["relations"]) == 2
    assert world.run("undo").exit_code == 0
    assert path.read_bytes() == before
    assert (graph.read_text() if graph.exists() else None) == held
    assert world.run("undo").exit_code == 2


def test_undo_takes_relations_back_that_were_used_since_and_leaves_those_of_others(world):
    path = place(world, "kb/coffee.md", (FILES / "basic-memory.md").read_bytes())
    graph = world.root / "kb/.knowledge-graph.yaml"
    world.run("run", "--once")
    first, _ = world.answer("adopt", str(path), "--yes")["relations"]
    graph.write_text(graph.read_text().replace("2026", "2027") + "- {s: mine, p: informs, o: other}\n")
    result = world.run("undo")
    assert result.exit_code == 0, result.output
    assert first["s"] not in graph.read_text()
    assert graph.read_text().strip() == "- {s: mine, p: informs, o: other}"


def test_undo_takes_a_file_away_that_was_made_for_the_entries(world):
    path = place(world, "notes.md", PLAIN)
    world.run("run", "--once")
    assert world.run("adopt", str(path), "--into", str(world.root / "kb/new.md"), "--yes").exit_code == 0
    assert [one["title"] for one in world.answer("list")["entries"]] == ["Close the lock descriptor in finally"]
    assert world.run("undo").exit_code == 0
    assert not (world.root / "kb/new.md").exists()
    assert world.answer("list")["entries"] == []
    assert path.read_text() == PLAIN


def test_undo_knows_what_was_adopted_while_a_daemon_runs(world):
    path = place(world, "notes.md", PLAIN)
    world.run("run", "--once")
    with InstanceLock(world.state):
        assert world.run("adopt", str(path), "--into", str(world.root / "kb/new.md"), "--yes").exit_code == 0
    world.run("run", "--once")
    result = world.run("undo")
    assert result.exit_code == 0, result.output
    assert not (world.root / "kb/new.md").exists()


@pytest.mark.parametrize("meanwhile", [b"- **Written in between** by someone\n", b"<<<<<<< a\n=======\n>>>>>>> b\n"])
def test_what_changed_since_it_was_shown_is_refused_before_a_relation_is_written(world, meanwhile):
    path = place(world, "coffee.md", (FILES / "basic-memory.md").read_bytes())
    target = place(world, "kb/lessons.md", b"# Lessons\n")
    config = load_config(world.root / "config.yaml")
    session = Session(str(world.root / "config.yaml"), str(world.state), None, {"HOME": str(world.root)})
    shelving = shelving_of(session, config.bases[0])
    reading = Reading(DEFAULT_TYPES, config.decay.marker)
    adoption = propose(Wish(str(path), None, str(target), shelving, {}, reading), date(2026, 1, 2))
    assert adoption.relations
    target.write_bytes(meanwhile)
    with pytest.raises(ChangedUnderneath):
        adopt(adoption, shelving, Locks(world.state), time.time())
    assert not (world.root / "kb/.knowledge-graph.yaml").exists()
    assert target.read_bytes() == meanwhile


def test_git_gives_the_dates(world):
    path = place(world, "kb/notes.md", PLAIN)
    env = os.environ | {"GIT_AUTHOR_DATE": "2026-02-03T12:00:00Z", "GIT_COMMITTER_DATE": "2026-02-03T12:00:00Z"}
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "notes"]):
        subprocess.run([*git, *command], cwd=path.parent, env=env, check=True)
    assert world.answer("adopt", str(path), "--yes")["sources"][0]["adopted"][0]["created"] == "2026-02-03"
    assert "**Close the lock descriptor in finally** (2026-02-03)" in path.read_text()


def test_serena_memories_are_told_by_their_folder(world):
    path = place(world, ".serena/memories/style.md", (FILES / "serena.md").read_bytes())
    assert world.answer("adopt", str(path), "--dry-run")["sources"][0]["dialect"] == "serena"


@pytest.mark.parametrize("args", [("none.md",), ("kb",), ("kb/prose.md",), ("kb/prose.md", "--dialect", "none")])
def test_what_cannot_be_adopted_is_a_usage_error(world, args):
    place(world, "kb/prose.md", "Only prose.\n")
    done = world.run("adopt", str(world.root / args[0]), *args[1:], "--yes")
    assert done.exit_code == 2


def test_fifo_is_never_opened(world):
    os.mkfifo(world.root / "pipe.md")
    assert world.run("adopt", str(world.root / "pipe.md"), "--yes").exit_code == 1


def test_title_of_the_base_is_not_added_twice(world):
    place(world, "kb/lessons.md", "- [pitfall] **Close the lock descriptor in finally** (2026-01-01)\n")
    path = place(world, "notes.md", PLAIN)
    answer = world.answer("adopt", str(path), "--into", "lessons.md", "--yes")
    assert answer["sources"][0]["adopted"] == []
    assert "an entry of this title is there already" in {one["why"] for one in answer["sources"][0]["left"]}


def test_command_has_its_name():
    assert adopt_file.name == "adopt"
