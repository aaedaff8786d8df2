"""Ages of lines as git knows them, on real repositories."""

import os
import subprocess
from datetime import date

import pytest

from kbd.errors import FileUnreadable
from kbd.store.blame import blame_days


class Repository:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments, day="2026-01-01", **env):
        stamp = f"{day}T12:00:00Z"
        own = {
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"]
        subprocess.run(
            ["git", *who, *arguments], cwd=self.folder, env=os.environ | own | env, check=True, capture_output=True
        )

    def commit(self, day, **files):
        for name, text in files.items():
            (self.folder / f"{name}.md").write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x", day=day)


@pytest.fixture
def repo(tmp_path):
    return Repository(tmp_path / "repo")


def days(path):
    return {line: day.isoformat() for line, day in blame_days(str(path)).items()}


def test_each_line_has_the_day_of_its_commit(repo):
    repo.commit("2025-03-01", a="- **One**\n")
    repo.commit("2025-04-02", a="- **One**\n- **Two**\n")
    assert days(repo.folder / "a.md") == {1: "2025-03-01", 2: "2025-04-02"}


def test_line_not_committed_has_none(repo):
    repo.commit("2025-03-01", a="- **One**\n")
    (repo.folder / "a.md").write_text("- **New**\n- **One**\n")
    assert days(repo.folder / "a.md") == {2: "2025-03-01"}


def test_moved_and_indented_lines_keep_their_day(repo):
    first = "- **A lesson long enough to be known again** with some text\n"
    repo.commit("2025-03-01", a=first + "x\n" * 5)
    repo.commit("2025-05-01", a="x\n" * 5 + first)
    assert days(repo.folder / "a.md")[6] == "2025-03-01"


def test_renamed_file_keeps_its_days(repo):
    repo.commit("2025-03-01", a="- **One**\n- **Two**\n")
    repo.git("mv", "a.md", "b.md")
    repo.git("commit", "-q", "-m", "x", day="2025-06-01")
    assert days(repo.folder / "b.md") == {1: "2025-03-01", 2: "2025-03-01"}


@pytest.mark.parametrize("committed", [True, False])
def test_file_that_git_does_not_know_has_none(repo, committed):
    if committed:
        repo.commit("2025-03-01", other="x\n")
    (repo.folder / "a.md").write_text("- **One**\n")
    assert days(repo.folder / "a.md") == {}


def test_file_outside_of_git_has_none(tmp_path):
    (tmp_path / "a.md").write_text("- **One**\n")
    assert blame_days(str(tmp_path / "a.md")) == {}


def test_oldest_commit_of_a_shallow_clone_tells_no_age(repo, tmp_path):
    repo.commit("2025-03-01", a="- **One**\n")
    repo.commit("2025-04-01", a="- **One**\n- **Two**\n")
    repo.commit("2025-05-01", a="- **One**\n- **Two**\n- **Three**\n")
    repo.git("clone", "-q", "--depth", "2", f"file://{repo.folder}", str(tmp_path / "shallow"))
    assert days(tmp_path / "shallow/a.md") == {3: "2025-05-01"}


def test_day_is_utc_whatever_the_author_s_zone(repo):
    (repo.folder / "a.md").write_text("- **One**\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "x", GIT_AUTHOR_DATE="2025-03-01T23:30:00-0500")
    assert blame_days(str(repo.folder / "a.md")) == {1: date(2025, 3, 2)}


def test_programs_of_the_repository_are_not_run(repo, tmp_path):
    repo.commit("2025-03-01", a="- **One**\n")
    (repo.folder / ".gitattributes").write_text("*.md diff=evil\n")
    for key in ("core.fsmonitor", "diff.evil.textconv"):
        repo.git("config", key, f"touch {tmp_path}/ran;cat")
    assert days(repo.folder / "a.md") == {1: "2025-03-01"}
    assert not (tmp_path / "ran").exists()


def test_variables_of_a_surrounding_git_do_not_lead_astray(repo, tmp_path, monkeypatch):
    repo.commit("2025-03-01", a="- **One**\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert days(repo.folder / "a.md") == {1: "2025-03-01"}


@pytest.mark.parametrize("name", ["-rf.md", "a b.md", "ü\n.md", ":(glob)x.md"])
def test_odd_names_are_names(repo, name):
    (repo.folder / name).write_text("- **One**\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "x", day="2025-03-01")
    assert days(repo.folder / name) == {1: "2025-03-01"}


def test_missing_git_is_told(repo, monkeypatch):
    repo.commit("2025-03-01", a="- **One**\n")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FileUnreadable, match="git is not installed"):
        blame_days(str(repo.folder / "a.md"))
