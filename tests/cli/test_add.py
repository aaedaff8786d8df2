"""`kbd add`, `relate`, `unrelate` and `search` by command."""

import sqlite3
import subprocess
import sys

import pytest
import yaml

from tests.cli.shelves import LESSONS, read

TITLE = "Retry only what is idempotent"


@pytest.fixture
def kb(world, monkeypatch):
    monkeypatch.chdir(world.root)
    return read(world)


def lessons(world):
    return (world.root / "kb" / "lessons.md").read_text()


def relations(world):
    path = world.root / "kb" / ".knowledge-graph.yaml"
    return [(r["s"], r["p"], r["o"], r.get("e")) for r in yaml.safe_load(path.read_text())] if path.exists() else []


def test_entry_is_added_typed_and_dated_and_its_handle_printed(kb):
    done = kb.run("add", TITLE, "a second POST charges twice", "--type", "pitfall")
    assert done.exit_code == 0, done.output
    line = f"- [pitfall] **{TITLE}** — a second POST charges twice (2026-06-11)\n"
    assert lessons(kb).count(line) == 1
    assert lessons(kb).replace(line, "") == LESSONS
    assert done.stdout.strip() == kb.answer("show", TITLE)["handle"]


def test_entry_that_stands_in_its_file_is_no_failure_when_the_ledger_cannot_take_it(kb):
    with sqlite3.connect(kb.state / "ledger.db") as ledger:
        ledger.execute("PRAGMA user_version=99")
    done = kb.run("add", TITLE, "a second POST charges twice")
    assert (done.exit_code, TITLE in lessons(kb)) == (0, True), done.output
    assert "written, but counted from the next pass on: " in done.stderr


def test_entry_is_known_at_once_and_earns_from_today(kb):
    kb.run("add", TITLE, "text")
    assert TITLE in kb.run("context").stdout
    (kb.root / "logs" / "agent.log").write_text(f"2026-06-11 10:00 done as in: {TITLE.lower()}\n")
    kb.run("run", "--once")
    assert kb.answer("show", TITLE)["ref"] == 1


def test_type_comes_from_the_words_if_none_is_given(kb):
    assert kb.answer("add", "We chose trunk based development", "over long branches")["type"] == "decision"


def test_text_may_come_from_stdin(kb):
    command = [sys.executable, "-m", "kbd", *kb.options(), "add", TITLE, "-"]
    done = subprocess.run(command, input=b"first line\nsecond line\n", capture_output=True, cwd=kb.root, check=True)
    assert done.stdout.strip()
    assert f"**{TITLE}** — first line\n  second line (2026-06-11)\n" in lessons(kb)


def test_options_stand_for_arguments(kb):
    assert kb.run("add", "--title", TITLE, "--text", "why", "--type", "PITFALL").exit_code == 0
    assert f"- [pitfall] **{TITLE}** — why" in lessons(kb)


def test_same_or_near_same_title_is_refused_and_named(kb):
    for title in (
        "Store timestamps in UTC",
        "store  **timestamps** in utc.",
        "Store the timestamps in UTC",
        "Retry storms after an outage",
    ):
        done = kb.run("add", title, "other words")
        assert done.exit_code == 6, title
        assert ("k-aygzpx" in done.stderr) is ("UTC" in title.upper())
    assert lessons(kb) == LESSONS


def test_near_same_title_may_be_added_on_purpose_but_never_the_same(kb):
    assert kb.run("add", "Store the timestamps in UTC", "x", "--distinct").exit_code == 0
    assert kb.run("add", "Store timestamps in UTC", "x", "--distinct").exit_code == 6


def test_archived_title_is_refused_with_the_way_back(kb):
    kb.note("lessons-archive.md", "- [pitfall] **An old archived lesson** — x (2025-01-01)\n")
    done = kb.run("add", "An old archived lesson", "x")
    assert done.exit_code == 6
    assert "kbd restore" in done.stderr


