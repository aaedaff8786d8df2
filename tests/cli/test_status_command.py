"""`kbd status`: the fixed JSON, health, exit codes, the screen."""

import os
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import kbd
from kbd import __version__
from kbd.core.model import Problem, State
from kbd.store.heartbeat import HEARTBEAT_NAME, Heartbeat, read_heartbeat, write_heartbeat
from kbd.store.ledger import lessons, standing
from kbd.store.ledger.lessons import NoteRow
from kbd.store.locks import InstanceLock
from tests.cli.test_listing_command import LOCK
from tests.cli.world import NOON, TODAY


def codes(answer):
    return [reason["code"] for reason in answer["reasons"]]


@pytest.fixture
def running(world):
    """A daemon holds the lock and has just finished a pass."""
    now = datetime.now(UTC)
    with InstanceLock(world.state):
        write_heartbeat(
            world.state,
            Heartbeat(
                pid=os.getpid(),
                since=now - timedelta(hours=5),
                version=__version__,
                at=now,
                watching="inotify",
                last_pass_at=now,
            ),
        )
        yield world


@pytest.fixture
def healthy(running):
    books = running.ledger()
    books.cite(books.entry(LOCK, file_ref=1, file_last=date(2026, 6, 10)), "S1", "2026-06-10T09:00:00")
    books.activity()
    return running


def test_json_has_exactly_the_documented_keys(healthy):
    answer = healthy.answer("status")
    assert list(answer) == [
        "version",
        "health",
        "reasons",
        "daemon",
        "sources",
        "bases",
        "relations",
        "decay",
        "problems",
    ]
    assert list(answer["daemon"]) == ["running", "pid", "since", "version"]
    assert [list(source) for source in answer["sources"]] == [
        ["name", "root", "files", "bytes", "lag_bytes", "records", "messages", "unknown", "malformed", "last_record_at"]
    ]
    assert [list(base) for base in answer["bases"]] == [
        ["name", "entries", "by_state", "by_type", "refs_7d", "refs_30d", "unmatchable", "tokens", "pending_writes"]
    ]
    assert list(answer["relations"]) == ["total", "by_predicate", "coverage"]
    assert list(answer["decay"]) == ["last_run", "next_run", "due"]


def test_all_well_is_ok_and_exit_0(healthy):
    answer = healthy.answer("status")
    assert (answer["health"], answer["reasons"], answer["problems"]) == ("ok", [], [])
    assert healthy.run("status").exit_code == 0
    assert healthy.run("status", "--json").exit_code == 0


def test_status_says_how_often_all_files_are_looked_at(healthy):
    assert "looked at" not in healthy.run("status").output
    told = read_heartbeat(healthy.state)
    write_heartbeat(healthy.state, msgspec.structs.replace(told, scan_every_seconds=720.0))
    assert "all files looked at every 12 min" in " ".join(healthy.run("status").output.split())


def test_without_a_daemon_health_is_down_with_all_reasons_and_exit_3(world):
    books = world.ledger()
    books.entry(LOCK)
    result = world.run("status", "--json")
    answer = world.answer("status")
    assert (answer["health"], result.exit_code) == ("down", 3)
    assert codes(answer)[0] == "daemon_down"
    assert "no_sight" in codes(answer)
    assert answer["daemon"] == {"running": False, "pid": None, "since": None, "version": None}


def test_the_pid_of_a_dead_daemon_proves_nothing(world):
    (world.state / "daemon.lock").write_text(f"{os.getpid()}\n")
    write_heartbeat(world.state, Heartbeat(pid=os.getpid(), since=NOON, version="9", at=NOON, watching="inotify"))
    assert world.answer("status")["daemon"]["running"] is False


def test_a_daemon_without_a_heartbeat_runs_all_the_same(world):
    with InstanceLock(world.state):
        answer = world.answer("status")
    assert answer["daemon"] == {"running": True, "pid": os.getpid(), "since": None, "version": None}


