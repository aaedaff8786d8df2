"""`kbd context` and `kbd suppressed` by command."""

import json
import os
import subprocess

import pytest

from tests.cli.shelves import LESSONS, read
from tests.cli.world import World

LOG = "2026-06-10 10:00 fixed src/net.py: lock fd leaked on exception path, so the worker waited\n"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """A world that is read once and only looked at."""
    return read(World(tmp_path_factory.mktemp("kb")))


def titles(answer):
    return [one["title"] for one in answer["entries"]]


def test_context_is_markdown_between_marks_with_handles(kb):
    out = kb.run("context").stdout
    lines = out.splitlines()
    assert (lines[0], lines[-1]) == ("<!-- kbd:context -->", "<!-- /kbd -->")
    item = "- [k-aygzpx] [guideline] **Store timestamps in UTC** — convert where a person reads it (2026-05-02)"
    assert f"{item}\n  a second line\n" in out
    assert "<!-- ref" not in out
    assert "Retry storm" not in out


def test_entry_cited_while_working_on_a_file_comes_first_for_that_file(world):
    read(world, log=LOG)
    assert titles(world.answer("context", "--file", "src/net.py"))[0] == "Lock fd leaked on exception path"


def test_file_is_known_by_any_spelling_and_from_another_work_tree(world, tmp_path, monkeypatch):
    read(world, log=LOG)
    repository, tree = tmp_path / "project", tmp_path / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repository)]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "other", str(tree)], check=True)
    (tree / "src").mkdir()
    monkeypatch.chdir(tree / "src")
    for spelling in (
        "net.py",
        "./net.py",
        "../src/net.py",
        str(tree / "src/net.py"),
        str(repository / "src" / "net.py"),
    ):
        best = world.answer("context", "--file", spelling)["entries"][0]
        assert (best["title"], best["terms"]["relation"]) == ("Lock fd leaked on exception path", 8.0), spelling


def test_stage_asks_for_its_types(kb):
    assert titles(kb.answer("context", "--stage", "plan")) == ["Chose SQLite over a server"]
    assert set(titles(kb.answer("context", "--stage", "plan", "--type", "process"))) == {
        "Chose SQLite over a server", "Release: build, verify, tag, publish"
    }  # fmt: skip


@pytest.mark.parametrize("args", [("--type", "pitfal"), ("--stage", "party"), ("--base", "other"), ("--budget", "0")])
def test_unknown_choice_is_a_usage_error(kb, args):
    assert kb.run("context", *args).exit_code == 2


def test_query_ranks_what_it_names(kb):
    assert titles(kb.answer("context", "--query", "which timestamps does the sqlite file use?"))[0] in (
        "Store timestamps in UTC", "Chose SQLite over a server"
    )  # fmt: skip
    assert titles(kb.answer("context", "--query", "how to release"))[0] == "Release: build, verify, tag, publish"


def test_budget_is_kept_and_what_did_not_fit_is_told(kb):
    answer = kb.answer("context", "--budget", "110", "--explain")
    assert 0 < answer["tokens"] <= 110 == answer["budget"]
    assert len(answer["entries"]) == 1
    reasons = {one["title"]: one["reason"] for one in answer["suppressed"]}
    assert reasons["Retry storm after an outage"] == "dormant"
    assert "does not fit" in reasons["Chose SQLite over a server"]


def test_budget_under_the_smallest_entry_gives_nothing(kb):
    result = kb.run("context", "--budget", "5")
    assert (result.exit_code, result.stdout) == (0, "")


def test_suppressed_says_why_and_with_context_names_every_entry(kb):
    held = kb.answer("suppressed", "--type", "pitfall")["entries"]
    given = kb.answer("context", "--type", "pitfall")["entries"]
    assert len(held) + len(given) == 5
    assert {one["reason"] for one in held} == {"dormant", "a guideline, not asked for", "a decision, not asked for",
                                                "a process, not asked for"}  # fmt: skip
    assert "dormant" in kb.run("suppressed").stdout


def test_superseded_entry_is_left_out_and_conflict_named(world):
    world.note(".knowledge-graph.yaml", '- {s: k-n0297f, p: supersedes, o: Store timestamps in UTC}\n'
               '- {s: Lock fd leaked on exception path, p: conflicts_with, o: k-n0297f}\n')  # fmt: skip
    read(world)
    out = world.run("context").stdout
    assert "Store timestamps" not in out
    assert "conflicts with [k-n0297f] Chose SQLite over a server" in out
    assert "conflicts with [k-sfyp60] Lock fd leaked on exception path" in out


