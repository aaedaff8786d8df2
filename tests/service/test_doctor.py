"""Each check finds its fault, names the remedy, and is content without it."""

import os
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kbd import __version__
from kbd.core.headline import DEFAULT_TYPES
from kbd.service.doctor import ground, running
from kbd.service.doctor.check import Verdict
from kbd.service.doctor.graphs import MANY, GraphSeen, check_graph
from kbd.service.doctor.reading import Seen, check_base, check_sources
from kbd.store.heartbeat import Heartbeat, write_heartbeat
from kbd.store.ledger import open_ledger
from kbd.store.locks import InstanceLock

NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)
ENTRY = "- **A lesson worth keeping**: text\n"


def said(checks, verdict=Verdict.FINDING):
    checks = list(checks)
    assert all(check.remedy for check in checks if check.verdict is Verdict.FINDING), "a finding without a remedy"
    return [check.what for check in checks if check.verdict is verdict]


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


class TestState:
    def test_own_closed_directory_is_fine(self, state):
        assert said(ground.check_state(state, os.getuid()), Verdict.OK) == ["is the user's alone"]

    def test_directory_open_to_others_is_found_with_what_lies_open_in_it(self, state):
        (state / "ledger.db").touch()
        (state / "ledger.db").chmod(0o644)
        state.chmod(0o755)
        assert said(ground.check_state(state, os.getuid())) == [
            "is open to others (mode 0755)",
            "ledger.db can be read by others",
        ]

    def test_directory_of_another_user_is_found(self, state):
        assert said(ground.check_state(state, os.getuid() + 1)) == ["belongs to another user"]

    def test_directory_that_is_not_there_is_no_fault(self, tmp_path):
        assert said(ground.check_state(tmp_path / "absent", 0)) == []

    def test_local_disk_is_fine(self, state):
        assert said(ground.check_file_systems(str(state), []), Verdict.OK) == ["lies on a local disk"]

    def test_versions_of_this_installation_are_fine(self):
        assert said(ground.check_versions("1")) == []


class TestLedger:
    def test_without_one_nothing_was_read_yet(self, state):
        assert said(running.check_ledger(state), Verdict.NOTE) == ["nothing was read yet"]

    def test_whole_one_is_fine(self, state):
        open_ledger(state, NOW).close()
        assert said(running.check_ledger(state)) == []
        assert said(running.check_ledger(state), Verdict.OK) == ["is whole; 0 of 7 daily backups"]

    def test_file_that_is_no_ledger_is_found(self, state):
        (state / "ledger.db").write_bytes(b"not a database at all" * 100)
        assert len(said(running.check_ledger(state))) == 1

    def test_damaged_page_is_found(self, state):
        ledger = open_ledger(state, NOW)
        ledger.db.execute("PRAGMA journal_mode=DELETE")
        ledger.close()
        with open(state / "ledger.db", "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 8192)
        (what,) = said(running.check_ledger(state))
        assert "damaged" in what or "malformed" in what

    def test_restored_one_is_told(self, state):
        ledger = open_ledger(state, NOW)
        with ledger.transaction():
            ledger.set_meta("recovered_on", "2026-06-10")
            ledger.set_meta("recovered_from", "ledger gone, restored from x")
        ledger.close()
        assert said(running.check_ledger(state), Verdict.NOTE) == [
            "was restored on 2026-06-10: ledger gone, restored from x"
        ]

    def test_looking_changes_nothing(self, state):
        open_ledger(state, NOW).close()
        before = {path.name: path.read_bytes() for path in state.iterdir()}
        list(running.check_ledger(state))
        assert {
            path.name: path.read_bytes() for path in state.iterdir() if path.suffix != ".db-shm"
        }.items() >= before.items()


def beat(state, **fields):
    since = NOW - timedelta(hours=1)
    given = {"pid": os.getpid(), "since": since, "version": __version__, "at": NOW, "watching": "inotify"} | fields
    write_heartbeat(state, Heartbeat(**given))


def daemon(state, now=NOW, every=60):
    return list(running.check_daemon(state, now, every, __version__))


class TestDaemon:
    def test_none_is_found(self, state):
        assert said(daemon(state)) == ["no daemon runs"]

    def test_heartbeat_of_a_dead_one_is_none(self, state):
        beat(state)
        assert said(daemon(state)) == ["no daemon runs"]

    def test_living_one_is_fine(self, state):
        with InstanceLock(state):
            beat(state)
            assert said(daemon(state)) == []

    def test_one_in_its_first_pass_is_told(self, state):
        with InstanceLock(state):
            beat(state, pid=1)
            assert said(daemon(state), Verdict.NOTE) == ["runs, and has not ended its first pass yet"]

    @pytest.mark.parametrize(
        ("fields", "what"),
        [
            ({"at": NOW - timedelta(minutes=11)}, "no sign of life for 11 min"),
            ({"version": "0.0.1"}, "is of version 0.0.1"),
            ({"last_error": "disk full"}, "disk full"),
        ],
    )
    def test_ailing_one_is_found(self, state, fields, what):
        with InstanceLock(state):
            beat(state, **fields)
            (finding,) = said(daemon(state))
            assert what in finding

    def test_one_that_scans_seldom_may_be_silent_for_longer(self, state):
        with InstanceLock(state):
            beat(state, at=NOW - timedelta(minutes=50))
            assert said(daemon(state, every=3600)) == []

    def test_polling_is_told(self, state):
        with InstanceLock(state):
            beat(state, watching="polling: inotify watch limit reached")
            assert said(daemon(state), Verdict.NOTE) == ["no file events, polling: inotify watch limit reached"]

    def test_sign_of_life_from_the_future_is_found(self, state):
        beat(state, at=NOW + timedelta(hours=2))
        assert "lies in the future" in said(daemon(state))[0]

    def test_clock_that_was_never_set_is_found(self, state):
        assert said(daemon(state, now=datetime(1970, 1, 1, tzinfo=UTC)))[0] == "says 1970-01-01"

    def test_heartbeat_that_cannot_be_read_is_found(self, state):
        (state / "heartbeat.json").write_text("{")
        assert "no heartbeat" in said(daemon(state))[0]


@pytest.fixture
def knowledge(tmp_path):
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "lessons.md").write_text(ENTRY)
    return folder