def test_a_heartbeat_of_another_process_says_nothing(world):
    write_heartbeat(
        world.state, Heartbeat(pid=1, since=NOON, version="9", at=NOON, watching="polling: limit", last_error="full")
    )
    with InstanceLock(world.state):
        answer = world.answer("status")
    assert answer["daemon"]["version"] is None
    assert not {"pass_failed", "watch_degraded", "daemon_stalled"} & set(codes(answer))


def test_a_torn_heartbeat_is_a_problem_and_no_crash(healthy):
    (healthy.state / HEARTBEAT_NAME).write_text('{"pid": 12')
    answer = healthy.answer("status")
    assert answer["health"] == "ok"
    assert [problem["code"] for problem in answer["problems"]] == ["heartbeat_unreadable"]


def test_status_answers_before_anything_was_read(world):
    answer = world.answer("status")
    assert codes(answer) == ["daemon_down", "never_run"]
    assert [source["name"] for source in answer["sources"]] == ["logs"]
    assert answer["bases"][0]["by_state"] == {"active": 0, "dormant": 0, "archived": 0}
    assert answer["decay"] == {"last_run": None, "next_run": None, "due": []}


def test_sums_are_those_of_the_ledger(healthy):
    books = healthy.ledger()
    books.entry("Tiny", unmatchable=1)
    books.entry(
        "A second decision",
        type="decision",
        state=State.DORMANT,
        base_ref=3,
        file_ref=2,
        file_state=State.DORMANT,
        file_marker=1,
    )
    books.cite(1, "S2", "2026-05-20T09:00:00")
    with books.ledger.transaction() as db:
        problems = [Problem("unknown_type", "kb/lessons.md:9", "what", "hint")]
        note = NoteRow(
            path=str(healthy.root / "kb" / "lessons.md"),
            base=books.base,
            archive=False,
            sha="",
            size=1,
            mtime_ns=1,
            ino=1,
            wrote_at=None,
            wrote_mtime_ns=None,
        )
        lessons.save_note(db, note, 77, problems)
        books.transcript(size=900, offset=800, records=40, messages=30, unknown=1, malformed=2)
    (healthy.root / "kb" / ".knowledge-graph.yaml").write_text(
        f"- {{s: {LOCK}, p: applies_to, o: a.py}}\n"
        f"- {{s: {LOCK}, p: informs, o: b}}\n"
        "- {s: x, p: informs, o: y, e: 2026-01-01}\n"
    )
    answer = healthy.answer("status")
    assert answer["sources"][0] | {"root": ""} == {
        "name": "logs",
        "root": "",
        "files": 1,
        "bytes": 900,
        "lag_bytes": 100,
        "records": 40,
        "messages": 30,
        "unknown": 1,
        "malformed": 2,
        "last_record_at": "2026-06-11T09:00:00+00:00",
    }
    assert answer["bases"] == [
        {
            "name": "lessons",
            "entries": 3,
            "by_state": {"active": 2, "dormant": 1, "archived": 0},
            "by_type": {"pitfall": 2, "decision": 1},
            "refs_7d": 1,
            "refs_30d": 2,
            "unmatchable": 1,
            "tokens": 77,
            "pending_writes": 2,
        }
    ]
    assert answer["relations"] == {"total": 2, "by_predicate": {"applies_to": 1, "informs": 1}, "coverage": 0.333}
    assert [problem["code"] for problem in answer["problems"]] == ["unknown_type"]


def test_what_falls_within_a_week_is_due_soonest_first(healthy):
    books = healthy.ledger()
    books.entry("Falls in three days", created=date(2026, 3, 16))
    books.entry("Falls tomorrow", created=date(2026, 3, 14))
    books.entry("Undated and falling now", created=None)
    books.entry("Falls next month", created=date(2026, 4, 16))
    books.entry("Archived on Sunday", created=date(2025, 12, 16), state=State.DORMANT)
    due = healthy.answer("status")["decay"]["due"]
    assert [(one["title"], one["to"], one["on"]) for one in due] == [
        ("Undated and falling now", "dormant", "2026-06-11"),
        ("Falls tomorrow", "dormant", "2026-06-12"),
        ("Archived on Sunday", "archived", "2026-06-14"),
        ("Falls in three days", "dormant", "2026-06-14"),
    ]