def test_unreadable_relations_are_said_and_ranking_goes_on(world):
    read(world)
    world.note(".knowledge-graph.yaml", "- {s: a\n")
    result = world.run("context")
    assert "ranked without relations" in result.stderr
    assert "Store timestamps" in result.stdout


def test_explain_shows_the_terms_of_the_sum(world):
    read(world, log=LOG)
    shown = world.run("context", "--file", "src/net.py", "--explain").stdout
    assert all(term in shown for term in ("relation", "recency", "exploration", "tokens"))
    assert " hop " not in shown  # nothing here is related over another entry
    best = world.answer("context", "--file", "src/net.py")["entries"][0]
    assert sum(best["terms"].values()) == pytest.approx(best["score"], abs=1e-5)


def test_explain_names_some_of_what_is_left_out_and_suppressed_all(world):
    books = world.ledger()
    for number in range(30):
        books.entry(f"Lesson number {number} about the queue")
    shown = world.run("context", "--explain", "--budget", "60").stdout.splitlines()
    left = world.run("suppressed", "--budget", "60").stdout.splitlines()[1:]
    assert shown[-1] == f"… and {len(left) - 10} more; `kbd suppressed` names all"
    assert [line.split()[0] for line in shown[-11:-1]] == [line.split()[0] for line in left[:10]]


def test_order_in_the_file_never_shows(world):
    read(world)
    before = [one["handle"] for one in world.answer("context")["entries"]]
    head, *entries = LESSONS.split("\n- ")
    world.note("lessons.md", "\n- ".join([head, *[e.rstrip("\n") for e in reversed(entries)]]) + "\n")
    assert world.run("run", "--once").exit_code == 0
    assert [one["handle"] for one in world.answer("context")["entries"]] == before


def test_words_come_from_the_file_as_it_stands_now(world):
    read(world)
    decision = "- [decision] **Chose SQLite over a server** — one process writes (2026-04-11)\n"
    changed = LESSONS.replace("close it in finally", "close it at once").replace(decision, "")
    world.note("lessons.md", "# New top\n\nmore\n\n" + changed)
    out = world.run("context").stdout
    assert "close it at once" in out
    assert "Chose SQLite" not in out
    held = {one["title"]: one["reason"] for one in world.answer("suppressed")["entries"]}
    assert held["Chose SQLite over a server"] == "no longer found in its file"


def test_context_changes_no_counter(world):
    read(world)
    before = world.run("list", "--all", "--json").stdout
    for _ in range(3):
        world.run("context", "--file", "src/net.py", "--query", "lock")
    assert world.run("run", "--once").exit_code == 0
    assert world.run("list", "--all", "--json").stdout == before


def test_base_of_another_project_is_not_told(world, tmp_path, monkeypatch):
    inside = tmp_path / "mine"
    inside.mkdir()
    config = world.root / "config.yaml"
    config.write_text(config.read_text().replace('["kb/*.md"]', f'["kb/*.md"]\n    projects: ["{inside}"]'))
    read(world)
    monkeypatch.chdir(tmp_path)
    assert world.answer("context")["entries"] == []
    assert len(world.answer("context", "--base", "lessons")["entries"]) == 4
    monkeypatch.chdir(inside)
    assert len(world.answer("context")["entries"]) == 4


def test_before_the_first_pass_there_is_nothing_to_hand_out(world):
    world.note("lessons.md", LESSONS)
    result = world.run("context")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing was read yet" in result.stderr
    assert json.loads(world.run("context", "--json").stdout)["entries"] == []


def test_rank_of_an_entry_is_shown(kb):
    rank = kb.answer("show", "Store timestamps")["rank"]
    assert (1 <= rank["place"] <= 4, rank["of"]) == (True, 4)
    assert kb.answer("show", "Retry storm")["rank"] is None


def test_hostile_file_names_do_no_harm(kb):
    for name in ("", "/", "..", "~", "a\x00b", "x" * 5000, "\udcff", "C:\\x\\y.py"):
        assert kb.run("context", "--file", os.fsencode(name).decode("utf-8", "surrogateescape")).exit_code == 0, name