def base(*patterns):
    return list(check_base("lessons", [str(pattern) for pattern in patterns], DEFAULT_TYPES, "⚠️"))


class TestKnowledge:
    def test_files_with_entries_are_fine(self, knowledge):
        assert said(base(knowledge / "*.md"), Verdict.OK) == ["1 entry in 1 file"]
        assert said(base(knowledge / "*.md")) == []

    def test_pattern_without_files_is_found(self, knowledge):
        assert said(base(knowledge / "*.txt")) == [f"no file matches {knowledge}/*.txt"]

    def test_folder_that_is_not_there_is_found(self, tmp_path):
        assert "cannot be listed" in said(base(tmp_path / "absent/*.md"))[0]

    def test_files_without_entries_are_found(self, knowledge):
        (knowledge / "lessons.md").write_text("just prose\n")
        assert said(base(knowledge / "*.md")) == ["no entry in 1 file"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
    def test_file_that_cannot_be_written_is_found(self, knowledge):
        (knowledge / "lessons.md").chmod(0o444)
        assert said(base(knowledge / "*.md")) == ["cannot be written"]

    def test_fifo_is_not_opened(self, knowledge):
        os.mkfifo(knowledge / "pipe.md")
        assert said(base(knowledge / "*.md")) == []

    def test_link_and_git_are_told(self, knowledge, tmp_path):
        (tmp_path / "real.md").write_text(ENTRY)
        (knowledge / "link.md").symlink_to(tmp_path / "real.md")
        (knowledge / ".git").mkdir()
        (knowledge / ".git/HEAD").touch()
        (knowledge / ".git/index.lock").touch()
        notes = said(base(knowledge / "*.md"), Verdict.NOTE)
        assert f"is a link; kbd writes {tmp_path}/real.md" in notes
        assert "git is at work (index.lock): kbd does not write until it is done" in notes
        assert "1 file in git: written less often, never committed by kbd" in notes


class TestSources:
    def test_none_is_found(self):
        assert said(check_sources([])) == ["none is configured: nothing can be counted"]

    def test_one_of_several_roots_is_enough(self):
        assert said(check_sources([Seen("a", "/x", True, 3, ()), Seen("a", "/y", False, 0, ())])) == []

    def test_empty_and_missing_ones_are_found(self):
        empty, missing = Seen("a", "/x", True, 0, ()), Seen("b", "/y", False, 0, ())
        assert said(check_sources([empty, missing])) == ["0 files in /x", "there is no /y"]


LIMITS = {"max_user_watches": 8, "max_user_instances": 128}


class TestInotify:
    def check(self, root, number, limits):
        for at in range(number):
            (root / f"f{at}").mkdir()
        return list(running.check_inotify([str(root)], limits.get))

    def test_few_folders_fit(self, tmp_path):
        assert said(self.check(tmp_path, 3, LIMITS)) == []

    def test_too_many_folders_are_found(self, tmp_path):
        (check,) = self.check(tmp_path, 5, LIMITS)
        assert check.verdict is Verdict.FINDING
        assert "max_user_watches=16" in check.remedy

    def test_too_few_instances_are_found(self, tmp_path):
        assert "at most 1 watchers" in said(self.check(tmp_path, 1, LIMITS | {"max_user_instances": 1}))[0]

    def test_system_without_inotify_is_asked_nothing(self, tmp_path):
        assert self.check(tmp_path, 1, {}) == []


def test_ledger_stays_open_to_its_daemon_while_it_is_checked(state):
    ledger = open_ledger(state, NOW)
    with ledger.transaction() as db:
        assert said(running.check_ledger(state)) == []
        db.execute("INSERT INTO meta VALUES ('k', 'v')")
    assert ledger.meta("k") == "v"
    ledger.close()
    assert sqlite3.connect(state / "ledger.db").execute("PRAGMA quick_check").fetchone() == ("ok",)


QUIET = GraphSeen("lessons", "/g.jsonl", entities=900, relations=4000, hub="a", reach=899, writers=2, entries=300)


@pytest.mark.parametrize(
    ("more", "sign"),
    [
        ({"entities": MANY + 1}, "over 10,000 entities"),
        ({"entries": MANY + 1}, "over 10,000 entries"),
        ({"reach": MANY}, "three hops from a reach over 10,000 entities"),
        ({"writers": 9}, "9 writers"),
    ],
)
def test_a_graph_that_outgrows_its_log_is_told_why_and_where_to(more, sign):
    (check,) = check_graph(replace(QUIET, **more))
    assert check.verdict is Verdict.NOTE
    assert sign in check.what
    assert "kbd export --base lessons --format cypher" in check.remedy
    assert [one.verdict for one in check_graph(QUIET)] == [Verdict.OK]
