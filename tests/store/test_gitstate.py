"""Git at work, in repositories made by git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kbd.errors import FileUnreadable
from kbd.store.gitstate import at_work, git_dir, in_git


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "kb").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "kb" / "a.md").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def test_file_outside_of_git_is_at_rest(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("")
    assert not in_git(tmp_path / "a.md")
    assert at_work(tmp_path / "a.md") is None


def test_quiet_repository_is_at_rest(repository: Path) -> None:
    assert git_dir(repository / "kb" / "a.md") == str(repository / ".git")
    assert at_work(repository / "kb" / "a.md") is None


@pytest.mark.parametrize("name", ["index.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"])
def test_each_state_file_means_work(repository: Path, name: str) -> None:
    (repository / ".git" / name).write_text("")
    assert at_work(repository / "kb" / "a.md") == name


@pytest.mark.parametrize("name", ["rebase-merge", "rebase-apply"])
def test_rebase_means_work(repository: Path, name: str) -> None:
    (repository / ".git" / name).mkdir()
    assert at_work(repository / "kb" / "a.md") == name


def test_stopped_merge_is_seen_in_a_linked_work_tree_only_there(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", "-b", "other", str(tree))
    (tree / "kb" / "a.md").write_text("two\n")
    git(tree, "commit", "-qam", "two")
    (repository / "kb" / "a.md").write_text("three\n")
    git(repository, "commit", "-qam", "three")
    git(tree, "merge", "main")
    assert at_work(tree / "kb" / "a.md") == "MERGE_HEAD"
    assert at_work(repository / "kb" / "a.md") is None


def test_commits_still_to_be_picked_mean_work_when_the_one_that_stopped_was_committed_by_hand(
    repository: Path,
) -> None:
    note = repository / "kb" / "a.md"
    git(repository, "checkout", "-qb", "side")
    for text in ("two\n", "two\nmore\n"):
        note.write_text(text)
        git(repository, "commit", "-qam", text)
    git(repository, "checkout", "-q", "main")
    note.write_text("three\n")
    git(repository, "commit", "-qam", "three")
    git(repository, "cherry-pick", "side~2..side")
    assert at_work(note) == "CHERRY_PICK_HEAD"
    note.write_text("two\n")
    git(repository, "commit", "-qam", "solved")
    assert at_work(note) == "sequencer"
    git(repository, "cherry-pick", "--continue")
    assert (at_work(note), note.read_text()) == (None, "two\nmore\n")


def test_repository_of_the_real_file_counts(repository: Path, tmp_path: Path) -> None:
    (repository / ".git" / "index.lock").write_text("")
    (tmp_path / "link.md").symlink_to(repository / "kb" / "a.md")
    assert at_work(tmp_path / "link.md") == "index.lock"


def test_file_that_does_not_exist_yet_belongs_to_its_folder(repository: Path) -> None:
    assert in_git(repository / "new.yaml")


def test_relative_pointer_and_linked_git_directory_are_followed(repository: Path, tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../repo/.git\n")
    assert git_dir(module / "a.md") == str(repository / ".git")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(repository / ".git")
    assert git_dir(linked / "a.md") == str(repository / ".git")


def test_what_only_looks_like_a_repository_is_passed_over(repository: Path) -> None:
    for make in (
        os.mkdir,
        os.mkfifo,
        lambda path: Path(path).write_text("no pointer"),
        lambda path: os.symlink("x", path),
    ):
        inner = repository / "kb"
        make(str(inner / ".git"))
        assert git_dir(inner / "a.md") == str(repository / ".git")
        (os.rmdir if (inner / ".git").is_dir() else os.unlink)(inner / ".git")


def test_git_pointer_that_cannot_be_read_is_an_error(repository: Path) -> None:
    (repository / "kb" / ".git").write_bytes(b"gitdir: " + b"x" * 70_000)
    with pytest.raises(FileUnreadable):
        in_git(repository / "kb" / "a.md")