def test_secret_is_refused_and_never_printed(kb):
    secret = "AKIAIOSFODNN7EXAMPLE"
    for args in ([TITLE, f"the key is {secret}"], [f"Key {secret} leaks", "x"], [TITLE, "x", "--section", secret],
                 [TITLE, "x", "--applies-to", secret]):  # fmt: skip
        done = kb.run("add", *args)
        assert done.exit_code == 6
        assert secret not in done.output
    assert lessons(kb) == LESSONS


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([], 2),
        (["short"], 6),
        ([TITLE, "x", "too much"], 2),
        ([TITLE, "x", "--type", "pitfal"], 2),
        ([TITLE, "x", "--base", "other"], 2),
        ([TITLE, "<!-- ref:9 | last:none | decay:active -->"], 6),
        ([TITLE, "x", "--supersedes", "nothing like it"], 2),
        ([TITLE, "x", "--supersedes", "o"], 2),
        ([TITLE, "x", "--applies-to", "/"], 2),
        ([TITLE, "x", "--file", "../outside.md"], 6),
        ([TITLE, "x", "--file", "/etc/passwd"], 6),
        ([TITLE, "x", "--file", "kb/lessons-archive.md"], 6),
        ([TITLE, "x", "--file", "kb/.hidden.md"], 6),
    ],
)
def test_bad_wish_writes_nothing(kb, args, code):
    done = kb.run("add", *args)
    assert (done.exit_code, lessons(kb), relations(kb)) == (code, LESSONS, []), done.output
    assert sorted(p.name for p in (kb.root / "kb").iterdir()) == ["lessons.md"]


def test_superseding_an_entry_takes_its_place_in_context(kb):
    done = kb.run(
        "add", "Store timestamps in UTC with an offset", "so that both can be read", "--supersedes", "k-aygzpx"
    )
    assert done.exit_code == 0, done.output
    assert relations(kb) == [("Store timestamps in UTC with an offset", "supersedes", "Store timestamps in UTC", None)]
    told = kb.run("context").stdout
    assert "with an offset" in told
    assert "[k-aygzpx]" not in told


def test_file_it_applies_to_is_named_from_the_git_root(kb, monkeypatch):
    subprocess.run(["git", "init", "-q", str(kb.root)], check=True)
    (kb.root / "src").mkdir()
    monkeypatch.chdir(kb.root / "src")
    assert kb.run("add", TITLE, "x", "--applies-to", "pay.py", "--applies-to", "./pay.py").exit_code == 0
    assert relations(kb) == [(TITLE, "applies_to", "src/pay.py", None)]


def test_section_and_file_are_where_a_person_says(kb):
    kb.note("other.md", "# Other\n")
    assert kb.run("add", TITLE, "x", "--file", "other.md", "--section", "Payments").exit_code == 0
    assert (kb.root / "kb" / "other.md").read_text().startswith("# Other\n\n## Payments\n\n- [guideline] **Retry")
    assert kb.run("add", "Another lesson on payments", "x", "--file", "kb/new.md", "--section", "A / B").exit_code == 0
    assert (kb.root / "kb" / "new.md").read_text().startswith("# A\n\n## B\n\n- ")


def test_a_base_without_files_gets_its_first(world, monkeypatch):
    monkeypatch.chdir(world.root)
    (world.root / "kb").rmdir()
    done = world.run("add", TITLE, "x")
    assert done.exit_code == 0, done.output
    assert TITLE in lessons(world)


def test_dry_run_shows_the_entry_and_writes_nothing(kb):
    done = kb.run("add", TITLE, "x", "--supersedes", "k-aygzpx", "--dry-run")
    assert f"**{TITLE}** — x (2026-06-11)" in done.stdout
    assert (lessons(kb), relations(kb)) == (LESSONS, [])


def test_broken_relations_file_stops_an_entry_with_relations_before_it_is_written(kb):
    kb.note(".knowledge-graph.yaml", "- {s: a\n")
    assert kb.run("add", TITLE, "x", "--applies-to", "a.py").exit_code == 1
    assert lessons(kb) == LESSONS
    assert kb.run("add", TITLE, "x").exit_code == 0


def test_git_at_work_refuses(kb):
    subprocess.run(["git", "init", "-q", str(kb.root)], check=True)
    (kb.root / ".git" / "MERGE_HEAD").write_text("x")
    assert kb.run("add", TITLE, "x").exit_code == 6
    assert lessons(kb) == LESSONS


