"""`kbd lint`: findings in the files as they are now."""

from datetime import timedelta

import pytest

from tests.cli.world import TODAY

LOCK = "Lock fd leaked on exception path"


def codes(answer):
    return [problem["code"] for problem in answer["problems"]]


def test_clean_files_are_exit_0(world):
    world.note("lessons.md", f"# L\n\n- [pitfall] **{LOCK}** — close it (2026-05-19)\n")
    result = world.run("lint")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_finding_says_where_what_and_what_to_do(world):
    path = world.note("lessons.md", f"# L\n\n- [pitfal] **{LOCK}** — close it (2026-05-19)\n")
    result = world.run("lint")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{path}:3: unknown_type: ")
    assert "; " in result.stdout


def test_types_of_the_configuration_are_known(world):
    config = world.root / "config.yaml"
    config.write_text(config.read_text() + "types: {ritual: [every morning]}\n")
    world.note("lessons.md", f"- [ritual] **{LOCK}**\n")
    assert world.answer("lint")["problems"] == []


def test_titles_that_can_never_match_are_found(world):
    world.note("lessons.md", "- **Short**: text\n- [KD07] **Tiny**: has an id\n")
    assert codes(world.answer("lint")) == ["unmatchable_title"]


@pytest.mark.parametrize("second", ["lessons.md", "other.md"])
def test_two_entries_with_one_title_are_found_once(world, second):
    world.note("lessons.md", f"- **{LOCK}**\n")
    with world.note("placeholder.md", "").open():
        path = world.root / "kb" / second
        path.write_text((path.read_text() if path.exists() else "") + f"- **{LOCK.upper()}**\n")
    answer = world.answer("lint")
    assert codes(answer) == ["duplicate_title"]
    assert answer["problems"][0]["where"].startswith(str(path))


@pytest.mark.parametrize("second", ["lessons.md", "other.md"])
def test_two_entries_with_one_id_are_found_once(world, second):
    path = world.note("lessons.md", f"- [KD07] **{LOCK}**\n").parent / second
    path.write_text((path.read_text() if path.exists() else "") + "- [KD07] **Backoff must be capped**\n")
    answer = world.answer("lint")
    assert codes(answer) == ["duplicate_id"]
    assert answer["problems"][0]["where"].startswith(str(path))


def test_dates_that_lie_ahead_are_found(world):
    ahead = (TODAY + timedelta(days=1)).isoformat()
    comment = f"<!-- ref:1 | last:{ahead} | decay:active -->"
    path = world.note("lessons.md", f"- **{LOCK}** ({ahead})\n  {comment}\n- **Backoff must be capped** ({TODAY})\n")
    found = [(p["code"], p["where"], p["what"]) for p in world.answer("lint")["problems"]]
    assert found == [
        ("bad_date", f"{path}:1", f"last {ahead} lies in the future"),
        ("bad_date", f"{path}:1", f"created {ahead} lies in the future"),
    ]


def test_an_archived_namesake_is_no_finding(world):
    world.note("lessons.md", f"- **{LOCK}**\n")
    world.note("lessons-archive.md", f"- **{LOCK}**\n  <!-- ref:1 | last:none | decay:archived -->\n")
    assert world.answer("lint")["problems"] == []


def test_archives_are_looked_through(world):
    world.note("lessons.md", f"- **{LOCK}**\n")
    archive = world.note("lessons-archive.md", "- [nonsense] **A title that is archived**\n")
    [problem] = world.answer("lint")["problems"]
    assert problem["where"] == f"{archive}:1"


def test_relations_are_looked_through(world):
    (world.root / "kb" / ".knowledge-graph.yaml").write_text("- {s: a, p: resembles, o: b}\n")
    assert codes(world.answer("lint")) == ["unknown_predicate"]


def test_a_relations_file_that_is_no_yaml_is_a_finding(world):
    (world.root / "kb" / ".knowledge-graph.yaml").write_text("- {s: [")
    assert codes(world.answer("lint")) == ["relations_unreadable"]


def test_named_files_only(world):
    world.note("lessons.md", "- **Short**\n")
    other = world.note("draft.txt", "- [nope] **A title that is long enough**\n")
    relations = world.note("extra.yaml", "- {s: a, p: resembles, o: b}\n")
    assert codes(world.answer("lint", str(other), str(relations))) == ["unknown_type", "unknown_predicate"]


def test_a_named_file_that_is_not_there_is_a_usage_error(world):
    assert world.run("lint", "nowhere.md").exit_code == 2


def test_a_file_that_cannot_be_read_is_a_finding(world):
    (world.root / "kb" / "loop.md").symlink_to("nowhere.md")
    assert codes(world.answer("lint")) == ["knowledge_unreadable"]


def test_findings_come_by_file_and_line(world):
    world.note("b.md", "- **Short**\n")
    world.note("a.md", "".join(f"- **T{n}**\n" for n in range(11)))
    places = [problem["where"].rpartition("/")[2] for problem in world.answer("lint")["problems"]]
    assert places == [*(f"a.md:{n}" for n in range(1, 12)), "b.md:1"]


def test_hostile_titles_are_shown_harmless(world):
    world.note("lessons.md", "- [\x1b[31mx] **Evil \x1b[2J title \u202e here**\n- **\x1b[2J**\n- **x\u202e**\n")
    assert not set("\x1b\u202e") & set(world.run("lint").stdout)


def test_no_ledger_is_needed_and_none_is_made(world):
    world.run("lint")
    assert list(world.state.iterdir()) == []
