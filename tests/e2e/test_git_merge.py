"""The merge driver in real git repositories: counters add up, words conflict as git says."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FIRST = "Lock fd leaked on exception path"
SECOND = "Backoff must be capped"


def note(first: str = "ref:2 | last:2026-01-01 | decay:active", second: str = "", text: str = "close it") -> str:
    comment = f"  <!-- {second} -->\n" if second else ""
    entries = f"- [pitfall] **{FIRST}** — {text}\n  <!-- {first} -->\n- **{SECOND}**: always\n{comment}"
    return f"# Lessons\n\n{entries}\nEnd.\n"


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "kb" / "lessons.md"
        self.file.parent.mkdir()
        self.git("init", "-q", "-b", "main")
        python = shlex.quote(sys.executable)
        self.git("config", "merge.kbd.driver", f"{python} -m kbd merge-driver %O %A %B")
        (root / ".gitattributes").write_text("kb/*.md merge=kbd\n")

    def git(self, *args: str, code: int = 0) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        env |= {"HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b"}
        done = subprocess.run(["git", *args], cwd=self.root, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def commit(self, text: str) -> None:
        self.file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def merged(self, common: str, ours: str, theirs: str, code: int = 0) -> str:
        self.commit(common)
        self.git("checkout", "-q", "-b", "theirs")
        self.commit(theirs)
        self.git("checkout", "-q", "main")
        self.commit(ours)
        self.git("merge", "-q", "theirs", code=code)
        return self.file.read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_conflicting_counters_add_up_with_the_newer_day(repository: Repository) -> None:
    text = repository.merged(
        note(),
        note("ref:5 | last:2026-01-08 | decay:active", "ref:1 | last:2026-01-08 | decay:active"),
        note("ref:3 | last:2026-01-09 | decay:active", "ref:2 | last:2026-01-07 | decay:active"),
    )
    assert text == note("ref:6 | last:2026-01-09 | decay:active", "ref:3 | last:2026-01-08 | decay:active")


def test_words_of_both_sides_are_merged_beside_conflicting_counters(repository: Repository) -> None:
    ours = note("ref:5 | last:2026-01-08 | decay:active").replace("# Lessons", "# Our lessons")
    theirs = note("ref:3 | last:2026-01-09 | decay:active", text="close it in finally")
    text = repository.merged(note(), ours, theirs)
    wanted = note("ref:6 | last:2026-01-09 | decay:active", text="close it in finally")
    assert text == wanted.replace("# Lessons", "# Our lessons")


def test_conflicting_words_get_markers_and_git_says_conflict(repository: Repository) -> None:
    ours = note("ref:5 | last:2026-01-08 | decay:active", text="close it in finally")
    theirs = note("ref:3 | last:2026-01-09 | decay:active", text="use a context manager")
    text = repository.merged(note(), ours, theirs, code=1)
    for part in ("<<<<<<< ours", "close it in finally", "use a context manager", ">>>>>>> theirs"):
        assert part in text
    assert text.count("ref:6 | last:2026-01-09") == 1
    assert "UU kb/lessons.md" in repository.git("status", "--porcelain")


def test_entry_deleted_on_one_side_and_counted_on_the_other_is_left_to_a_person(repository: Repository) -> None:
    theirs = "# Lessons\n\n- **" + note().split("- **", 1)[1]
    text = repository.merged(note(), note("ref:3 | last:2026-01-09 | decay:active"), theirs, code=1)
    assert "<<<<<<<" in text and "ref:3" in text


def test_rebase_and_cherry_pick_do_not_count_twice(repository: Repository) -> None:
    repository.commit(note())
    repository.git("checkout", "-q", "-b", "theirs")
    repository.commit(note("ref:3 | last:2026-01-09 | decay:active"))
    repository.git("checkout", "-q", "main")
    repository.commit(note("ref:5 | last:2026-01-08 | decay:active"))
    repository.git("rebase", "-q", "theirs")
    assert "ref:6 | last:2026-01-09" in repository.file.read_text()
    repository.git("checkout", "-q", "theirs")
    repository.git("merge", "-q", "main")
    assert "ref:6 |" in repository.file.read_text()


def test_new_entry_that_both_sides_got_is_no_sum(repository: Repository) -> None:
    both = note() + "\n- **New one that was picked over**: x\n  <!-- ref:4 | last:2026-01-05 | decay:active -->\n"
    text = repository.merged(note(), both, both.replace("ref:2 |", "ref:3 |"))
    assert "ref:4 | last:2026-01-05" in text and "ref:3 |" in text


def test_files_of_any_line_end_keep_it(repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "false")

    def crlf(text: str) -> str:
        return text.replace("\n", "\r\n")

    def write(text: str) -> None:
        repository.file.write_bytes(crlf(text).encode())
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "x")

    write(note())
    repository.git("checkout", "-q", "-b", "theirs")
    write(note("ref:3 | last:2026-01-09 | decay:active"))
    repository.git("checkout", "-q", "main")
    write(note("ref:5 | last:2026-01-08 | decay:active"))
    repository.git("merge", "-q", "theirs")
    assert repository.file.read_bytes() == crlf(note("ref:6 | last:2026-01-09 | decay:active")).encode()


def test_driver_refuses_what_git_cannot_merge_and_keeps_ours(tmp_path: Path) -> None:
    for name, data in (("o", b"a\0\n"), ("a", b"b\0\n"), ("b", b"c\0\n")):
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-m", "kbd", "merge-driver", *(str(tmp_path / name) for name in "oab")]
    done = subprocess.run(command, capture_output=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 6
    assert (tmp_path / "a").read_bytes() == b"b\0\n"
