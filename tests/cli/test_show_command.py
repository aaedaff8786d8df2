"""`kbd show`: finding an entry, and all there is to say of it."""

from datetime import date

import pytest

from kbd.core.model import Problem, State
from kbd.store.ledger import lessons, standing
from tests.cli.test_listing_command import KEYS, LOCK
from tests.cli.world import NOON


@pytest.fixture
def cited(world):
    books = world.ledger()
    entry = books.entry(
        LOCK, base_ref=7, covers=date(2026, 6, 5), ident="PIT012", file_ref=7, file_last=date(2026, 6, 5)
    )
    books.cite(entry, "old", "2026-06-04T08:00:00")
    books.cite(entry, "S1", "2026-06-10T09:30:00", "the fd leaked again", ("src/net.py", "a.py"))
    books.entry("Lock order is by path")
    return world


def test_json_has_exactly_the_documented_keys(cited):
    answer = cited.answer("show", LOCK)
    assert list(answer) == ["version", *KEYS, "evidence", "relations", "history", "rank"]
    assert answer["rank"]["place"] == 1


def test_evidence_is_newest_first_and_says_where(cited):
    newest, oldest = cited.answer("show", LOCK)["evidence"]
    assert newest == {
        "session": "S1",
        "record": "r-2026-06-10T09:30:00",
        "at": "2026-06-10T09:30:00.000000+00:00",
        "path": "/t/S1.jsonl",
        "offset": 42,
        "snippet": "the fd leaked again",
        "class": "agent_text",
        "files": ["src/net.py", "a.py"],
    }
    assert oldest["session"] == "old"


def test_limit_cuts_the_evidence_not_the_number(cited):
    answer = cited.answer("show", LOCK, "--limit", "1")
    assert (len(answer["evidence"]), answer["citations"]) == (1, 2)
    assert cited.answer("show", LOCK, "--limit", "0")["evidence"] == []


def test_relations_and_history_come_along(cited):
    (cited.root / "kb" / ".knowledge-graph.yaml").write_text(
        f"- {{s: {LOCK}, p: applies_to, o: src/net.py, c: 2026-06-01, u: 2026-06-10}}\n"
        f"- {{s: lock order is by path, p: informs, o: {LOCK.upper()}}}\n"
        "- {s: Lock order is by path, p: applies_to, o: other.py}\n"
    )
    books = cited.ledger()
    with books.ledger.transaction():
        books.ledger.record_event(NOON, "to_dormant", entry=1, title=LOCK, detail="idle: 90 idle days")
    answer = cited.answer("show", LOCK)
    assert [(r["p"], r["u"]) for r in answer["relations"]] == [("applies_to", "2026-06-10"), ("informs", None)]
    assert [(e["kind"], e["detail"]) for e in answer["history"]] == [("to_dormant", "idle: 90 idle days")]


@pytest.mark.parametrize(
    "name",
    [
        LOCK,
        LOCK.upper(),
        f"**{LOCK}**:",
        "lock   fd leaked on\texception path",
        "PIT012",
        "[PIT012]",
        "pit012",
        "lock fd",
        "exception path",
        "lessons.md:3",
        "kb/lessons.md:3",
    ],
)
def test_an_entry_is_found_by(cited, name):
    assert cited.answer("show", name)["title"] == LOCK


def test_an_entry_is_found_by_its_handle(cited):
    short = cited.answer("show", LOCK)["handle"]
    for name in (short, f"[{short}]", short.upper(), short[:-1]):
        assert cited.answer("show", name)["title"] == LOCK


def test_explain_is_show(cited):
    assert cited.run("explain", "PIT012").stdout == cited.run("show", "PIT012").stdout


def test_a_former_title_still_finds_the_entry(cited):
    books = cited.ledger()
    with books.ledger.transaction() as db:
        lessons.add_pattern(db, 1, "title", "descriptor leak", None)
        lessons.end_pattern(db, 1, "title", "descriptor leak", date(2026, 9, 1))
    assert cited.answer("show", "Descriptor leak")["title"] == LOCK


def test_an_ambiguous_name_lists_the_candidates(cited):
    result = cited.run("show", "lock")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert LOCK in result.stderr and "Lock order is by path" in result.stderr


def test_an_exact_title_wins_over_longer_ones(world):
    books = world.ledger()
    books.entry("Lock order")
    books.entry("Lock order is by path")
    assert world.answer("show", "lock order")["title"] == "Lock order"


def test_a_live_entry_wins_over_its_archived_namesake(world):
    books = world.ledger()
    books.entry(LOCK, state=State.ARCHIVED)
    books.entry(LOCK)
    assert world.answer("show", LOCK)["state"] == "active"


def test_namesakes_are_told_apart_by_their_place(world):
    books = world.ledger()
    books.entry(LOCK)
    books.entry(LOCK, section="Other")
    result = world.run("show", LOCK)
    assert result.exit_code == 2 and "lessons.md:4" in result.stderr
    assert world.answer("show", "lessons.md:4")["section"] == "Other"


@pytest.mark.parametrize(
    "name", ["no such thing", "", "   ", "***", "[]", "%", "\x00", "k-", "lessons.md:99", "\ud800"]
)
def test_an_unknown_name_is_a_usage_error(cited, name):
    assert cited.run("show", name).exit_code == 2


def test_without_a_ledger_there_is_nothing_to_show(world):
    assert world.run("show", LOCK).exit_code == 2


def test_the_number_is_explained_and_a_pending_write_named(cited):
    text = cited.run("show", LOCK).stdout
    assert "ref 8 = 7 found in the file (covers up to 2026-06-05) + 1 reference" in text
    assert "file says 7, last 2026-06-05, write pending" in text


def test_why_a_write_waits_is_said(cited):
    books = cited.ledger()
    with books.ledger.transaction() as db:
        place = str(cited.root / "kb" / "lessons.md")
        standing.set_fault(db, Problem("write_deferred", place, "conflict markers stand in it", "solve them"))
    assert "write pending (conflict markers stand in it)" in cited.run("show", LOCK).stdout


def test_the_screen_shows_the_words_and_the_days_to_come(cited):
    text = cited.run("show", LOCK).stdout
    assert "“the fd leaked again”" in text
    assert "2026-06-10 09:30  S1  agent_text" in text
    assert "about src/net.py, a.py" in text
    assert "dormant on 2026-09-08 (in 89 days)" in text


def test_hostile_evidence_is_shown_harmless(world):
    books = world.ledger()
    entry = books.entry(LOCK)
    books.cite(entry, "S\x1b]0;owned\x07", "2026-06-10T09:30:00", "a\x1b[2Jb\u202ec", ("x\x1b[1m.py",))
    text = world.run("show", LOCK).stdout
    assert not set("\x1b\x07\u202e") & set(text)
    assert "“abc”" in text
