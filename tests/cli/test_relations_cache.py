"""A relations file is parsed once, and its copy never outlives it."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbd.core.model import Problem, Relation
from kbd.store.relations_cache import Copy, identity_of, keep, recall

RELATIONS = (Relation("a", "informs", "数据", date(2026, 1, 1), None, None),)
PROBLEMS = (Problem("unknown_key", "x:1", "what", "hint"),)
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text("[]")
    return str(file)


def kept(folder, path):
    return keep(folder, Copy(identity_of(path), RELATIONS, PROBLEMS), LATER)


def test_what_was_kept_is_recalled(tmp_path, path):
    assert kept(tmp_path, path)
    copy = recall(tmp_path, path)
    assert (copy.relations, copy.problems) == (RELATIONS, PROBLEMS)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: Path(p).write_text("[] "),
        lambda p: os.utime(p, ns=(1, 1)),
        lambda p: os.remove(p),
        lambda p: (Path(p + "2").write_text("[]"), os.replace(p + "2", p)),
    ],
)
def test_any_change_of_the_file_ends_the_copy(tmp_path, path, change):
    kept(tmp_path, path)
    change(path)
    assert recall(tmp_path, path) is None


def test_a_file_that_changed_just_now_is_not_kept(tmp_path, path):
    assert not keep(tmp_path, Copy(identity_of(path), RELATIONS, ()), datetime.now(UTC))
    assert recall(tmp_path, path) is None


@pytest.mark.parametrize("text", ["", "{}", "[", '{"identity": [], "relations": [], "problems": []}'])
def test_a_damaged_copy_is_none(tmp_path, path, text):
    kept(tmp_path, path)
    [copy] = (tmp_path / "relations").iterdir()
    copy.write_text(text)
    assert recall(tmp_path, path) is None


def test_without_a_place_to_write_nothing_is_kept(tmp_path, path):
    assert not kept(tmp_path / "gone", path)


def test_text_that_json_cannot_hold_is_not_kept(tmp_path, path):
    assert not keep(tmp_path, Copy(identity_of(path), (Relation("\udcff", "informs", "b", None, None),), ()), LATER)
    assert list((tmp_path / "relations").iterdir()) == [] if (tmp_path / "relations").exists() else True


def test_commands_see_the_new_relations_after_a_change(world):
    world.ledger().entry("A title that is long enough")
    graph = world.root / "kb" / ".knowledge-graph.yaml"
    long_ago = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    for number in (1, 2, 3):
        graph.write_text("".join(f"- {{s: a, p: informs, o: b{n}}}\n" for n in range(number)))
        os.utime(graph, (long_ago, long_ago))
        assert world.answer("status")["relations"]["total"] == number
        assert world.answer("status")["relations"]["total"] == number
