"""`kbd set`, `pin`, `restore`, `forget`, `pause`, `resume`: what changes in ledger and files, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from kbd.store.locks import InstanceLock
from tests.service.life import Life, entry

DAY = timedelta(days=1)
TODAY = date(2026, 1, 2)
USED = "Cited only yesterday indeed"
OLD = "Old one that nobody cites now"
TEXT = (
    "# Lessons\n\n"
    + entry(USED, "2025-12-01", comment="ref:4 | last:2025-12-20 | decay:active")
    + entry(OLD, "2025-01-01", comment="ref:2 | last:2025-03-01 | decay:active")
)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    life.live.write_text(TEXT)
    life.says(TODAY - DAY, f"the lesson {USED} helped")
    life.lived(TODAY - DAY)
    life.close()
    yield life
    life.close()


def kbd(life: Life, *args: str, answer: str | None = None) -> Result:
    return life.kbd(*args, now=TODAY, answer=answer)


def archived(life: Life) -> Result:
    """Let a person archive the old entry."""
    return kbd(life, "set", OLD, "--state", "archived")


def test_set_ref_holds_and_counts_on(life: Life) -> None:
    assert life.rows()[USED].ref == 5
    result = kbd(life, "set", USED, "--ref", "2")
    assert (result.exit_code, result.stdout) == (0, f"{USED}: ref 5 → 2\n")
    assert "ref:2 | last:2026-01-01 | decay:active" in life.live.read_text()
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    assert life.rows()[USED].ref == 3


def test_set_ref_refuses_what_could_not_be_read_back(life: Life) -> None:
    before = life.live.read_bytes()
    assert kbd(life, "set", USED, "--ref", str(2**63 - 1)).exit_code == 2
    assert life.live.read_bytes() == before
    assert kbd(life, "set", USED, "--ref", "99999999").exit_code == 0
    life.says(TODAY, f"the lesson {USED} helped")
    life.lived(TODAY)
    assert "ref:100000000 |" in life.live.read_text()


def test_set_ref_wins_over_an_edit_not_yet_seen(life: Life) -> None:
    life.live.write_text(life.live.read_text().replace("ref:5", "ref:50"))
    kbd(life, "set", USED, "--ref", "7")
    assert "ref:7 |" in life.live.read_text()
    life.lived(TODAY)
    assert life.rows()[USED].ref == 7


def test_set_goes_back_to_a_pair_kbd_wrote_earlier(life: Life) -> None:
    for number in ("9", "5", "9"):
        kbd(life, "set", USED, "--ref", number)
        life.lived(TODAY)
        assert f"ref:{number} |" in life.live.read_text()


def test_set_twice_changes_nothing_more(life: Life) -> None:
    kbd(life, "set", OLD, "--ref", "7", "--last", "2025-12-24")
    files = life.live.read_bytes()
    result = kbd(life, "set", OLD, "--ref", "7", "--last", "2025-12-24")
    assert result.stdout == f"{OLD}: nothing to change\n"
    assert life.live.read_bytes() == files
    assert len(life.events("corrected")) == 1


def test_set_last_keeps_an_entry_awake(life: Life) -> None:
    kbd(life, "set", OLD, "--last", "2025-12-24")
    assert "last:2025-12-24" in life.live.read_text()
    life.lived(TODAY)
    assert life.states()[OLD] == "active"


@pytest.mark.parametrize(
    "args, code, words",
    [
        ((USED, "--last", "2025-12-31"), 6, "it was cited on 2026-01-01"),
        ((USED, "--last", "none"), 6, "it was cited on 2026-01-01"),
        ((OLD, "--last", "2025-02-01"), 6, "when kbd first saw it"),
        ((OLD, "--last", "2026-02-01"), 2, "lies in the future"),
        ((OLD, "--last", "yesterday"), 2, "is no day"),
        ((OLD, "--ref", "-1"), 2, "-1"),
        ((OLD,), 2, "nothing to set"),
        (("nothing like it", "--ref", "1"), 2, "no entry is named"),
    ],
)
def test_set_refuses_what_evidence_or_sense_deny(life: Life, args: tuple[str, ...], code: int, words: str) -> None:
    before = life.live.read_bytes()
    result = kbd(life, "set", *args)
    assert result.exit_code == code
    assert words in result.stderr
    assert life.live.read_bytes() == before


def test_last_without_evidence_can_be_taken_back(life: Life) -> None:
    life.live.write_text(life.live.read_text() + entry("Nobody ever cited this one", "2025-12-01"))
    life.lived(TODAY)
    life.close()
    kbd(life, "set", "Nobody ever", "--last", "2025-12-30")
    kbd(life, "set", "Nobody ever", "--last", "none")
    assert life.rows()["Nobody ever cited this one"].last is None


def test_set_dormant_holds_though_it_was_cited_yesterday(life: Life) -> None:
    kbd(life, "set", USED, "--state", "dormant")
    assert f"- ⚠️ [pitfall] **{USED}**" in life.live.read_text()
    life.lived(TODAY)
    assert life.states()[USED] == "dormant"
    life.says(TODAY + DAY, f"the lesson {USED} helped")
    life.lived(TODAY + DAY)
    assert life.states()[USED] == "active"


def test_set_archived_moves_the_block_and_restore_brings_it_back(life: Life) -> None:
    before = life.live.read_text()
    assert archived(life).exit_code == 0
    assert OLD in life.archive.read_text()
    assert OLD not in life.live.read_text()
    result = kbd(life, "restore", OLD)
    assert result.stdout == f"{OLD}: archived → active\n"
    assert life.live.read_text() == before
    assert OLD not in life.archive.read_text()
    life.lived(TODAY + 30 * DAY)
    assert life.states()[OLD] == "active"


def test_restore_refuses_a_live_entry(life: Life) -> None:
    result = kbd(life, "restore", OLD)
    assert result.exit_code == 2
    assert "is active, not archived" in result.stderr


def test_pinned_entry_never_fades_until_it_is_let_go(life: Life) -> None:
    kbd(life, "pin", OLD)
    life.lived(TODAY)
    assert life.states()[OLD] == "active"
    life.close()
    kbd(life, "pin", OLD, "--off")
    life.lived(TODAY + DAY)
    assert life.states()[OLD] == "dormant"


@pytest.mark.parametrize(
    "args", [("set", OLD, "--ref", "9", "--state", "dormant"), ("pin", OLD), ("forget", OLD, "--yes")]
)
def test_dry_run_changes_nothing(life: Life, args: tuple[str, ...]) -> None:
    before = {path: path.read_bytes() for path in (life.live, life.state / "ledger.db")}
    result = kbd(life, *args, "--dry-run")
    assert result.exit_code == 0
    assert OLD in result.stdout
    assert {path: path.read_bytes() for path in before} == before


def test_running_daemon_is_left_to_write_the_files(life: Life) -> None:
    before = life.live.read_bytes()
    with InstanceLock(life.state):
        result = kbd(life, "set", OLD, "--ref", "9")
    assert "the running daemon writes the files" in result.stderr
    assert life.live.read_bytes() == before
    life.lived(TODAY)
    assert "ref:9" in life.live.read_text()


def test_forget_deletes_the_block_alone_and_the_entry_stays_gone(life: Life) -> None:
    result = kbd(life, "forget", OLD, "--yes")
    assert result.exit_code == 0
    assert f"**{OLD}**" in result.stdout
    kept = life.live.read_text()
    assert kept == "# Lessons\n\n" + kept.partition("# Lessons\n\n")[2]
    assert OLD not in kept
    assert USED in kept
    life.lived(TODAY)
    assert set(life.rows()) == {USED}
    assert [title for _, title, _ in life.events("forgotten")] == [OLD]
    assert life.events("entry_gone") == []


def test_forget_asks_and_takes_no_for_an_answer(life: Life) -> None:
    before = life.live.read_bytes()
    result = kbd(life, "forget", OLD, answer="n\n")
    assert (result.exit_code, life.live.read_bytes()) == (0, before)
    unanswered = kbd(life, "forget", OLD, answer="")
    assert (unanswered.exit_code, "--yes" in unanswered.stderr) == (2, True)
    assert life.live.read_bytes() == before
    assert kbd(life, "forget", OLD, answer="y\n").exit_code == 0
    assert OLD not in life.live.read_text()


def test_forget_refuses_what_changed_underneath(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def edited(*_args: object, **_options: object) -> bool:
        text = life.live.read_text()
        life.live.write_text(text.replace("what to do about it (2025-01-01)", "now better (2025-01-01)"))
        return True

    monkeypatch.setattr("click.confirm", edited)
    result = kbd(life, "forget", OLD)
    assert result.exit_code == 6
    assert "now better" in life.live.read_text()
    assert OLD in life.rows()


def test_forget_refuses_while_git_is_at_work(life: Life) -> None:
    (life.root / ".git").mkdir()
    (life.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (life.root / ".git" / "MERGE_HEAD").write_text("")
    result = kbd(life, "forget", OLD, "--yes")
    assert result.exit_code == 6
    assert OLD in life.live.read_text()


def test_forget_takes_an_archived_entry_out_of_its_archive(life: Life) -> None:
    archived(life)
    kbd(life, "forget", OLD, "--yes")
    assert OLD not in life.archive.read_text()
    life.lived(TODAY)
    assert set(life.rows()) == {USED}


def test_paused_kbd_rests_and_reads_on_afterwards(life: Life) -> None:
    assert kbd(life, "pause", "--for", "2h").stdout.startswith("paused until ")
    life.says(TODAY, f"the lesson {USED} helped")
    before = life.live.read_bytes()
    result = kbd(life, "run", "--once")
    assert (result.exit_code, life.live.read_bytes()) == (0, before)
    reasons = json.loads(kbd(life, "status", "--json").stdout)["reasons"]
    assert "paused" in {reason["code"] for reason in reasons}
    assert kbd(life, "decay").exit_code == 6
    assert kbd(life, "resume").stdout == "resumed\n"
    assert kbd(life, "resume").stdout == "there was no pause\n"
    kbd(life, "run", "--once")
    assert "ref:6 | last:2026-01-02" in life.live.read_text()


def test_decision_made_while_paused_is_written_afterwards(life: Life) -> None:
    kbd(life, "pause")
    result = kbd(life, "set", OLD, "--ref", "9")
    assert "paused until `kbd resume`" in result.stderr
    assert "ref:9" not in life.live.read_text()
    kbd(life, "resume")
    kbd(life, "run", "--once")
    assert "ref:9" in life.live.read_text()


@pytest.mark.parametrize("span", ["", "2", "h", "-1h", "2 weeks", "1h30"])
def test_pause_wants_a_span_of_time(life: Life, span: str) -> None:
    assert kbd(life, "pause", "--for", span).exit_code == 2
    assert not (life.state / "paused").exists()


def test_pause_file_that_says_no_time_is_a_pause_without_end(life: Life) -> None:
    (life.state / "paused").write_bytes(b"\xff soon\n")
    reasons = json.loads(kbd(life, "status", "--json").stdout)["reasons"]
    assert "until `kbd resume`" in next(reason["what"] for reason in reasons if reason["code"] == "paused")


def test_nothing_can_be_decided_before_the_first_reading(tmp_path: Path) -> None:
    life = Life(tmp_path)
    result = kbd(life, "pin", "anything")
    assert result.exit_code == 2
    assert not (life.state / "ledger.db").exists()