def test_the_next_pass_is_named_in_utc(healthy):
    healthy.env["TZ"] = "UTC"
    assert healthy.answer("status")["decay"] == {"last_run": None, "next_run": "2026-06-11T12:00:00+00:00", "due": []}
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        db.execute("UPDATE bases SET last_decay='2026-06-11'")
    decay = healthy.answer("status")["decay"]
    assert decay["last_run"] == "2026-06-11"
    assert decay["next_run"].startswith("2026-06-12T")


@pytest.mark.parametrize(
    "beat, code",
    [
        ({"watching": "polling: inotify limit reached"}, "watch_degraded"),
        ({"last_error": "no space left on device"}, "pass_failed"),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, "daemon_stalled"),
        ({"version": "0.0.9"}, "daemon_outdated"),
        ({"config": "of a file that was edited since"}, "config_changed"),
    ],
)
def test_a_daemon_in_trouble_is_degraded_and_exit_1(healthy, beat, code):
    fields = {"pid": os.getpid(), "since": NOON, "version": __version__, "at": datetime.now(UTC), "watching": "inotify"}
    write_heartbeat(healthy.state, Heartbeat(**(fields | beat)))
    answer = healthy.answer("status")
    assert (answer["health"], codes(answer)) == ("degraded", [code])
    assert healthy.run("status").exit_code == 1


@pytest.mark.parametrize(
    "fault, code",
    [
        ("knowledge_unreadable", "knowledge_unreadable"),
        ("two_writers", "two_writers"),
        ("write_failed", "write_failed"),
        ("source_missing", "source_unreadable"),
        ("file_unreadable", "source_unreadable"),
    ],
)
def test_standing_faults_are_reasons_and_problems(healthy, fault, code):
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        standing.set_fault(db, Problem(fault, "/there", "is broken", "mend it"))
    answer = healthy.answer("status")
    assert answer["reasons"] == [{"code": code, "what": "/there: is broken", "remedy": "mend it"}]
    assert [problem["code"] for problem in answer["problems"]] == [fault]
    assert answer["health"] == "degraded"


def test_a_hundred_equal_faults_are_one_reason(healthy):
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        for number in range(100):
            standing.set_fault(db, Problem("file_unreadable", f"/t/{number:03}", "denied", "mend it"))
    answer = healthy.answer("status")
    assert [reason["what"] for reason in answer["reasons"]] == ["/t/000: denied (and 99 more)"]
    assert len(answer["problems"]) == 100


def test_a_write_that_waits_its_turn_is_no_fault(healthy):
    books = healthy.ledger()
    place = str(healthy.root / "kb" / "lessons.md")
    with books.ledger.transaction() as db:
        standing.set_fault(db, Problem("write_deferred", place, "written 3 s ago", "wait"))
        lessons.update_entry(db, 1, file_ref=0)
    answer = healthy.answer("status")
    assert (answer["health"], answer["bases"][0]["pending_writes"]) == ("ok", 1)
    assert f"{place}: 1 entry; written 3 s ago" in healthy.run("status").stdout


def test_what_status_sees_itself_is_not_said_twice(healthy):
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        standing.set_fault(db, Problem("no_sight", "sources", "no record was read", "check"))
    assert healthy.answer("status")["health"] == "ok"


def test_a_broken_relations_file_is_seen_at_once(healthy):
    (healthy.root / "kb" / ".knowledge-graph.yaml").write_text("- {s: [")
    answer = healthy.answer("status")
    assert codes(answer) == ["relations_unreadable"]
    assert healthy.run("status").exit_code == 1


def test_a_mended_relations_file_is_seen_at_once(healthy):
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        standing.set_fault(db, Problem("relations_unreadable", "/kb", "broken", "mend it"))
    assert healthy.answer("status")["health"] == "ok"


def test_unknown_kinds_of_records_are_a_format_alarm(healthy):
    healthy.ledger().transcript(records=200, unknown=50)
    assert set(codes(healthy.answer("status"))) == {"format_alarm", "no_sight"}


