"""Public reports of this field on decay, edits and daemons, as met; `tests/cases/coverage.yaml` names them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from kbd.core.relyaml import parse
from tests.attack.lab import CONFIG, NOON, TITLE, Lab

DAY = timedelta(days=1)
FENCED = f"""\
---
title: "- **{TITLE}** <!-- ref:1 | last:2026-01-01 | decay:active -->"
---
# Lessons

Prose with `<!-- ref:1 | decay:active -->` and `- ⚠️ **{TITLE}**` in it.

```markdown
- ⚠️ [pitfall] **{TITLE}** — an example
  <!-- ref:9 | last:2026-01-01 | decay:dormant -->
```

<!--
- [pitfall] **{TITLE}** — commented out
  <!-- ref:8 | last:2026-01-01 | decay:active --
-->

"""


def lessons_of(lab: Lab, number: int) -> list[str]:
    titles = [f"Lesson number {i:03d} of this base" for i in range(number)]
    lab.note("".join(f"- [pitfall] **{title}** — text of it (2026-01-01)\n" for title in titles))
    return titles


def test_machine_off_for_200_days_fades_the_base_step_by_step(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lessons_of(lab, 50)
    lab.log(f"{NOON:%Y-%m-%d} 09:00 all green\n\n")
    lab.run()
    states = []
    for day in range(200, 204):
        lab.log(f"{NOON + day * DAY:%Y-%m-%d} 09:00 all green\n\n")
        lab.restart()
        lab.run(NOON + day * DAY)
        states.append(sorted(row.state.value for row in lab.entries() if row.state.value != "active"))
    assert [len(fallen) for fallen in states] == [10, 20, 30, 40]
    assert {state for fallen in states for state in fallen} == {"dormant"}


def test_clock_set_back_takes_nothing_back_and_counts_nothing_twice(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    note = lab.note(f"- [pitfall] **{TITLE}** — text (2026-05-19)\n  <!-- ref:3 | last:2099-01-01 | decay:active -->\n")
    lab.say("s1", f"as in {TITLE} we close it", "2026-06-11T09:00:00Z")
    lab.run(NOON)
    first = note.read_bytes()
    assert b"ref:4 | last:2026-06-11" in first
    for now in (NOON - DAY, NOON - 300 * DAY, NOON):
        lab.restart()
        lab.run(now)
        lab.run(now, immediate=False)
    assert lab.ref() == 4
    assert note.read_bytes() == first


def test_one_unreadable_day_keeps_no_other_entry_from_its_pass(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    days = ["2025-01-01", '"2025-01-01T10:00:00"', "01/02/2025", "yesterday", "2025-13-45", "", "2099-01-01"]
    titles = [f"Lesson number {i} of odd days" for i in range(len(days))]
    pairs = zip(titles, days, strict=True)
    note = lab.note("".join(f"- **{t}** — x\n  <!-- ref:1 | last:{day} | decay:active -->\n" for t, day in pairs))
    used = ["2026-01-01", '"2026-01-01T10:00:00"', "[1, 2]", "garbage"]
    items = [f"- {{s: {titles[i]}, p: applies_to, o: {i}.py, u: {day}}}\n" for i, day in enumerate(used)]
    (tmp_path / "kb" / ".knowledge-graph.yaml").write_text("".join(items))
    lab.config = CONFIG.replace('files: ["kb/*.md"]', 'files: ["kb/*.md"], relations: kb/.knowledge-graph.yaml')
    lab.say("s1", "all green")
    lab.run(NOON)
    lab.say("s1", f"as in {titles[6]} we close it", "2026-06-12T09:00:00Z")
    lab.run(NOON + DAY)
    assert {row.title for row in lab.entries() if row.state.value == "dormant"} >= {titles[0]}
    assert "ref:2 | last:2026-06-12" in note.read_text()
    assert len(parse((tmp_path / "kb" / ".knowledge-graph.yaml").read_bytes(), "r").relations) == 4


def test_burst_of_citations_is_one_write_and_none_while_an_editor_is_at_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    titles = lessons_of(lab, 5)
    note = tmp_path / "kb" / "lessons.md"
    began = NOON.timestamp()
    os.utime(note, (began - 60, began - 60))
    lab.run(real=began - 30)
    os.utime(note, (began - 60, began - 60))
    seen, writes, left = note.stat().st_mtime_ns, 0, 0
    for second in range(60):
        path = lab.say(f"s{second}", f"as in {titles[second % 5]} we close it")
        editing = 20 <= second < 40
        if editing:
            os.utime(note, (began + second, began + second))
            seen = note.stat().st_mtime_ns
        lab.run(hints=[str(path)], immediate=False, real=began + second)
        if note.stat().st_mtime_ns != seen:
            writes, left, seen = writes + 1, left + editing, note.stat().st_mtime_ns
    assert (left, sum(row.ref for row in lab.entries())) == (0, 60)
    assert writes <= 4


def test_marks_in_fences_front_matter_code_and_comments_stay(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    real = f"- [pitfall] **{TITLE}** — close it in finally (2026-05-19)\n"
    note = lab.note(FENCED + real)
    lab.say("s1", f"as in {TITLE} we close it")
    lab.run()
    assert note.read_text() == f"{FENCED}{real}  <!-- ref:1 | last:2026-06-11 | decay:active -->\n"


def test_many_transcripts_with_one_beginning_are_told_apart(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    head = json.dumps({"type": "summary", "summary": "x" * 9000}) + "\n"
    for number in range(40):
        path = lab.root / "claude" / "-home-x" / f"s{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(head)
    lab.run()
    for number in range(40):
        lab.say(f"s{number}", f"as in {TITLE} we close it")
    logs = [lab.log("booting up, all is well\n" * 400, f"l{number}.log") for number in range(10)]
    for number, path in enumerate(logs):
        with path.open("a") as out:
            out.write(f"\n2026-06-11 09:{number:02d} as in {TITLE} we close it\n\n")
    lab.run()
    assert lab.ref() == 50


def test_log_truncated_and_regrown_past_its_old_end_while_kbd_was_down_is_read(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.note()
    path = lab.log(f"2026-06-10 09:00 as in {TITLE} we close it\n\n")
    lab.run()
    lab.restart()
    path.write_text(f"2026-06-11 09:00 and {TITLE} once more\n\n" + "2026-06-11 09:01 noise\n" * 50)
    lab.run()
    assert lab.ref() == 2


@pytest.mark.parametrize("state", ["daemon.lock", "heartbeat.json", "both"])
def test_what_a_dead_daemon_left_hangs_no_command(tmp_path: Path, state: str) -> None:
    """The pid of the dead belongs to another process by now; there is no socket that could be stale."""
    lab = Lab(tmp_path)
    lab.note()
    lab.run()
    lab.restart()
    (tmp_path / "state").chmod(0o700)
    if state != "heartbeat.json":
        (tmp_path / "state" / "daemon.lock").write_text(f"{os.getpid()}\n")
    if state != "daemon.lock":
        beat = {"pid": os.getpid(), "version": "0", "watching": "x"} | dict.fromkeys(("since", "at"), f"{NOON:%FT%TZ}")
        (tmp_path / "state" / "heartbeat.json").write_text(json.dumps(beat))
    options = ["--config", str(tmp_path / "config.yaml"), "--state-dir", str(tmp_path / "state")]
    for words, codes in ((["status"], [3]), (["run", "--once"], [0, 1])):
        command = [sys.executable, "-m", "kbd", *options, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert done.returncode in codes
        assert ("no daemon runs" in done.stdout) is (words == ["status"])


def test_without_a_configuration_nobody_s_transcripts_are_read(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    home = tmp_path / "home"
    path = home / ".claude" / "projects" / "-w" / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lab.say("s1", "as in Fix the cause, not the symptom, so").read_bytes())
    (home / "notes.md").write_text("- **A private note of mine** x\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "PYTHONPATH": os.getcwd()}
    for words in (["run", "--once"], ["list", "--json"], ["sources", "--json"]):
        command = [sys.executable, "-m", "kbd", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        assert done.returncode == 0, done.stderr
        assert "private note" not in done.stdout
    read = [source["name"] for source in json.loads(done.stdout)["sources"] if source["name"]]
    assert read == ["logs"]  # the agent is found, for `kbd init` to offer
