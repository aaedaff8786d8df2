"""`kbd list`: the fixed JSON, the filters, the table in a pipe."""

from datetime import date

import pytest

from kbd.core.model import State
from kbd.store.ledger import lessons

KEYS = [
    "title",
    "handle",
    "type",
    "type_source",
    "state",
    "ref",
    "last",
    "created",
    "base",
    "file",
    "line",
    "section",
    "citations",
    "sessions",
    "listed",
    "dormant_on",
    "archived_on",
]
LOCK = "Lock fd leaked on exception path"


def titles(answer):
    return [entry["title"] for entry in answer["entries"]]


@pytest.fixture
def three(world):
    books = world.ledger()
    books.entry(LOCK)
    books.entry("Chose SQLite over files", type="decision", state=State.DORMANT, dormant_since=date(2026, 6, 5))
    books.entry("Old trick of the trade", state=State.ARCHIVED, type="model")
    return world


def test_json_has_exactly_the_documented_keys(three):
    answer = three.answer("list", "--all")
    assert list(answer) == ["version", "entries"]
    assert all(list(entry) == KEYS for entry in answer["entries"])


def test_values_are_those_of_the_ledger(world):
    books = world.ledger()
    entry = books.entry(LOCK, base_ref=7, covers=date(2026, 6, 1))
    for session, day in (("a", "2026-06-09"), ("a", "2026-06-10"), ("b", "2026-06-10"), ("b", "2026-05-01")):
        books.cite(entry, session, f"{day}T10:00:00")
    [one] = world.answer("list")["entries"]
    expected = {
        "ref": 10,
        "citations": 4,
        "sessions": 2,
        "listed": 0,
        "last": "2026-06-10",
        "created": "2026-06-01",
        "handle": "k-vq5xp1",
        "base": "lessons",
        "section": "Lessons",
        "line": 3,
        "state": "active",
        "type": "pitfall",
        "type_source": "tag",
        "title": LOCK,
        "file": str(world.root / "kb" / "lessons.md"),
        # ref 10 doubles both limits: 180 and 360 days after the last citation.
        "dormant_on": "2026-12-07",
        "archived_on": "2027-06-05",
    }
    assert one | {"handle": expected["handle"]} == expected
    assert one["handle"].startswith("k-") and len(one["handle"]) == 8


def test_dates_of_an_uncited_entry_follow_its_creation(three):
    entries = {entry["title"]: entry for entry in three.answer("list", "--all")["entries"]}
    assert (entries[LOCK]["dormant_on"], entries[LOCK]["archived_on"]) == ("2026-08-30", "2026-11-28")
    dormant = entries["Chose SQLite over files"]
    assert (dormant["dormant_on"], dormant["archived_on"]) == (None, "2026-11-28")
    archived = entries["Old trick of the trade"]
    assert (archived["dormant_on"], archived["archived_on"]) == (None, None)


def test_limits_come_from_the_configuration(three):
    config = three.root / "config.yaml"
    config.write_text(config.read_text() + "decay: {dormant_days: 40, archive_days: 50}\n")
    assert three.answer("list")["entries"][0]["dormant_on"] == "2026-07-11"


def test_evergreen_sections_never_fall(three):
    config = three.root / "config.yaml"
    config.write_text(config.read_text().replace('files: ["kb/*.md"]', 'files: ["kb/*.md"]\n    evergreen: [lessons]'))
    assert three.answer("list")["entries"][0]["dormant_on"] is None


def test_superseded_entries_fall_at_once(three):
    (three.root / "kb" / ".knowledge-graph.yaml").write_text(
        f"- {{s: Chose SQLite over files, p: supersedes, o: {LOCK}, c: 2026-06-10}}\n"
    )
    assert three.answer("list")["entries"][0]["dormant_on"] == "2026-07-01"


def test_archived_entries_come_only_on_demand(three):
    assert titles(three.answer("list")) == [LOCK, "Chose SQLite over files"]
    assert len(titles(three.answer("list", "--all"))) == 3
    assert titles(three.answer("list", "--state", "archived")) == ["Old trick of the trade"]


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("--type", "decision", ["Chose SQLite over files"]),
        ("--type", "DECISION", ["Chose SQLite over files"]),
        ("--state", "active", [LOCK]),
        ("--base", "lessons", [LOCK, "Chose SQLite over files"]),
        ("--type", "process", []),
    ],
)
def test_filters(three, option, value, expected):
    assert titles(three.answer("list", option, value)) == expected


@pytest.mark.parametrize("option, value", [("--type", "pitfal"), ("--state", "dead"), ("--base", "other")])
def test_a_filter_that_can_never_match_is_a_usage_error(three, option, value):
    result = three.run("list", option, value)
    assert result.exit_code == 2
    assert value in result.stderr


def test_entries_gone_from_the_files_are_not_listed(three):
    books = three.ledger()
    with books.ledger.transaction() as db:
        lessons.update_entry(db, 1, gone_on=date(2026, 6, 2))
    assert titles(three.answer("list")) == ["Chose SQLite over files"]


def test_without_a_ledger_the_list_is_empty_and_says_why(world):
    result = world.run("list", "--json")
    assert (result.exit_code, result.stdout) == (0, '{"version": 1, "entries": []}\n')
    assert "kbd run" in result.stderr


def test_in_a_pipe_there_is_one_uncut_line_for_each_entry(world):
    title = "A title that is " + "very " * 40 + "long"
    world.ledger().entry(title)
    lines = world.run("list").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].split() == ["handle", "state", "ref", "last", "falls", "in", "type", "title"]
    assert lines[1].endswith(title)
    assert "\t" not in lines[1] and "\x1b" not in lines[1]


def test_columns_line_up_with_wide_characters(world):
    books = world.ledger()
    books.entry("数据库连接必须关闭", type="坑")
    books.entry("Plain ascii title")
    lines = world.run("list").stdout.splitlines()
    assert lines[1].index("数据库") == lines[2].index("Plain") - 1  # the one wide character of the type before it


def test_control_characters_never_reach_the_terminal(world):
    world.ledger().entry("Evil \x1b[31mred\x1b[0m \x07bell\u202e title")
    text = world.run("list").stdout
    assert "Evil red bell title" in text
    assert not set("\x1b\x07\u202e") & set(text)


def test_json_keeps_odd_characters_escaped(world):
    title = "Evil \x1b[31m \x9b \u202e title"
    world.ledger().entry(title)
    text = world.run("list", "--json").stdout
    assert text.isprintable() or text.strip().isprintable()
    assert world.answer("list")["entries"][0]["title"] == title


def test_a_second_base_gets_a_column(world):
    config = world.root / "config.yaml"
    config.write_text(config.read_text().replace("sources:", '  - {name: other, files: ["other/*.md"]}\nsources:'))
    (world.root / "other").mkdir()
    books = world.ledger()
    books.entry(LOCK)
    with books.ledger.transaction() as db:
        other = lessons.base_id(db, "other")
    books.entry("Another thing altogether", base=other)
    assert [entry["base"] for entry in world.answer("list")["entries"]] == ["lessons", "other"]
    assert titles(world.answer("list", "--base", "other")) == ["Another thing altogether"]
    assert world.run("list").stdout.splitlines()[0].split()[1] == "base"