def test_an_empty_source_is_named(healthy):
    healthy.ledger().transcript(gone=1)
    answer = healthy.answer("status")
    assert codes(answer) == ["source_empty"]
    assert "0 files" in answer["reasons"][0]["what"]


def test_many_sessions_without_a_citation_are_degraded(running):
    books = running.ledger()
    books.entry(LOCK)
    books.activity(sessions=40)
    answer = running.answer("status")
    assert "no_citations" in codes(answer)
    assert any("40 sessions read in 14 days, 0 citations" in reason["what"] for reason in answer["reasons"])


@pytest.mark.parametrize("first_read, told", [("2026-06-11", False), ("2026-06-10", True), (None, False)])
def test_a_base_first_read_today_needs_no_sight_yet(running, first_read, told):
    books = running.ledger()
    books.entry(LOCK)
    with books.ledger.transaction() as db:
        db.execute("UPDATE bases SET first_read=?", (first_read,))
    assert ("no_sight" in codes(running.answer("status"))) is told


def test_silence_of_long_ago_is_not_forgotten(running):
    books = running.ledger()
    books.entry(LOCK)
    books.activity(sessions=40, day=date(2026, 3, 1))
    assert {"no_citations", "no_sight"} <= set(codes(running.answer("status")))


def test_a_base_without_entries_is_named(running):
    running.ledger().activity()
    assert codes(running.answer("status")) == ["base_empty"]


@pytest.mark.parametrize("on, told", [("2026-06-11", True), ("2026-06-05", True), ("2026-06-04", False)])
def test_a_restored_ledger_is_told_for_a_week(healthy, on, told):
    books = healthy.ledger()
    with books.ledger.transaction():
        books.ledger.set_meta("recovered_on", on)
        books.ledger.set_meta("recovered_from", "ledger damaged")
    assert ("ledger_restored" in codes(healthy.answer("status"))) is told


def test_overruled_hand_edits_of_the_week_are_shown(healthy):
    books = healthy.ledger()
    with books.ledger.transaction():
        books.ledger.record_event(NOON, "overruled", entry=1, title=LOCK, detail="last 2026-01-01 is older")
        books.ledger.record_event(NOON - timedelta(days=7), "overruled", entry=1, title="long ago", detail="x")
    assert f"2026-06-11  {LOCK}: last 2026-01-01 is older" in healthy.run("status").stdout
    assert [(p["code"], p["where"]) for p in healthy.answer("status")["problems"]] == [("overruled", LOCK)]


def test_a_second_root_of_a_source_belongs_to_it_and_a_removed_source_does_not_count(healthy):
    books = healthy.ledger()
    with books.ledger.transaction() as db:
        for name in ("logs-2", "removed"):
            db.execute("INSERT INTO sources(name, root, agent) VALUES (?, '/x', 'text')", (name,))
    assert [source["name"] for source in healthy.answer("status")["sources"]] == ["logs", "logs-2"]


def test_every_reason_is_documented():
    root = Path(kbd.__file__).parent
    code = (root / "service" / "status" / "reasons.py").read_text()
    readme = (root.parent / "README.md").read_text()
    table = readme.partition("### Reasons in `status`")[2].partition("###")[0]
    given = set(re.findall(r'Reason\(\s*"(\w+)"', code)) | {"no_sight", "relations_unreadable"}
    assert given == set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))


def test_the_screen_fits_eighty_columns(healthy):
    text = healthy.run("status").stdout
    assert text.startswith("ok  pid ")
    assert "up 5 h" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text


def test_a_damaged_ledger_is_exit_5(world):
    (world.state / "ledger.db").write_bytes(b"this is no database" * 100)
    for command in (["status"], ["list"], ["show", "x"]):
        result = world.run(*command)
        assert result.exit_code == 5
        assert "ledger.db" in result.stderr


def test_days_are_those_of_the_given_now(healthy):
    healthy.now = (TODAY + timedelta(days=400)).isoformat()
    answer = healthy.answer("status")
    assert "no_sight" in codes(answer)
    assert answer["bases"][0]["refs_30d"] == 0