def test_eight_agents_at_once_lose_nothing_and_double_nothing(kb):
    command = [sys.executable, "-m", "kbd", *kb.options(), "add"]
    own = [[f"Lesson of agent {n} about the queue", f"text {n}"] for n in range(8)]
    same = [["The one lesson all agents learn", f"words of {n}", "--applies-to", "src/q.py"] for n in range(8)]
    running = [subprocess.Popen([*command, *args], cwd=kb.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for args in [*own, *same]]  # fmt: skip
    codes = [process.wait(timeout=120) for process in running]
    assert codes[:8] == [0] * 8
    assert sorted(codes[8:]) == [0] + [6] * 7
    assert lessons(kb).count("**Lesson of agent") == 8
    assert lessons(kb).count("**The one lesson all agents learn**") == 1
    assert relations(kb) == [("The one lesson all agents learn", "applies_to", "src/q.py", None)]
    assert kb.run("lint").exit_code == 0


def test_relation_is_written_between_titles_and_ended_and_used_anew(kb):
    assert kb.run("relate", "k-sfyp60", "requires", "timestamps").exit_code == 0
    titles = ("Lock fd leaked on exception path", "requires", "Store timestamps in UTC")
    assert relations(kb) == [(*titles, None)]
    assert kb.run("unrelate", "lock fd", "requires", "k-aygzpx").exit_code == 0
    assert relations(kb) == [(*titles, "2026-06-11")]
    assert kb.run("relate", "lock fd", "requires", "k-aygzpx").exit_code == 0
    assert relations(kb) == [(*titles, None)]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("k-sfyp60", "frobs", "k-aygzpx"), 6),
        (("k-sfyp60", "supersedes", "no such entry"), 2),
        (("k-sfyp60", "supersedes", "k-sfyp60"), 6),
        (("k-sfyp60", "informs", "password=hunter2!x"), 6),
        (("", "informs", "k-aygzpx"), 6),
    ],
)
def test_relation_against_the_rules_writes_nothing(kb, args, code):
    assert kb.run("relate", *args).exit_code == code
    assert relations(kb) == []


def test_cycle_over_several_predicates_is_refused(kb):
    assert kb.run("relate", "k-sfyp60", "requires", "k-aygzpx").exit_code == 0
    assert kb.run("relate", "k-aygzpx", "supersedes", "k-sfyp60").exit_code == 6


def test_ends_that_are_no_entries_stay_as_given(kb):
    assert kb.run("relate", "k-sfyp60", "motivated_by", "lock").exit_code == 0
    assert kb.run("relate", "lock fd", "applies-to", "src/net.py").exit_code == 0
    assert [o for _, _, o, _ in relations(kb)] == ["lock", "src/net.py"]


def test_no_relation_to_end_is_a_usage_error(kb):
    assert kb.run("unrelate", "k-sfyp60", "requires", "k-aygzpx").exit_code == 2


def test_dry_run_relates_nothing(kb):
    done = kb.run("relate", "k-sfyp60", "requires", "k-aygzpx", "--dry-run")
    assert done.stdout == "  Lock fd leaked on exception path requires Store timestamps in UTC (used 2026-06-11)\n"
    assert "nothing was written" in done.stderr
    assert relations(kb) == []


def found(world, *args):
    return [(one["title"], one["state"], one["found_in"]) for one in world.answer("search", *args)["entries"]]


def test_search_finds_titles_texts_and_files_in_any_state(kb):
    kb.run("relate", "k-aygzpx", "applies_to", "src/clock.py")
    assert found(kb, "fd", "exception") == [("Lock fd leaked on exception path", "active", ["title"])]
    assert found(kb, "jitter") == [("Retry storm after an outage", "dormant", ["text"])]
    assert found(kb, "clock.py") == [("Store timestamps in UTC", "active", ["files"])]
    assert found(kb, "k-aygzpx")[0][2] == ["name"]
    assert found(kb, "no-such-word-at-all") == []


def test_search_prefers_all_words_and_falls_back_to_most(kb):
    assert [title for title, _, _ in found(kb, "release timestamps utc")] == ["Store timestamps in UTC"]


def test_search_narrows_by_type_and_state(kb):
    assert found(kb, "in", "--type", "process", "--state", "active")[0][0].startswith("Release")
    assert found(kb, "retry", "--state", "active") == []
    assert kb.run("search", "x", "--type", "nonsense").exit_code == 2
    assert kb.run("search").exit_code == 2


def test_search_marks_the_state_on_the_screen(kb):
    assert "dormant" in kb.run("search", "storm").stdout
